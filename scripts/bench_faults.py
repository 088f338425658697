#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a small allreduce takes if packets are lost, doubled and reordered: four hosts of a virtual cluster, the slot
engine on each plane (root). Every result is checked. A time is the mean over the ranks of one blocking call. Packets that
were sent again are those of all sums: the calls, and a barrier before each.

Example:
  scripts/bench_faults.py --repeats 3 --json faults.json
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NET = f"faults{os.getpid()}"
WARMUP = 200
FAULTS = (("none", ""), ("10 % lost", "--loss 0.1"),
          ("10 % lost, 5 % twice, 5 % reordered", "--loss 0.1 --dup 0.05 --reorder 0.05"))


def call(words, **more):
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, cwd=ROOT, **more).stdout


def calls_of(output):
    """(times of the calls in seconds, packets sent again)"""
    times = {}
    for _, number, seconds in re.findall(r"SAMPLE (\d+) (\d+) ([\d.]+)", output):
        times.setdefault(int(number), []).append(float(seconds))
    again = sum(int(n) for n in re.findall(r"PACKETS \d+ (\d+)", output))
    return [statistics.mean(of) for of in times.values()], again


def quantile(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trib", default=os.path.join(ROOT, "build/src/cli/trib"), help="the program")
    parser.add_argument("--planes", default="xdp,tc,udp,pisa", help="planes (xdp,tc,udp,pisa)")
    parser.add_argument("--bytes", type=int, default=32, help="length of the vector (32)")
    parser.add_argument("--iterations", type=int, default=2000, help="calls of a run (2000)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each row (3)")
    parser.add_argument("--json", help="file for the rows")
    options = parser.parse_args()
    worker = os.path.join(os.path.dirname(options.trib), "../../bench/peers/trib_allreduce")
    rows = {}
    environment = {**os.environ, "TRIB_ENGINE": "slot"}
    for repeat in range(options.repeats):
        for faults, words in FAULTS:
            call([options.trib, "net", "up", "--name", NET, "--hosts", "4", "--servers", "1", "--link", "1gbit",
                  "--seed", str(repeat + 1), *words.split()])
            try:
                for plane in options.planes.split(","):
                    output = call([options.trib, "run", "-n", "4", "--net", NET, "--plane", plane, "--timeout", "30", "--", worker,
                                   "--check", "--bytes", str(options.bytes), "--iterations", str(options.iterations),
                                   "--warmup", str(WARMUP)], env=environment)
                    rows.setdefault((plane, faults), []).append(calls_of(output))
            finally:
                call([options.trib, "net", "down", "--name", NET])
    result = []
    for (plane, faults), runs in rows.items():
        ordered = [sorted(times) for times, _ in runs]
        figures = {name: [quantile(times, share) for times in ordered]
                   for name, share in (("median_s", 0.5), ("p99_s", 0.99), ("worst_s", 1))}
        result.append({"plane": plane, "faults": faults, "bytes": options.bytes,
                       "again_a_sum": sum(again for _, again in runs) / (2 * len(runs) * (options.iterations + WARMUP)),
                       **{name: statistics.median(values) for name, values in figures.items()},
                       "p99_spread": (max(figures["p99_s"]) - min(figures["p99_s"])) / statistics.median(figures["p99_s"])})
    for row in result:
        print(f"{row['plane']:5} {row['faults']:36} median {1e6 * row['median_s']:8.1f} us   p99 {1e6 * row['p99_s']:8.1f} us   "
              f"worst {1e6 * row['worst_s']:8.1f} us   {row['again_a_sum']:.2f} packets again a sum")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "faults", "results": result}, file, indent=1)


try:
    main()
except subprocess.CalledProcessError as error:
    sys.exit(f"bench_faults: {' '.join(error.cmd)} failed\n{error.stdout or ''}")
