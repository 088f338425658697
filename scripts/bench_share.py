#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that share one aggregator of capacity 1, live on a virtual cluster (root).

Each job replays a trace of training steps (sleep for computation, real allreduces) on hosts of its
own. Its time a step is measured with the aggregator for itself (exclusive), without it (none), and
with all jobs at once under each policy; runs are interleaved and repeated. All jobs of a run are at
work as long as any is measured, whatever their steps take: --steps and --warmup are those of the job
with the longest step, the others do as many more. The score is the paper's: (none - shared) / (none -
exclusive), of sums over the jobs. Also counted, by the aggregator itself: how many jobs it had at once
at most, and how often more than its capacity.

Agents and workers are told how fast their links are (--link, TRIB_RATE), as real network cards say.

Example:
  scripts/bench_share.py --traces bert-base,opt-125m --json share.json --plot share.svg
"""
import argparse
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKEN = "bench-share"
RATIO = 1.5  # what a job of four hosts gains at the aggregator: 2 (n - 1) / n
OVERHEAD = 1.11  # as measured: headers of packets of 1500 bytes, and what stripes cost


def synthetic(n, share):
    """A step of 1 s on a link of 1 byte/s: n equal allreduces in its second half, one twice as large
    at the end; share: how long they take without an aggregator."""
    size = share / (n + 1)
    starts = [0.4 + 0.55 * i / (n - 1) for i in range(n)]
    ops = [{"start": s, "size": size} for s in starts]
    ops[-1]["size"] *= 2
    return {"duration": 1.0, "allreduces": ops}


def trace_read(options, name):
    """Times in seconds and sizes in bytes, as they will be here."""
    path = os.path.join(options.data, f"{name}-4.json")
    plain = options.rate / 8 / RATIO / OVERHEAD
    if os.path.exists(path):
        with open(path) as file:
            trace = json.load(file)
        # As the paper's sharing experiment has it: 12.5 GB/s, computation 1.5 times faster.
        stretch = 12.5e9 / options.shrink / plain
        time_factor, size_factor = stretch / options.faster, 1 / options.shrink
    elif re.fullmatch(r"even-\d+", name):
        trace = synthetic(int(name[5:]), 0.65)
        time_factor, size_factor = options.step, options.step * plain
    else:
        sys.exit(f"bench_share: there is no trace {path}, and {name} is not even-N")
    ops = [
        (op["start"] * time_factor, max(int(op["size"] * size_factor) // 4 * 4, 4))
        for op in trace["allreduces"]
    ]
    return {"name": name, "duration": trace["duration"] * time_factor, "ops": ops}


def steps_choose(options, traces):
    """How many steps each job does, so that all are at work at the same time."""
    longest = max(t["duration"] for t in traces)
    for trace in traces:
        ratio = longest / trace["duration"]
        trace["steps"] = round(options.steps * ratio)
        trace["warmup"] = math.ceil(options.warmup * ratio)
        trace["cooldown"] = math.ceil(ratio)


class Cluster:
    """The hosts, and what runs on them."""

    def __init__(self, options, jobs):
        self.options, self.running = options, []
        self.n = options.hosts * jobs
        self.net("down", check=False)
        self.big = max(10, self.n) * 1e9
        big = str(int(self.big))
        self.net("up", "--hosts", str(self.n), "--servers", "2", "--no-offload", "--link", str(options.rate),
                 "--link", f"s1={big}", "--link", f"s2={big}")
        listed = subprocess.run([options.trib, "net", "list"], capture_output=True, text=True,
                                check=True).stdout
        self.addresses = {}
        for line in listed.splitlines():
            words = line.split()
            if len(words) > 3 and words[3].startswith(options.name + "-"):
                self.addresses[words[3][len(options.name) + 1:]] = words[1]

    def net(self, verb, *arguments, check=True):
        subprocess.run([self.options.trib, "net", verb, "--name", self.options.name, *arguments],
                       check=check, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def start(self, host, command, log, **environment):
        process = subprocess.Popen(
            [self.options.trib, "net", "exec", "--name", self.options.name, host, "--", *command],
            stdout=open(log, "w"), stderr=subprocess.STDOUT, env={**os.environ, "TRIB_COUNTERS": "on", **environment})
        self.running.append(process)
        return process

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        process.wait()
        self.running.remove(process)

    def close(self):
        for process in self.running:
            process.kill()
            process.wait()
        self.running = []
        self.net("down", check=False)


class Control:
    """A controller with its agents, for one run."""

    def __init__(self, cluster, policy, folder):
        options = cluster.options
        self.cluster, self.folder = cluster, folder
        self.at = f"{cluster.addresses['s2']}:7600"
        self.common = {"TRIB_STATE": os.path.join(folder, "state"), "TRIB_TOKEN": TOKEN,
                       "TRIB_LOAD_MAX": "100", "TRIB_BEAT": "0.5"}
        self.programs = [cluster.start(
            "s2", [options.tribd, "--controller", self.at, "--plain"], self.log("controller"),
            TRIB_SHARING=policy, **self.common)]
        self.wait_for(lambda: "controller ready" in self.text("controller"), "the controller")
        hosts = [f"h{i + 1}" for i in range(cluster.n)]
        for host in ["s1", *hosts]:
            shared = host == "s1"
            more = ["--link", str(int(cluster.big if shared else options.rate))]
            more += ["--capacity", "1"] if shared else []
            self.programs.append(cluster.start(
                host, [options.tribd, "--join", f"http://{self.at}", "--name", host, "--threads",
                       "1", "--listen", f"{cluster.addresses[host]}:7700", *more],
                self.log(host), **self.common))
        self.wait_for(lambda: len(self.live()) == cluster.n + 1, "the agents")

    def log(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        with open(self.log(name)) as file:
            return file.read()

    def wait_for(self, condition, what):
        until = time.monotonic() + 20
        while not condition():
            if time.monotonic() > until:
                sys.exit(f"bench_share: {what} did not come; see {self.folder}")
            time.sleep(0.1)

    def call(self, method, path, body=None):
        command = ["curl", "-s", "-m", "5", "-X", method, "-H", f"Authorization: Bearer {TOKEN}",
                   f"http://{self.at}{path}"]
        if body is not None:
            command += ["--data-binary", json.dumps(body)]
        done = subprocess.run(
            [self.cluster.options.trib, "net", "exec", "--name", self.cluster.options.name, "s2",
             "--", *command], capture_output=True, text=True)
        return json.loads(done.stdout) if done.stdout else {}

    def live(self):
        return [n for n in self.call("GET", "/v1/nodes").get("nodes", []) if n["state"] == "live"]

    def end(self):
        """The aggregator's own counters."""
        turns = self.call("GET", "/v1/turns")
        for program in reversed(self.programs):
            self.cluster.end(program)
        last = [line for line in self.text("s1").splitlines() if line.startswith('{"tribd"')]
        counters = json.loads(last[-1])["tribd"] if last else {}
        group = (turns.get("groups") or [{}])[0]
        return {"most_at_once": counters.get("most_at_once"),
                "over_capacity": counters.get("over_capacity"),
                "payload_bytes": counters.get("payload_bytes"),
                "given": group.get("given"), "refused": group.get("refused"),
                "agree_ms": round((group.get("agree_s") or 0) * 1000, 1)}


