#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs rdma-core's own Python tests on one device, and prints a line for each: ok, FAILED or skipped, and its
name.

Usage: suite.py FOLDER DEVICE GID-INDEX (all | MODULE...)
FOLDER has the subfolder tests, as the package python3-pyverbs has it, unpacked. MODULE: test_qp, for example.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from verdicts import Verdicts


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
    result = Verdicts(sys.stdout)
    suite.run(result)
    result.explain()


main()
