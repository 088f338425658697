#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well two jobs could share an aggregator of capacity 1, if all were known ahead.

Looks for the best schedule of many steps: each allreduce of two traces is aggregated or not, one at a
time. Keeps the --width best schedules after each allreduce (those in which both jobs are least late, if
both had the aggregator for themselves from there on). What comes out is a schedule, so at least so much
can be had. The model is MINA's: an allreduce takes latency + size / bandwidth, --ratio times the bandwidth
if it is aggregated.

Example:
  scripts/share_bound.py --data ../shared/data/mina bert-base opt-125m
"""
import argparse
import json
import os


class Job:
    def __init__(self, path, options):
        with open(path) as file:
            trace = json.load(file)
        ops = trace["allreduces"]
        self.start = [op["start"] / options.faster for op in ops]
        self.plain = [options.latency + op["size"] / options.bandwidth for op in ops]
        self.fast = [options.latency + op["size"] / options.bandwidth / options.ratio for op in ops]
        self.compute, self.n = trace["duration"] / options.faster, len(ops)
        self.fast_s, self.plain_s = self.rest(0, 0, 0, self.fast), self.rest(0, 0, 0, self.plain)

    def rest(self, began, free, at, takes):
        """When the step ends, if the others from `at` on take so long."""
        for i in range(at, self.n):
            free = max(free, began + self.start[i]) + takes[i]
        return max(free, began + self.compute)


def advance(job, state, takes):
    """A job's next state (began, begin, at, step, late) if its next allreduce takes so long."""
    began, begin, at, step, _ = state
    free, at = begin + takes, at + 1
    if at == job.n:
        began = free = max(free, began + job.compute)
        at, step = 0, step + 1
    late = job.rest(began, free, at, job.fast) - (step + 1) * job.fast_s
    return began, max(free, began + job.start[at]), at, step, late


def search(jobs, steps, width):
    first = tuple((0.0, job.start[0], 0, 0, 0.0) for job in jobs)
    ways = [(0.0, first, 0.0)]  # how late, the jobs, when the aggregator is free
    total = sum(job.n for job in jobs) * steps
    for _ in range(total):
        found = {}
        for _, states, until in ways:
            j = int(states[1][1] < states[0][1])
            job, begin, at = jobs[j], states[j][1], states[j][2]
            for takes, busy in ((job.fast[at], True), (job.plain[at], False)):
                if busy and until > begin:
                    continue
                after = list(states)
                after[j] = advance(job, states[j], takes)
                late = sum(state[4] / (state[3] + 1) for state in after)
                free = begin + takes if busy else until
                soon = min(state[1] for state in after)
                key = (after[0][:4], after[1][:4], free if free > soon else 0)
                found[key] = (late, tuple(after), free)
        ways = sorted(found.values(), key=lambda way: way[0])[:width]
    return ways[0][1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split(
        "\n\n", 1)[1], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs=2, help="names in --data")
    parser.add_argument("--data", default=".", help="folder of NAME-4.json (%(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="(%(default)s)")
    parser.add_argument("--width", type=int, default=100, help="(%(default)s)")
    parser.add_argument("--bandwidth", type=float, default=12.5e9, help="byte/s (%(default).3g)")
    parser.add_argument("--ratio", type=float, default=1.5, help="(%(default)s)")
    parser.add_argument("--latency", type=float, default=50e-6, help="s (%(default)s)")
    parser.add_argument("--faster", type=float, default=1.5, help="computation than in the traces (%(default)s)")
    options = parser.parse_args()
    jobs = [Job(os.path.join(options.data, f"{name}-4.json"), options) for name in options.traces]
    ends = search(jobs, options.steps, options.width)
    lost, most = 0.0, 0.0
    for name, job, (_, _, _, step, late) in zip(options.traces, jobs, ends):
        each = job.fast_s + late / (step + 1)
        print(f"{name}: {job.fast_s * 1e3:.3f} ms a step alone, {job.plain_s * 1e3:.3f} without, {each * 1e3:.3f} shared")
        lost, most = lost + each - job.fast_s, most + job.plain_s - job.fast_s
    print(f"score {1 - lost / most:.4f}")


if __name__ == "__main__":
    main()