def run_jobs(cluster, policy, jobs, options):
    """Seconds a step of each of these jobs, all at once; and the counters."""
    folder = tempfile.mkdtemp(prefix="share-")
    control = Control(cluster, policy, folder)
    ranks = []
    for index, trace in jobs:
        made = control.call("POST", "/v1/jobs", {"size": options.hosts})
        command = [options.replay, str(trace["steps"]), f"{trace['warmup']}+{trace['cooldown']}",
                   str(trace["duration"] * 1e6)]
        command += [f"{start * 1e6:.0f}:{size}" for start, size in trace["ops"]]
        for rank in range(options.hosts):
            host = f"h{index * options.hosts + rank + 1}"
            ranks.append((index, rank, cluster.start(
                host, command, control.log(f"job{index}.{rank}"),
                TRIB_CONTROLLER=control.at, TRIB_JOB=str(made["id"]), TRIB_COOKIE=made["cookie"],
                TRIB_RANK=str(rank), TRIB_SIZE=str(options.hosts), TRIB_LANES="1",
                TRIB_RATE=str(int(options.rate)), TRIB_LOG="warn")))
    steps = {}
    for index, rank, process in ranks:
        code = process.wait()
        cluster.running.remove(process)
        text = control.text(f"job{index}.{rank}")
        if code:
            sys.exit(f"bench_share: rank {rank} of job {index} failed: {text}")
        for line in text.splitlines():
            if line.startswith("{"):
                steps[index] = json.loads(line)["step_s"]
    counters = control.end()
    shutil.rmtree(folder)
    return steps, counters


def score_of(none, shared, exclusive):
    return (sum(none) - sum(shared)) / (sum(none) - sum(exclusive))


def bars(report):
    """An SVG: a step's time of each job, by mode, from the exclusive one's on."""
    names, modes = [t["name"] for t in report["traces"]], report["modes"]
    colors = {"exclusive": "#2a9d8f", "score": "#264653", "greedy": "#e9a23b", "none": "#c0392b",
              "fair": "#7a5195"}
    width, high, left = 170 * len(names) + 90, 300, 60
    top = max(report["step_s"][m][i] for m in modes for i in range(len(names))) * 1.05
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{high + 90}" '
           'font-family="sans-serif" font-size="12">',
           f'<text x="{left}" y="18" font-size="14">Time of a step, jobs that share an aggregator '
           'of capacity 1</text>']
    for tick in range(5):
        y = 30 + high * (1 - tick / 4)
        out.append(f'<line x1="{left}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">'
                   f'{top * tick / 4 * 1000:.0f} ms</text>')
    for i, name in enumerate(names):
        for k, mode in enumerate(modes):
            value = report["step_s"][mode][i]
            x, tall = left + 10 + 170 * i + 36 * k, high * value / top
            out.append(f'<rect x="{x}" y="{30 + high - tall:.1f}" width="30" height="{tall:.1f}" '
                       f'fill="{colors[mode]}"><title>{mode}: {value * 1000:.1f} ms</title></rect>')
        out.append(f'<text x="{left + 80 + 170 * i}" y="{high + 48}" text-anchor="middle">{name}'
                   '</text>')
    for k, mode in enumerate(modes):
        out.append(f'<rect x="{left + 110 * k}" y="{high + 62}" width="12" height="12" '
                   f'fill="{colors[mode]}"/><text x="{left + 16 + 110 * k}" y="{high + 73}">{mode}'
                   '</text>')
    return "\n".join(out + ["</svg>", ""])


