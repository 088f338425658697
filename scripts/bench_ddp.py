#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DistributedDataParallel over hosts of a virtual cluster: gloo beside Tributary, in one interleaved run.

Each rank trains one copy of the model for each system, in turn (scripts/ddp_worker.py). A second run of Tributary alone
then shows whether weights have the same bits again. Needs root, and a python3 with torch.

Example:
  scripts/bench_ddp.py --model transformer --steps 40 --json result.json
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORKER = os.path.join(ROOT, "scripts/ddp_worker.py")
LOCAL = "computation alone"
SYSTEMS = ("gloo", "tributary", "tributary, no aggregator", LOCAL)


def python_with_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        found = subprocess.run([python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"], check=False)
        if found.returncode == 0:
            return python
    sys.exit("bench_ddp: no python3 has torch (package python3-torch)")


class Bed:
    """The cluster: hosts with a link each, and a switch that aggregates."""

    def __init__(self, options):
        self.options = options
        self.net("down", check=False)
        self.net("up", "--hosts", str(options.hosts), "--switch", "--link", options.link)
        listed = subprocess.run([options.trib, "net", "list"], capture_output=True, text=True, check=True).stdout
        self.first = next(words[1] for words in map(str.split, listed.splitlines())
                          if len(words) > 3 and words[3] == options.name + "-h1")

    def net(self, verb, *arguments, check=True):
        subprocess.run([self.options.trib, "net", verb, "--name", self.options.name, *arguments], check=check,
                       stdout=subprocess.DEVNULL)

    def train(self, systems, python):
        """What each rank has written."""
        options = self.options
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "rank")
            command = [options.trib, "run", "-n", str(options.hosts), "--net", options.name, "--timeout", "120", "--", python, WORKER,
                       "--model", options.model, "--systems", ";".join(systems), "--steps", str(options.steps), "--warmup",
                       str(options.warmup), "--batch", str(options.batch), "--data", options.data, "--master", f"{self.first}:29500",
                       "--rendezvous", f"{self.first}:29501", "--out", out]
            subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TRIB_LOG": "warn"})
            return [read_json(f"{out}.{rank}") for rank in range(options.hosts)]


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def summary(ranks, again):
    """The slowest rank counts for the time of a step, the mean of all ranks for its loss."""
    systems = {}
    for name in ranks[0]["systems"]:
        of = [rank["systems"][name] for rank in ranks]
        steps = [max(at) for at in zip(*(one["step_s"] for one in of))]
        digests = {one["digest"] for one in of}
        systems[name] = {"median_s": statistics.median(steps), "low_s": min(steps), "high_s": max(steps),
                         "losses": [statistics.fmean(at) for at in zip(*(one["losses"] for one in of))],
                         "digest": digests.pop() if len(digests) == 1 else "ranks differ"}
    local = systems[LOCAL]["median_s"]
    for name, system in systems.items():
        if name != LOCAL:
            system["communication"] = max(0.0, 1 - local / system["median_s"])
            system["gain"] = systems["gloo"]["median_s"] / system["median_s"]
    digests = {rank["systems"]["tributary"]["digest"] for rank in again} | {
        systems[name]["digest"] for name in systems if name.startswith("tributary")}
    return {"data": ranks[0]["data"], "parameters": ranks[0]["parameters"], "torch": ranks[0]["torch"], "systems": systems,
            "same_bits": len(digests) == 1 and "ranks differ" not in digests}


def show(report):
    print(f"{report['model']}, {report['parameters'] / 1e6:.1f} million parameters, {report['data']}, torch {report['torch']}")
    for name, system in report["systems"].items():
        gain = f"{system['gain']:.2f} times gloo's speed, {100 * system['communication']:.0f} % communication" if "gain" in system else ""
        print(f"{name:<26} {1e3 * system['median_s']:8.1f} ms a step   last loss {system['losses'][-1]:.4f}   {gain}")
    print("weights of Tributary: " + ("the same bits in all runs" if report["same_bits"] else "NOT the same bits"))


def options_read():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog=__doc__.split("\n\n")[-1], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mlp", help="mlp (25 million parameters), transformer or small (%(default)s)")
    parser.add_argument("--hosts", type=int, default=4, help="(%(default)s)")
    parser.add_argument("--link", default="1gbit", help="of each host (%(default)s)")
    parser.add_argument("--steps", type=int, default=60, help="measured, of each system (%(default)s)")
    parser.add_argument("--warmup", type=int, default=7, help="steps before; the library tries its ways in them (%(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="images of a rank in a step (%(default)s)")
    parser.add_argument("--data", default=os.path.join(os.environ.get("TRIB_DATA", os.path.join(ROOT, "../shared/data")), "mnist"),
                        help="folder of MNIST; without it data are drawn")
    parser.add_argument("--name", default="ddp", help="of the virtual cluster (%(default)s)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="(%(default)s)")
    parser.add_argument("--json", help="write the results there")
    options = parser.parse_args()
    options.trib = os.path.join(options.build, "src/cli/trib")
    return options


def main():
    options = options_read()
    python = python_with_torch()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the cluster is removed even then
    os.environ.setdefault("TRIB_LIBRARY", os.path.join(options.build, "src"))
    bed = Bed(options)
    try:
        ranks = bed.train(SYSTEMS, python)
        again = bed.train(["tributary"], python)
    finally:
        bed.net("down", check=False)
    report = {"model": options.model, "hosts": options.hosts, "link": options.link, "batch": options.batch, "steps": options.steps,
              **summary(ranks, again)}
    show(report)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
