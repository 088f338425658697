# SPDX-License-Identifier: Apache-2.0
"""Verdicts of unit tests that other people wrote, for mpi/suite.py and rdma/suite.py."""
import sys
import unittest


class Verdicts(unittest.TestResult):
    """Writes a line for each test: ok, FAILED or skipped, and its name."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def startTest(self, test):
        super().startTest(test)
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
        print(self.verdict, test.id(), file=self.out, flush=True)

    def explain(self, prefix=""):
        """Says on stderr why tests have failed: the last line of each trace."""
        for test, trace in self.errors + self.failures:
            print(f"{prefix}{test.id()}: {trace.splitlines()[-1]}", file=sys.stderr)
