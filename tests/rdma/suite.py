#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs rdma-core's own Python tests on one device, and prints a line for each: ok, FAILED or skipped, its name
and its seconds.

Usage: suite.py FOLDER DEVICE GID-INDEX (all | MODULE...)
FOLDER has the subfolder tests, as the package python3-pyverbs has it, unpacked. MODULE: test_qp, for example.
"""
import sys
import time
import unittest


class Lines(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        self.verdict = "ok"

    def addSkip(self, test, reason):
        self.verdict = "skipped"

    def addError(self, test, err):
        self.verdict = "FAILED"
        super().addError(test, err)

    def addFailure(self, test, err):
        self.verdict = "FAILED"
        super().addFailure(test, err)

    def stopTest(self, test):
        print(self.verdict, test.id(), "%.1f" % (time.monotonic() - self.began), flush=True)


def main():
    folder, device, gid = sys.argv[1:4]
    modules = sys.argv[4:]
    sys.path[:0] = [folder, folder + "/tests"]
    from args_parser import parser
    sys.argv[1:] = ["--dev", device, "--gid", gid]
    parser.parse_args()
    if modules == ["all"]:
        import tests
        modules = [module.__name__.split(".")[-1] for module in tests.__test_modules__]
    suite = unittest.defaultTestLoader.loadTestsFromNames("tests." + module for module in modules)
    result = Lines()
    suite.run(result)
    for test, trace in result.errors + result.failures:
        print(test.id(), trace.splitlines()[-1], file=sys.stderr)
    return 0


sys.exit(main())
