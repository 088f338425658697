#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures an allreduce of two ranks around a ring by RDMA (TRIB_TRANSPORT=verbs), over one, two and four paths, on the
test bed of tests/rdma, and prints JSON.

Usage: tests/rdma/run.sh python3 scripts/bench_verbs_ring.py LIBRARY [--repeats N] [--seconds S]
LIBRARY is libtributary.so.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

RATE = float(os.environ.get("PATH_RATE", "30mbit").removesuffix("mbit"))
BYTES = 2 << 20
F32, SUM, IN_PLACE = 8, 0, ctypes.c_void_p(-1)


def be_rank(library, iterations):
    """One rank. It prints the seconds of the iterations, without the first, in which the ranks connect."""
    trib = ctypes.CDLL(library)
    trib.trib_last_error.restype = ctypes.c_char_p
    comm, vector = ctypes.c_void_p(), (ctypes.c_float * (BYTES // 4))(*([1.0] * (BYTES // 4)))

    def demand(status):
        if status:
            raise SystemExit(trib.trib_last_error().decode())

    demand(trib.trib_init(ctypes.byref(comm), None))
    start = 0
    for i in range(iterations + 1):
        demand(trib.trib_allreduce(comm, IN_PLACE, vector, ctypes.c_size_t(len(vector)), F32, SUM))
        start = start or time.monotonic()
    print(time.monotonic() - start)
    if vector[0] != 2.0 ** (iterations + 1) or vector[len(vector) - 1] != vector[0]:
        raise SystemExit("a wrong sum")
    trib.trib_finalize(comm)


def measure(library, paths, seconds):
    iterations = max(2, int(RATE * paths * 1e6 / 8 * seconds / BYTES))
    ranks = []
    for rank, end in enumerate((2, 1)):
        environment = dict(os.environ, TRIB_TRANSPORT="verbs", TRIB_RENDEZVOUS="10.0.1.2:7700", TRIB_RANK=str(rank), TRIB_SIZE="2",
                           TRIB_COOKIE="0000000000000a13", TRIB_PAGES="off", TRIB_TIMEOUT="120",
                           TRIB_VERBS_ADDRESSES=",".join(f"10.0.{n}.{end}" for n in range(1, paths + 1)))
        ranks.append(subprocess.Popen(["nice", "-n", "19", sys.executable, __file__, library, "--iterations", str(iterations)],
                                      env=environment, stdout=subprocess.PIPE, text=True))
    took = max(float(rank.communicate()[0]) for rank in ranks)
    if any(rank.returncode for rank in ranks):
        raise SystemExit("a rank failed")
    return BYTES * iterations * 8 / took / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--iterations", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.iterations:
        be_rank(options.library, options.iterations)
        return
    rows = []
    for paths in (1, 2, 4):
        rates = sorted(measure(os.path.abspath(options.library), paths, options.seconds) for _ in range(options.repeats))
        rows.append({"paths": paths, "mbit": statistics.median(rates), "low": rates[0], "high": rates[-1]})
    json.dump({"rate": RATE, "rows": rows}, sys.stdout)
    print()


main()
