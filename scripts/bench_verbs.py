#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures libtribverbs.so under unmodified programs, on the test bed of tests/rdma, and prints JSON.

Usage: tests/rdma/run.sh python3 scripts/bench_verbs.py LIBRARY CASE [--repeats N] [--seconds S]
  paths    plain RDMA, then the library over one to four paths: WRITE, SEND, READ, and rping
  chunk    chunks of 12.5 to 400 KB
  load     background traffic of 0, 25, 50 and 75 % on the four paths
  appear   a path that is down at first, and comes back
  cut      paths that are cut one by one
  token    the latency of short messages, plain and with the library, without other traffic
"""
import argparse
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time

A = [f"10.0.{n}.1" for n in range(1, 5)]
B = [f"10.0.{n}.2" for n in range(1, 5)]
PORT = 18515  # of perftest
MESSAGE = 1 << 18
LARGE = 1 << 22  # a message that is cut into chunks of 400 KB, eight and more
RPING = 65535  # the longest message of rping
RATE = float(os.environ.get("PATH_RATE", "30mbit").removesuffix("mbit"))


def gid_index(device, address):
    """The place of the address in the device's table of GIDs."""
    wanted = "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x" % tuple(int(part) for part in address.split("."))
    folder = f"/sys/class/infiniband/{device}/ports/1/gids"
    for index in range(64):
        with open(f"{folder}/{index}", encoding="ascii") as file:
            if file.read().strip() == wanted:
                return index
    raise SystemExit(f"{device} has no address {address}")


def crossed():
    """Bytes that have crossed each path, from a to b."""
    text = subprocess.run(["tc", "-s", "class", "show", "dev", "net_a"], capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"class htb 1:(\d) .*?Sent (\d+) bytes", text, re.S))
    return [int(found[str(n)]) for n in range(1, 5)]


def path(*words):
    subprocess.run(["path", *[str(word) for word in words]], check=True)


