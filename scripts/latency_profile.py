#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""latency_profile.py: where the time of a small allreduce goes, as a table in Markdown.

Needs root, perf (package linux-perf) and a build. It makes a virtual cluster of two hosts and a switch, runs
allreduces of 32 bytes on the plane xdp, and samples all cores. Each rank has a core of its own and polls, so the
samples of a core are the time of a call. A share of samples times the time of a call is the time of that part.

  sudo scripts/latency_profile.py build                     two hosts, 8 x 32 bits
  sudo scripts/latency_profile.py build --plane udp --bytes 4096
  sudo scripts/latency_profile.py build --instructions      how many instructions the library runs for a call

The last one needs valgrind instead of perf. Rank 0 runs in it, so that it is late, and mostly finds its result at once.
The number is that of a call that did. So it is the same on a busy machine.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

# The first pattern that a symbol matches says which part it belongs to.
PARTS = [
    ("the XDP program adds, and sends the result to all ports", r"bpf_prog_|xdp|dev_map|devmap|veth_ndo_xdp|bpf_"),
    ("waiting: looking at an empty socket, and yielding", r"sched_yield|pick_|schedule|yield|rseq|update_curr|"
     r"recvmsg|recv\b|__skb_.*recv|udp_recv|wait_|entity|finish_task|dequeue|sock_recv|slot_drive|poll"),
    ("veth and softirq: from one namespace to the other", r"veth|napi|softirq|net_rx|netif|dev_hard|__dev_queue|backlog|"
     r"enqueue_to|eth_type|skb_scrub|gro_"),
    ("the kernel sends: UDP, IP, routes", r"udp_send|ip_make|ip_append|ip_output|ip_finish|ip_send|ip_local|sock_alloc|alloc_skb|"
     r"__ip_|fib_|route|neigh|sock_def_write|sock_wfree|sendto|sendmsg|skb_set_owner|udp_cmsg|loc_"),
    ("the kernel receives: UDP, IP", r"udp|ip_rcv|ip_protocol|ip_list|inet|sock_def_readable|skb_consume|skb_release|"
     r"kfree_skb|consume_skb|free_skb|skb_|_copy_to_iter|kmem_cache_free|__slab_free|kfree"),
    ("entering and leaving the kernel", r"syscall|entry_|do_syscall|el0|el1|exit_to_user|fdget|fput|security|apparmor|"
     r"copy_from|copy_to|get_user|put_user|import_"),
]
WAITING = PARTS[1][0]
WORKER = "the library: request, encode, checksum, timers, decode"
BENCH = "the benchmark itself: vectors, times, checks"
OTHER = "the rest of the kernel"
COUNTED = 100  # calls
POLLS = r"recv|sched_yield|clock_gettime|slot_drive|^pass$|udp_receive|wait_"


def run(*words, **more):
    return subprocess.run(words, check=True, text=True, capture_output=True, **more).stdout


def part_of(dso, symbol):
    if dso.startswith("trib_allreduce"):
        return BENCH
    if not dso.startswith(("[", "bpf_prog")):
        return WAITING if re.search(POLLS, symbol) else WORKER
    for name, pattern in PARTS:
        if re.search(pattern, symbol):
            return name
    return OTHER


def median_of(text):
    times = sorted(float(line.split()[3]) for line in re.findall(r"SAMPLE [^\n]*", text))
    if not times:
        sys.exit("latency_profile.py: the program printed no times")
    return times[len(times) // 2]


def shares(record):
    """Shares of the samples of the ranks, by part."""
    out = run("perf", "report", "-i", record, "--comm", "trib_allreduce", "--sort", "dso,symbol", "--stdio",
              "-F", "overhead,dso,symbol", "--percentage", "relative")
    parts = {}
    for line in out.splitlines():
        found = re.match(r"\s*([\d.]+)%\s+(\S+)\s+\[[.k]\]\s+(\S+)", line)
        if found:
            name = part_of(found.group(2), found.group(3))
            parts[name] = parts.get(name, 0.0) + float(found.group(1)) / 100
    return parts


def instructions(job, program, folder):
    """Instructions of rank 0 in user space: the least of all calls, which found its result at the first look."""
    count = (f"valgrind --tool=callgrind --callgrind-out-file={folder}/callgrind.out --collect-atstart=no "
             "--toggle-collect=trib_allreduce --dump-after=trib_allreduce")
    wrap = f'[ "$TRIB_RANK" = 0 ] && exec {count} "$@"; exec "$@"'
    words = [*program, "--warmup", "0", "--iterations", str(COUNTED)]
    run(*job, "sh", "-c", wrap, "sh", *words)
    counts = []
    for name in glob.glob(f"{folder}/callgrind.out*"):
        with open(name, encoding="ascii") as dump:
            counts += [int(count) for count in re.findall(r"^totals: (\d+)", dump.read(), re.MULTILINE)]
    counts = [count for count in counts if count]  # the last dump is of what follows the last call
    if len(counts) < COUNTED:
        sys.exit(f"latency_profile.py: valgrind has counted {len(counts)} of {COUNTED} calls")
    return min(counts)


def profile(job, program, iterations, folder):
    """The table of parts."""
    words = [*job, *program, "--warmup", "5000", "--iterations", iterations]
    plain = median_of(run(*words))
    record = f"{folder}/perf.data"
    run("perf", "record", "-a", "-F", "5000", "-o", record, "--", *words)
    print(f"| part | share | of {plain * 1e6:.1f} µs |\n|---|---|---|")
    for name, share in sorted(shares(record).items(), key=lambda item: -item[1]):
        print(f"| {name} | {100 * share:.0f} % | {plain * share * 1e6:.2f} µs |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="build folder")
    parser.add_argument("--plane", default="xdp")
    parser.add_argument("--bytes", default="32")
    parser.add_argument("--hosts", default="2")
    parser.add_argument("--iterations", default="200000")
    parser.add_argument("--instructions", action="store_true", help="count instructions instead")
    options = parser.parse_args()
    tool = "valgrind" if options.instructions else "perf"
    if os.geteuid() or not shutil.which(tool):
        sys.exit(f"latency_profile.py: needs root and {tool} (package {tool if options.instructions else 'linux-perf'})")
    trib, net = f"{options.build}/src/cli/trib", f"lp{os.getpid()}"
    program = [f"{options.build}/bench/peers/trib_allreduce", "--bytes", options.bytes]
    job = [trib, "run", "-n", options.hosts, "--net", net, "--plane", options.plane, "--"]
    with tempfile.TemporaryDirectory() as folder:
        run(trib, "net", "up", "--name", net, "--hosts", options.hosts, "--servers", "1", "--switch")
        try:
            if options.instructions:
                print(f"{instructions(job, program, folder)} instructions for a call")
            else:
                profile(job, program, options.iterations, folder)
        finally:
            run(trib, "net", "down", "--name", net)


if __name__ == "__main__":
    main()