def table(report):
    modes = report["modes"]
    print(f"{'job':<12}" + "".join(f"{mode + ' ms':>14}" for mode in modes))
    for i, trace in enumerate(report["traces"]):
        print(f"{trace['name']:<12}" +
              "".join(f"{report['step_s'][mode][i] * 1000:>14.1f}" for mode in modes))
    for mode, score in report["score"].items():
        spread = report["score_runs"][mode]
        counters = report["counters"][mode]
        print(f"{mode}: score {score:.3f} (runs {min(spread):.3f} to {max(spread):.3f}); at most "
              f"{counters['most_at_once']} at once, {counters['over_capacity']} times over "
              f"capacity; {counters['given']} turns given, {counters['refused']} refused")


def options_read():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split(
        "\n\n", 1)[1], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", default="even-6,even-6", help="a job each: names in --data, or "
                        "even-N for N allreduces of a made-up step (%(default)s)")
    parser.add_argument("--data", default=os.path.join(ROOT, "../shared/data/mina"),
                        help="folder of NAME-4.json")
    parser.add_argument("--policies", default="greedy,score", help="(%(default)s)")
    parser.add_argument("--hosts", type=int, default=4, help="of a job (%(default)s)")
    parser.add_argument("--rate", type=float, default=25e6, help="of a host's link, bit/s (%(default).0f)")
    parser.add_argument("--shrink", type=float, default=384, help="traces have so many times fewer "
                        "bytes here (%(default)s)")
    parser.add_argument("--faster", type=float, default=1.5, help="their computation is so many "
                        "times faster (%(default)s)")
    parser.add_argument("--step", type=float, default=0.9, help="seconds of a made-up step "
                        "(%(default)s)")
    parser.add_argument("--steps", type=int, default=12, help="measured, a run (%(default)s)")
    parser.add_argument("--warmup", type=int, default=4, help="before them (%(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--name", default="share", help="of the virtual cluster (%(default)s)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="(%(default)s)")
    parser.add_argument("--json", help="write the results there")
    parser.add_argument("--plot", help="draw them there, as SVG")
    options = parser.parse_args()
    options.trib = os.path.join(options.build, "src/cli/trib")
    options.tribd = os.path.join(options.build, "src/cli/tribd")
    options.replay = os.path.join(options.build, "bench/replay")
    return options


def main():
    options = options_read()
    traces = [trace_read(options, name) for name in options.traces.split(",")]
    steps_choose(options, traces)
    policies = options.policies.split(",")
    modes = ["exclusive", *policies, "none"]
    runs = {mode: [] for mode in modes}
    counters = {}
    cluster = Cluster(options, len(traces))
    try:
        for repeat in range(options.repeats):
            for mode in modes:
                seen = {}
                if mode == "exclusive":
                    for job in enumerate(traces):
                        seen.update(run_jobs(cluster, "score", [job], options)[0])
                else:
                    seen, counted = run_jobs(cluster, mode, list(enumerate(traces)), options)
                    before = counters.setdefault(mode, dict.fromkeys(counted, 0))
                    for key, value in counted.items():
                        grow = max if key in ("most_at_once", "agree_ms") else lambda a, b: a + b
                        before[key] = grow(before[key], value or 0)
                runs[mode].append([seen[i] for i in range(len(traces))])
                print(f"run {repeat + 1} of {options.repeats}, {mode}: " +
                      ", ".join(f"{s * 1000:.1f} ms" for s in runs[mode][-1]), file=sys.stderr)
    finally:
        cluster.close()
    mean = {m: [statistics.fmean(r[i] for r in runs[m]) for i in range(len(traces))] for m in modes}
    report = {
        "traces": traces, "modes": modes, "hosts": options.hosts, "rate_bps": options.rate,
        "steps": options.steps, "repeats": options.repeats, "runs": runs, "step_s": mean,
        "score": {p: score_of(mean["none"], mean[p], mean["exclusive"]) for p in policies},
        "score_runs": {p: [score_of(n, s, e) for n, s, e in
                           zip(runs["none"], runs[p], runs["exclusive"])] for p in policies},
        "counters": counters,
    }
    table(report)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
    if options.plot:
        with open(options.plot, "w") as file:
            file.write(bars(report))


if __name__ == "__main__":
    main()