def busy_seconds():
    """Processor time of the machine, without idle time: soft-RoCE works for no process in particular."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq = [int(word) for word in file.readline().split()[1:8]]
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def listens():
    """Does the server wait for a TCP connection, or for one of rdma_cm?"""
    with open("/proc/net/tcp", encoding="ascii") as file:
        if f":{PORT:04X} 00000000:0000 0A" in file.read():
            return True
    return "state LISTEN" in subprocess.run(["rdma", "resource", "show", "cm_id"], capture_output=True, text=True, check=True).stdout


def commands(tool, messages, size):
    """What the server and the client are called with."""
    if tool == "rping":
        common = [tool, "-C", str(messages), "-S", str(size), "-a", B[0]]
        return common + ["-s"], common + ["-c", "-I", A[0]]
    common = [tool, "-s", str(size), "-n", str(messages)]
    place = "-g"
    if tool.startswith("ib_"):
        # The timeout of a QP is 1 s (-u 18), as an emulated machine is late sometimes.
        common += ["-F", "-u", "18"] + ([] if tool.endswith("_lat") else ["-t", "8"])
        place = "-x"
    return (common + ["-d", "rxe_b", place, str(gid_index("rxe_b", B[0]))],
            common + ["-d", "rxe_a", place, str(gid_index("rxe_a", A[0])), B[0]])


@contextlib.contextmanager
def transfer(tool, messages, library="", size=MESSAGE, paths=4, **settings):
    """Both ends of a program. Gives the client, which runs."""
    environment = dict(os.environ, TRIB_VERBS_LOG="warn", TRIB_VERBS_ADDRESSES=",".join(A[:paths] + B[:paths]), **settings)
    if library:
        environment["LD_PRELOAD"] = library
    ends = dict(env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    # Programs that poll leave the processors to soft-RoCE, which works in threads of the kernel.
    ours, theirs = (["nice", "-n", "19", "timeout", "-k", "5", "200"] + command for command in commands(tool, messages, size))
    server = subprocess.Popen(ours, **ends)
    while not listens() and server.poll() is None:
        time.sleep(0.1)
    client = subprocess.Popen(theirs, **ends)
    try:
        yield client
    finally:
        client.wait()
        server.communicate()
    if client.returncode or server.returncode:
        raise SystemExit(f"{tool} failed")


def figures(text):
    """The last line of a table of perftest."""
    return re.findall(r"^ (\d+ +\d+ .*)$", text, re.M)[-1].split()


def mbit_of(text):
    """perftest says MiB/s."""
    return float(figures(text)[3]) * 8 * 1.048576


def measure(tool, seconds, library="", paths=4, size=MESSAGE, **settings):
    messages = max(5, int(RATE * paths * 1e6 / 8 * seconds / size))
    before, busy, start = crossed(), busy_seconds(), time.monotonic()
    with transfer(tool, messages, library, size=size, paths=paths, **settings) as client:
        text = client.stdout.read()
    took = time.monotonic() - start
    each = [after - first for first, after in zip(before, crossed())]
    return {"mbit": mbit_of(text), "cores": (busy_seconds() - busy) / took,
            "shares": [n / max(1, sum(each)) for n in each]}


def measure_rping(tool, seconds, library="", paths=4):
    """rping says no rate, so a short run is the time that it takes to connect. Each round is a READ and a WRITE."""
    rounds = max(4, int(RATE * paths * 1e6 / 8 * seconds / (2 * RPING)))
    took = []
    for n in (2, 2 + rounds):
        before, busy, start = crossed(), busy_seconds(), time.monotonic()
        with transfer(tool, n, library, size=RPING, paths=paths) as client:
            client.communicate()
        took.append(time.monotonic() - start)
    each = [after - first for first, after in zip(before, crossed())]
    return {"mbit": rounds * 2 * RPING * 8 / 1e6 / (took[1] - took[0]), "cores": (busy_seconds() - busy) / took[1],
            "shares": [n / max(1, sum(each)) for n in each]}


def several(repeats, **row):
    """The median of several runs, with the least and the most."""
    runs = [(measure_rping if row["tool"] == "rping" else measure)(**row) for _ in range(repeats)]
    rates = sorted(run["mbit"] for run in runs)
    run = min(runs, key=lambda one: abs(one["mbit"] - statistics.median(rates)))
    return dict(run, low=rates[0], high=rates[-1])


def case_paths(options):
    rows = []
    for tool, numbers in {"ib_write_bw": (1, 2, 4), "ib_send_bw": (4,), "ib_read_bw": (4,), "rping": (4,)}.items():
        plain = several(options.repeats, tool=tool, seconds=options.seconds, paths=1)
        rows.append(dict(plain, tool=tool, transport="plain", paths=1, of_sum=plain["mbit"] / plain["mbit"]))
        for paths in numbers:
            row = several(options.repeats, tool=tool, seconds=options.seconds, paths=paths, library=options.library)
            rows.append(dict(row, tool=tool, transport="ours", paths=paths, of_sum=row["mbit"] / plain["mbit"] / paths))
    return {"rows": rows}


def case_chunk(options):
    return {"rows": [dict(several(options.repeats, tool="ib_write_bw", seconds=options.seconds, library=options.library,
                                  size=LARGE, TRIB_CHUNK=str(chunk)), chunk=chunk)
                     for chunk in (12500, 50000, 200000, 400000)]}


class Background(threading.Thread):
    """UDP of a constant rate on one path. `sent`: bytes, with their headers."""
    FRAME = 4096 + 42

    def __init__(self, number, mbit):
        super().__init__(daemon=True)
        self.number, self.gap, self.sent, self.ended = number, self.FRAME * 8 / (mbit * 1e6), 0, threading.Event()

    def run(self):
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sink.bind((B[self.number], 9))
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.bind((A[self.number], 0))
        due, data = time.monotonic(), bytes(4096)
        while not self.ended.is_set():
            sender.sendto(data, (B[self.number], 9))
            self.sent += self.FRAME
            due = max(due + self.gap, time.monotonic() - 0.1)
            time.sleep(max(0, due - time.monotonic()))


def case_load(options):
    loads = [0, 0.25, 0.5, 0.75]
    senders = [Background(number, load * RATE) for number, load in enumerate(loads) if load]
    for sender in senders:
        sender.start()
    before = crossed()
    with transfer("ib_write_bw", int(RATE * 2.5e6 / 8 * options.seconds / MESSAGE), options.library) as client:
        text = client.stdout.read()
    each = [now - then for then, now in zip(before, crossed())]
    for sender in senders:
        sender.ended.set()
        each[sender.number] -= sender.sent
    return {"rate": RATE, "background": loads, "mbit": mbit_of(text),
            "shares": [n / sum(each) for n in each]}


def timeline(options, seconds, events):
    """Mb/s of each path in each half second, while events happen: (time, words of `path`)."""
    samples, events = [], list(events)
    with transfer("ib_write_bw", int(RATE * 4e6 / 8 * seconds / MESSAGE), options.library) as client:
        start = last = time.monotonic()
        before = crossed()
        while client.poll() is None:
            time.sleep(0.3)
            if events and time.monotonic() - start >= events[0][0]:
                path(*events.pop(0)[1])
            now, after = time.monotonic(), crossed()
            samples.append([now - start] + [(b - a) * 8 / (now - last) / 1e6 for a, b in zip(before, after)])
            last, before = now, after
    return samples


def between(samples, begin, end):
    """The mean rate of each path in that time."""
    rows = [row[1:] for row in samples if begin <= row[0] < end]
    return [statistics.mean(column) for column in zip(*rows)] if rows else [0] * 4


def case_appear(options):
    seconds = options.seconds
    path("cut", 4)
    samples = timeline(options, 2 * seconds, [(seconds, ("restore", 4))])
    path("restore", 4)
    used = next((row[0] for row in samples if row[0] > seconds and row[4] > RATE / 2), None)
    return {"before": between(samples, 2, seconds), "after": between(samples, (used or seconds) + 1, samples[-1][0]),
            "seconds_until_used": used - seconds if used else None}


def case_cut(options):
    seconds = options.seconds
    samples = timeline(options, 2.2 * seconds, [(n * seconds, ("cut", 5 - n)) for n in (1, 2, 3)])
    for number in (2, 3, 4):
        path("restore", number)
    return {"steps": [{"down": n, "each": between(samples, n * seconds + 2, (n + 1) * seconds)} for n in range(4)]}


def case_token(options):
    trips = {}
    for _ in range(options.repeats + 2):  # plain and ours in turn, as the machine is not always as fast
        for tool, size in (("ib_write_lat", 2), ("ibv_rc_pingpong", 64), ("ibv_rc_pingpong", 4096)):
            for transport, library in (("plain", ""), ("ours", options.library)):
                with transfer(tool, 1000 if size < 4096 else 200, library, size=size) as client:
                    text = client.stdout.read()
                us = float(re.search(r"= ([\d.]+) usec/iter", text)[1]) / 2 if tool == "ibv_rc_pingpong" else float(figures(text)[4])
                trips.setdefault((tool, size, transport), []).append(us)
    return {"rows": [{"tool": tool, "bytes": size, "transport": transport, "us": statistics.median(us), "low": min(us), "high": max(us)}
                     for (tool, size, transport), us in trips.items()]}


def main():
    cases = {name[5:]: function for name, function in globals().items() if name.startswith("case_")}
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("case", choices=cases)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    options.library = os.path.abspath(options.library)
    json.dump(cases[options.case](options), sys.stdout)
    print()


main()
