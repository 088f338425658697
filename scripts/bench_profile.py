#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where an aggregator's core spends its time, and what is left without what only veth costs.

bench_profile.py [--trib PATH] [--repeats N] [--json FILE] [--allreduce] [PLANE...]: runs `trib bench plane
throughput` for each plane in turns (xdp and tcp-copied, which both pay veth's copies) and samples the
aggregator's threads and receive threads on their core with perf, stacks included. Each sample has one
place, the innermost that it is in. The time of a packet is that of the same threads, by the kernel's count.

`less veth` takes out what a driver that has packets in pages does not do: the copy of the sender's
buffer into a page, with the page and the freeing of that buffer; for xdp also making the socket buffer
around the page, which it needs on veth alone. Making that buffer stays in tcp's time, as a driver has to
do it, and freeing the page stays in both.

--allreduce does the same during `trib bench allreduce` of four workers and a server with one link, which
has a core of its own: all that is done on that core counts. With -copied or -nic behind the plane's name it has that
option.

Without it all runs with real-time priority, before others on the machine (--urgent). Needs root and perf.
"""

import argparse
import bisect
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

CORE = 1  # of the aggregator, with one lane
PACKET_BITS = 1448 * 8
PRIORITY = 10  # ours and perf's: above all that is measured
COPY = {"skb_pp_cow_data", "skb_cow_data_for_xdp", "veth_convert_skb_to_xdp_buff"}
MAKE = {"napi_build_skb", "__napi_build_skb", "build_skb_around", "__build_skb_around", "skb_copy_header",
        "__copy_skb_header", "napi_skb_cache_get", "__alloc_skb", "xdp_build_skb_from_frame",
        "__xdp_build_skb_from_frame", "xdp_alloc_skb_bulk"}
FREE = {"consume_skb", "kfree_skb_reason", "sk_skb_reason_drop", "__kfree_skb", "skb_release_data",
        "kfree_skbmem", "skb_release_head_state", "napi_consume_skb", "skb_release_all"}
BYTES = {"skb_copy_bits", "memcpy", "__memcpy", "__pi_memcpy", "__pi_memcpy_generic", "__pi___memcpy"}
PAGES = ("page_pool_alloc", "page_pool_dev_alloc", "__page_pool_alloc", "alloc_pages", "page_frag_alloc")
BACK = {"xdp_return_frame", "__xdp_return", "xdp_return_frame_rx_napi", "xdp_return_frame_bulk",
        "xdp_flush_frame_bulk"}
RECEIVE = {"__netif_receive_skb_core", "__netif_receive_skb_list_core", "netif_receive_skb_list_internal",
           "__netif_receive_skb_one_core", "ip_rcv", "ip_list_rcv", "tcp_v4_rcv", "udp_rcv", "napi_gro_receive",
           "gro_receive_skb", "dev_gro_receive"}
SOFTIRQ = {"handle_softirqs", "__do_softirq", "irq_exit_rcu", "__irq_exit_rcu"}
CALLS = {"el0_svc", "el0t_64_sync_handler", "do_syscall_64", "invoke_syscall"}
PLACES = ["program", "veth: bytes copied", "veth: page for the copy", "veth: sender's buffer freed",
          "veth: rest of the copy", "buffer made around the page", "copy freed", "frames given back",
          "stack, receiving", "calls of the daemon", "daemon itself", "ring, NAPI, rest", "idle"]
# What goes, by plane.
OUT = ["veth: bytes copied", "veth: page for the copy", "veth: sender's buffer freed", "veth: rest of the copy"]
OUT_XDP = OUT + ["buffer made around the page"]


class Symbols:
    """The kernel's, those of BPF programs included, which perf may not know."""

    def __init__(self):
        rows = []
        with open("/proc/kallsyms", encoding="ascii") as file:
            for line in file:
                parts = line.split()
                rows.append((int(parts[0], 16), parts[2]))
        rows.sort()
        self.addresses = [row[0] for row in rows]
        self.names = [row[1] for row in rows]

    def find(self, address):
        """The symbol's name; "" for user space."""
        if address < 1 << 48:
            return ""
        i = bisect.bisect(self.addresses, address) - 1
        return self.names[i] if i >= 0 else "?"


def place_of(names):
    """`names` are the symbols of a stack, innermost first."""
    all_names = set(names)
    if any(name.startswith("bpf_prog_") and name.endswith(("_aggregate", "_fan_out")) for name in names):
        return "program"
    if all_names & COPY:
        if all_names & MAKE:
            return "buffer made around the page"
        if all_names & FREE:
            return "veth: sender's buffer freed"
        if names[0] in BYTES:
            return "veth: bytes copied"
        if any(name.startswith(PAGES) for name in names):
            return "veth: page for the copy"
        return "veth: rest of the copy"
    if not names[0]:
        return "daemon itself"
    if all_names & CALLS:
        return "calls of the daemon"
    if all_names & RECEIVE:
        return "stack, receiving"
    if all_names & MAKE:
        return "buffer made around the page"
    if all_names & BACK:
        return "frames given back"
    if all_names & FREE and "veth_poll" in all_names:
        return "copy freed"
    if all_names & {"default_idle_call", "cpu_startup_entry", "do_idle"} and not all_names & SOFTIRQ:
        return "idle"
    return "ring, NAPI, rest"


def stacks_of(data, is_counted, symbols):
    """Lists of symbols, innermost first, of the samples whose thread's name and process are counted."""
    text = subprocess.run(["perf", "script", "-i", data, "-F", "comm,pid,ip"], check=True, capture_output=True,
                          text=True).stdout
    for sample in text.split("\n\n"):
        lines = sample.strip("\n").split("\n")
        words = lines[0].split()
        if len(lines) > 1 and is_counted(words[0], words[-1]):
            yield [symbols.find(int(line.split()[0], 16)) for line in lines[1:]]


def throughput_words(plane):
    """What `trib bench` is given."""
    return ["plane", "throughput", "--urgent", "--repeats", "1", "--seconds", "3", "--plane", plane]


def allreduce_words(plane):
    """The same, for an aggregator whose core nobody else has."""
    words = ["allreduce", "--server", "--hosts", "4", "--link", "500mbit", "--link", "s1=2gbit", "--no-offload",
             "--sizes", "16M", "--iterations", "20", "--repeats", "1", "--cores", f"s1={CORE}"]
    name, _, how = plane.partition("-")
    return words + ["--plane", name] + (["--" + how] if how else [])


def packet_ns(figures):
    """What a packet of 1448 bytes of payload cost, by the kernel's count."""
    if "rows" in figures:
        row = figures["rows"][0]
        return row["ns_in_threads"] or row["ns_per_packet"]
    return PACKET_BITS / figures["results"][0]["aggregated_gb_per_cpu_s"]


def plane_run(options, plane, folder):
    """(ns a packet, {place: share}) of one run, or None if perf or the benchmark failed."""
    figures, data = folder + "/figures.json", folder + "/perf.data"
    words = allreduce_words(plane) if options.allreduce else throughput_words(plane)
    bench = subprocess.Popen([options.trib, "bench", *words, "--json", figures], stdout=subprocess.DEVNULL)
    time.sleep(3 if options.allreduce else 2)
    symbols = Symbols()  # while the program is loaded
    subprocess.run(["perf", "record", "-q", "-g", "-C", str(CORE), "-F", "2999", "-e", "cpu-clock", "-o", data,
                    "sleep", "1.5"], check=False, stderr=subprocess.DEVNULL)
    if bench.wait():
        return None
    with open(figures, encoding="ascii") as file:
        ns = packet_ns(json.load(file))

    def is_counted(thread, process):
        return options.allreduce or thread.startswith("napi/") or process == str(bench.pid)

    places = collections.Counter(place_of(stack) for stack in stacks_of(data, is_counted, symbols))
    busy = sum(count for place, count in places.items() if place != "idle")
    return ns, {place: places[place] / busy for place in PLACES if place != "idle"}


def table_print(figures):
    """Nanoseconds of a packet by place, medians, and what is left."""
    print(f"{'ns a packet':32}" + "".join(f"{plane:>18}" for plane in figures))
    for place in PLACES[:-1]:
        cells = [statistics.median(ns * shares[place] for ns, shares in runs) for runs in figures.values()]
        if any(cell >= 0.5 for cell in cells):
            print(f"{place:32}" + "".join(f"{cell:18.0f}" for cell in cells))
    for title, less in (("all", False), ("less veth", True)):
        cells = []
        for plane, runs in figures.items():
            values = [left_of(plane, run) if less else run[0] for run in runs]
            cells.append(f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})")
        print(f"{title:32}" + "".join(f"{cell:>18}" for cell in cells))


def left_of(plane, run):
    """Nanoseconds without what only veth costs."""
    ns, shares = run
    return ns * (1 - sum(shares[place] for place in (OUT_XDP if plane.startswith("xdp") else OUT)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trib", default="build/src/cli/trib")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--allreduce", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("planes", nargs="*", default=["xdp", "tcp-copied"])
    options = parser.parse_args()
    if not options.allreduce:  # whose workers share the other core
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    figures = collections.OrderedDict((plane, []) for plane in options.planes)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.repeats):
            for plane in options.planes:
                run = plane_run(options, plane, folder)
                if not run:
                    sys.exit(f"bench_profile.py: {plane} could not be measured")
                figures[plane].append(run)
    table_print(figures)
    for one, other in (("xdp", "tcp-copied"), ("xdp-nic", "tcp-nic")):
        if one in figures and other in figures:
            pairs = zip(figures[one], figures[other])
            ratios = [left_of(other, tcp) / left_of(one, xdp) for xdp, tcp in pairs]
            print(f"\nless veth, {one} adds {statistics.median(ratios):.2f} times as much as {other} in the same CPU "
                  f"time ({min(ratios):.2f} to {max(ratios):.2f})")
    if options.json:
        with open(options.json, "w", encoding="ascii") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
