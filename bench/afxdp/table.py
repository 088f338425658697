#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Medians and spreads of run.sh's lines of JSON, as a table a load."""
import json
import statistics
import sys

TITLES = {
    "window": "192 packets under way at most (nic-: frames; others: singly by sendmmsg)",
    "segments": "the same, cut from GSO by the sender's kernel: a faster sender, single packets",
    "flood": "as fast as the sender can, losses and all",
    "rate": "fixed load",
}

runs = [json.loads(line) for line in open(sys.argv[1])]
for load, title in TITLES.items():
    rows = {}
    for run in runs:
        if run["load"] == load:
            rows.setdefault(run["row"], []).append(run)
    if not rows:
        continue
    print(f"\n{load}: {title}")
    print(f"{'row':<16} {'n':>2} {'kpackets/s':>10} {'lost':>6} {'core 1':>7} {'core 0':>7} "
          f"{'ns/packet':>9} {'spread':>7} {'threads':>8} {'GB/CPU-s':>9} {'per call':>8}")
    for row, some in rows.items():
        def median(key):
            return statistics.median(run[key] for run in some)
        cost = [run["ns_per_packet"] for run in some]
        spread = (max(cost) - min(cost)) / statistics.median(cost)
        print(f"{row:<16} {len(some):>2} {median('received_pps') / 1e3:>10.0f} "
              f"{median('lost'):>6.1%} {median('busy_receiver'):>7.1%} {median('busy_sender'):>7.1%} "
              f"{median('ns_per_packet'):>9.0f} {spread:>7.1%} {median('ns_in_threads'):>8.0f} "
              f"{median('payload_bytes_per_cpu_s') / 1e9:>9.2f} {median('packets_per_wakeup'):>8.1f}")
