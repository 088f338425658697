#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs mpi4py's own tests on all ranks. Each rank writes a line for each test into OUTPUT.RANK: ok, FAILED or
skipped, and its name.

Usage: mpirun -n N python3 suite.py FOLDER OUTPUT (all | MODULE...)
FOLDER has mpi4py's tests: its folder test. MODULE: test_cco_buf, for example.
"""
import glob
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from verdicts import Verdicts


def main():
    folder, output = sys.argv[1:3]
    modules = sys.argv[3:]
    if modules == ["all"]:
        modules = sorted(os.path.basename(path)[:-3] for path in glob.glob(f"{folder}/test_*.py"))
    # These start other programs by mpirun's means, which a test has no room for.
    modules = [name for name in modules if name not in ("test_spawn", "test_dynproc")]
    sys.path.insert(0, folder)
    sys.argv[1:] = []
    from mpi4py import MPI
    rank = MPI.COMM_WORLD.Get_rank()
    with open(f"{output}.{rank}", "w") as out:
        result = Verdicts(out)
        unittest.defaultTestLoader.loadTestsFromNames(modules).run(result)
    result.explain(f"rank {rank}: ")


main()
