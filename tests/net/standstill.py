#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""standstill.py [--kinds] RUN...: how long a job stood still after each kill.

A run is a folder. Its file `kills` has a line "SECONDS KIND" for each kill. Each file times.RANK
has the times at which that rank ended a round.

The standstill of a kill is the longest pause between two rounds, from the kill to the next kill,
over all ranks. If no rank ends a round after a kill, the kill is not counted. For runs without
kills, which serve as a comparison, it is the longest pause of each rank.

--kinds: print only the kind of each counted kill, one a line.
"""
import bisect
import pathlib
import sys


def longest(times, start, end):
    """The longest pause from `start` to `end`; None: no round ended after `start`."""
    at = bisect.bisect_right(times, start)
    if at == len(times):
        return None
    most, before = 0.0, start
    for now in times[at:]:
        if before >= end:
            break
        most = max(most, min(now, end) - before)
        before = now
    return most


def quantile(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def row(name, values):
    values = sorted(values)
    return "| %s | %d | %s |" % (name, len(values), " | ".join(
        "%.3f" % v for v in (values[0], quantile(values, 0.5), quantile(values, 0.9), values[-1])))


def histogram(values):
    edges = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 30]
    low = 0.0
    for edge in edges:
        n = sum(low <= v < edge for v in values)
        if n:
            print("%6.2f to %5.2f s  %3d  %s" % (low, edge, n, "#" * n))
        low = edge


def look(run, stood):
    """Adds the standstills of one run to `stood`, by kind."""
    ranks = [[float(line) for line in path.read_text().split()] for path in run.glob("times.*")]
    if not (run / "kills").exists():
        stood.setdefault("(nobody)", []).extend(
            longest(times, times[0], float("inf")) for times in ranks)
        return
    kills = [line.split() for line in (run / "kills").read_text().splitlines()]
    moments = [float(kill[0]) for kill in kills] + [float("inf")]
    for i, (_, kind) in enumerate(kills):
        pauses = [longest(times, moments[i], moments[i + 1]) for times in ranks]
        pauses = [pause for pause in pauses if pause is not None]
        if pauses:
            stood.setdefault(kind, []).append(max(pauses))


def main():
    stood, runs = {}, sys.argv[1:]
    kinds_only = runs[:1] == ["--kinds"]
    for run in runs[kinds_only:]:
        look(pathlib.Path(run), stood)
    if kinds_only:
        for kind in sorted(stood):
            print((kind + "\n") * len(stood[kind]), end="")
        return
    every = [v for kind, values in stood.items() for v in values if kind != "(nobody)"]
    if not every:
        sys.exit("no kill hit a running job")
    print("\n| killed | times | least s | median s | 90 % s | longest s |\n|---|---|---|---|---|---|")
    for kind in sorted(stood):
        print(row(kind, stood[kind]))
    print(row("any", every))
    print()
    histogram(every)


if __name__ == "__main__":
    main()
