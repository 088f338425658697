# SPDX-License-Identifier: Apache-2.0
"""Markdown tables of benchmark results: one function for each kind of section.

A function gets the runs of a section, each {"label", "command", "result"}, and returns lines of markdown.
`brief_...` is the short form for docs/benchmarks.md. Nothing here reads or writes a file.
"""
import re
import statistics

import bench_profile
from bench_cells import table, seconds, size, percent, middle, quantile, short_time, count, times
from bench_path_tables import (path, path_load, path_mice, path_timeline, path_token,  # noqa: F401  (found by name)
                               verbs, verbs_allreduce, verbs_chunk, verbs_events, verbs_load, verbs_token)


# ---- trib bench allreduce ----

def system_name(row):
    how = row.get("algorithm")
    return row["system"] + (f" ({how})" if how and not row["system"].endswith(how) else "")


def allreduce_rows(run, keep=lambda row: True):
    rows, last = [], None
    for row in run["result"]["results"]:
        if not keep(row):
            continue
        if row.get("median_s") is None:
            rows.append([size(row["bytes"]), system_name(row), "failed", "", "", "", "", ""])
            continue
        rows.append(["" if row["bytes"] == last else size(row["bytes"]), system_name(row), seconds(row["median_s"]),
                     seconds(row.get("p99_s")), f"{row['algbw_gbps']:.3f}", percent(row.get("share_of_limit")),
                     percent(row.get("spread")), f"{row['tributary_gain']:.2f}" if row.get("tributary_gain") else ""])
        last = row["bytes"]
    return rows


ALLREDUCE = ["vector", "system", "median", "p99", "Gb/s", "of limit", "spread", "time / tributary's"]


def allreduce(runs, keep=lambda row: True):
    lines = []
    for run in runs:
        if len(runs) > 1:
            lines += ["", f"*{run['label']}*", ""]
        lines += table(ALLREDUCE, allreduce_rows(run, keep))
    return lines + left_out(runs)


def nccl(runs):
    """Speeds beside the library's own allreduce, and beside NCCL's ring over the same plugin."""
    rows, last = [], None
    results = [row for run in runs for row in run["result"]["results"]]
    medians = {(row["bytes"], row["system"]): row.get("median_s") for row in results}

    def speed(row, other):
        ours, theirs = row.get("median_s"), medians.get((row["bytes"], other))
        return f"{theirs / ours:.2f}" if ours and theirs and row["system"] != other else ""

    for row in results:
        rows.append(["" if row["bytes"] == last else size(row["bytes"]), system_name(row),
                     seconds(row["median_s"]) if row.get("median_s") else "failed", percent(row.get("spread")),
                     percent(row.get("share_of_limit")), speed(row, "tributary"), speed(row, "nccl-ring")])
        last = row["bytes"]
    return table(["vector", "system", "median", "spread", "of limit", "speed / tributary's", "speed / nccl-ring's"],
                 rows) + left_out(runs)


def left_out(runs):
    """A peer that is not there is said loudly."""
    missing = sorted({run["result"]["settings"]["left_out"] for run in runs} - {""})
    return ["", "**Left out:** " + "; ".join(missing) + "."] if missing else []


def brief_allreduce(runs):
    """The largest vector of each run alone."""
    rows = []
    for run in runs:
        most = max(row["bytes"] for row in run["result"]["results"])
        for row in allreduce_rows(run, lambda row, most=most: row["bytes"] == most):
            rows.append([run["label"]] + row if len(runs) > 1 else row)
    return table((["setup"] if len(runs) > 1 else []) + ALLREDUCE, rows) + left_out(runs)


def brief_16(runs):
    """Vectors of 16 MiB, or the largest where there are none."""
    sizes = {row["bytes"] for run in runs for row in run["result"]["results"]}
    wanted = 16 << 20 if 16 << 20 in sizes else max(sizes)
    return table(ALLREDUCE, [row for run in runs for row in allreduce_rows(run, lambda r: r["bytes"] == wanted)]) + left_out(runs)


def brief_gains(runs):
    """The range of each peer's time over ours, over all sizes."""
    gains = {}
    for run in runs:
        for row in run["result"]["results"]:
            if row.get("tributary_gain"):
                gains.setdefault(row["system"], []).append(row["tributary_gain"])
    ours = [row["share_of_limit"] for run in runs for row in run["result"]["results"]
            if row.get("share_of_limit") and not row.get("tributary_gain")]
    lines = table(["against", "its time / tributary's, least to most over the sizes"],
                  [[name, f"{min(values):.2f} to {max(values):.2f}"] for name, values in gains.items()])
    return lines + (["", f"Tributary reaches {percent(min(ours))} to {percent(max(ours))} of its limit."] if ours else [])


# ---- trib bench latency ----

LATENCY = ["hosts", "vector", "system", "median", "p1", "p99", "spread", "best peer / this"]


def latency_rows(run, keep=lambda row: True):
    rows, last = [], None
    for row in filter(keep, run["result"]["results"]):
        place = (row["hosts"], row["bytes"])
        start = ["", ""] if place == last else [row["hosts"], size(row["bytes"])]
        known = row.get("median_s") is not None
        rows.append(start + [system_name(row)] + ([
            short_time(row["median_s"]), short_time(row["p1_s"]), short_time(row["p99_s"]), percent(row.get("spread")),
            f"{row['best_peer_ratio']:.2f}" if row.get("best_peer_ratio") else ""] if known else ["failed", "", "", "", ""]))
        last = place
    return rows


def latency(runs, keep=lambda row: True):
    lines = table(LATENCY, [row for run in runs for row in latency_rows(run, keep)])
    disturbed = sum(row.get("disturbed", 0) for run in runs for row in run["result"]["results"])
    if disturbed:
        lines += ["", f"**Disturbed:** {disturbed} runs began while other work kept the machine busy."]
    return lines + left_out(runs)


def cpu(runs):
    rows = []
    for run in runs:
        found = [row for row in run["result"]["results"] if row.get("aggregated_gb_per_cpu_s")]
        for row in found:
            more = found[0]["aggregated_gb_per_cpu_s"] / row["aggregated_gb_per_cpu_s"]
            rows.append([run["label"] if row is found[0] else "", row["system"], row["plane"],
                         f"{row['aggregated_gb_per_cpu_s']:.1f} ({row['aggregated_gb_per_cpu_s_min']:.1f} to "
                         f"{row['aggregated_gb_per_cpu_s_max']:.1f})", "" if row is found[0] else f"{more:.2f}"])
    return table(["setup", "system", "plane", "Gb added a CPU-second", "CPU time / the first row's"], rows)


def short_cpu(runs):
    """CPU time for each byte of the vector: of one worker, and of the aggregator."""
    rows = []
    for run in runs:
        made = run["result"]["settings"]
        found = [row for row in run["result"]["results"] if row.get("worker_cpu_s")]
        for row in found:
            timed = row["repeats"] * made["iterations"]
            worker = row["worker_cpu_s"] / timed / row["hosts"] / row["bytes"]
            # The aggregator's time is that of its process, so it includes the rounds that are not timed.
            rounds = row["repeats"] * (made["iterations"] + made["warmup"])
            aggregator = row["aggregator_cpu_s"] / rounds / row["bytes"] if row.get("aggregator_cpu_s") else 0
            rows.append([run["label"] if row is found[0] else "", row["system"], f"{worker * 1e9:.2f}",
                         f"{aggregator * 1e9:.2f}" if aggregator else "",
                         f"{(row['hosts'] * worker + aggregator) * 1e9:.2f}"])
    return table(["setup", "system", "a worker, ns a byte", "the aggregator, ns a byte", "all together"], rows)


def training(runs):
    train, gradient = runs[0]["result"], runs[1]["result"]["results"]
    rows = [["test accuracy", percent(train["accuracy"], 2)],
            ["weights on all workers", "bitwise equal" if train["weights_equal"] else "**differ**"],
            ["a step", seconds(train["step_s"])],
            ["of it waiting for the network", seconds(train["comm_s"] / train["steps"])]]
    rows += [[f"allreduce of the gradient ({size(train['gradient_bytes'])}), {system_name(row)}", seconds(row["median_s"])]
             for row in gradient]
    return table(["what", "value"], rows)


# ---- trib bench plane, engine, and the profile ----

def plane(runs):
    lines = []
    for run in runs:
        rows = run["result"]["rows"]
        first = rows[0]
        scaling = len({row["plane"] for row in rows}) == 1 and len(rows) > 1
        if len(runs) > 1:
            lines += ["", f"*{run['label']}*", ""]
        lines += table(["cores", "plane", "Gb/s", "packets/s", "spread", "busy", "Gb a CPU-second", "ns a packet", "lost"] +
                       (["scaling"] if scaling else []),
                       [[row["cores"], row["plane"] + ("*" if row["disturbed_runs"] else ""), f"{row['gbps']:.2f}",
                         f"{row['packets_per_s'] / 1e3:.0f} k",
                         percent((row["gbps_high"] - row["gbps_low"]) / row["gbps"] if row["gbps"] else None),
                         percent(row["busy"]), f"{row['gb_per_cpu_s']:.2f}", f"{row['ns_per_packet']:.0f}",
                         percent(row["lost"], 2)] +
                        ([f"{row['gbps'] / first['gbps'] / row['cores'] * first['cores']:.2f}"] if scaling else [])
                        for row in rows])
        lines += ratios(rows)
        if any(row["disturbed_runs"] for row in rows):
            lines += ["", "\\* Other processes used the cores in at least one run."]
    return lines


PAIRS = (("xdp-nic", "tcp-nic", "packets as from a NIC for both"), ("xdp-nic", "udp-nic", "packets as from a NIC for both"),
         ("xdp-relay", "tcp-nic", "the same load for both"), ("xdp", "tcp-copied", "veth's copies in both"),
         ("xdp", "tcp", "a bare veth"))


def ratios(rows):
    by = {(row["cores"], row["plane"]): row["gb_per_cpu_s"] for row in rows}
    found = [[cores, f"{one} / {other}", f"{by[cores, one] / by[cores, other]:.2f}", why]
             for cores in sorted({row["cores"] for row in rows}) for one, other, why in PAIRS
             if by.get((cores, one)) and by.get((cores, other))]
    return ["", *table(["cores", "Gb a CPU-second", "ratio of medians", "what both get"], found)] if found else []


def brief_ratios(runs):
    return ratios(runs[0]["result"]["rows"])[1:]


def brief_scaling(runs):
    return plane(runs[:1])


def load(runs):
    rows = []
    for row in runs[0]["result"]["rows"]:
        share = row.get("share")
        if share is None or round(share * 10) in (0, 1, 3, 5, 7, 9, 10):
            rows.append([row["plane"] + ("*" if row["disturbed_runs"] else ""), "most" if share is None else percent(share, 0),
                         f"{row['gbps']:.2f}", percent(row["busy"]), seconds(row["latency_s"]) if row["latency_s"] else "–",
                         seconds(row["latency_p99_s"]) if row["latency_p99_s"] else "–", percent(row["lost"], 3)])
    return table(["plane", "load", "Gb/s", "busy", "median latency", "p99", "lost"], rows)


def engine(runs):
    rows = runs[0]["result"]["rows"]
    elements = sorted({row["elements"] for row in rows})[1::2]
    out = []
    for name in dict.fromkeys(row["plane"] for row in rows):
        for kind, field in (("f32", "ns_per_packet"), ("i32", "ns_per_packet_i32")):
            by = {row["elements"]: row.get(field) for row in rows if row["plane"] == name}
            out.append([name, kind] + [f"{by[n]:.0f}" if by.get(n) else "–" for n in elements])
    return table(["plane", "type"] + [f"{n} elements" for n in elements], out)


def glm_kernel(runs):
    """A row a layout and number of features, beside the limit that the memory sets."""
    result = runs[0]["result"]
    rows = [[f"{row['features']:,}", row["layout"], f"{row['row_bytes']:,}", f"{row['samples']:,.0f}",
             f"{1e-9 * row['row_bandwidth']:.2f}", f"{row['limit']:,.0f}", f"{100 * row['of_limit']:.0f} %",
             f"{row['of_float']:.2f}"] for row in result["rows"]]
    return [f"Loops: {result['loops']}. Memory: {1e-9 * result['bandwidth']:.1f} GB/s. "
            f"Data: {result['data_bytes'] >> 20:,} MiB.", ""] + table(
                ["features", "layout", "bytes a row", "samples/s", "GB/s of rows", "limit", "of limit", "of float"], rows)


# ---- trib bench sparse ----

def sparse(runs):
    """A row a system, beside the servers alone."""
    several = len(runs) > 1
    losses = any(row["loss"] for run in runs for row in run["result"]["results"])
    rows, last = [], None
    for run in runs:
        for row in run["result"]["results"]:
            start = [run["label"]] if several else []
            start += [row["workers"]] + ([percent(row["loss"], 2)] if losses else [])
            shown = [""] * len(start) if start == last else start
            last = start
            rows.append(shown + [row["system"], row["plane"], count(row["bytes"]), count(row["updates_per_s"]),
                                 percent(row.get("spread"), 0), times(row.get("servers_ratio")),
                                 percent(row["hot_share"]) if "hot_share" in row else "",
                                 times(row["server_bytes_per_update"]) if "server_bytes_per_update" in row else "",
                                 times(row["recirculations"]) if "recirculations" in row else "",
                                 percent(row["kernel_share"]) if "kernel_share" in row else ""])
    return table((["of"] if several else []) + ["workers"] + (["loss"] if losses else []) +
                 ["system", "plane", "bytes a step", "updates/s", "spread", "this / servers", "hot",
                  "server bytes an update", "recirculations", "in the kernel"], rows) + notes(runs)


def brief_sparse(runs):
    """Hot and cold rows beside the servers alone and beside dense sums, by workers."""
    rows = []
    for workers in sorted({row["workers"] for row in runs[0]["result"]["results"]}):
        of = [row for row in runs[0]["result"]["results"] if row["workers"] == workers and row["updates_per_s"]]
        best = {system: max((row["updates_per_s"] for row in of if row["system"] == system), default=None)
                for system in ("hot", "servers", "dense")}
        rows.append([workers] + [count(best[system]) for system in best] +
                    [times(ratio(best["hot"], best["servers"])), times(ratio(best["hot"], best["dense"]))])
    return table(["workers", "hot, updates/s", "servers, updates/s", "dense, updates/s", "hot / servers", "hot / dense"],
                 rows) + notes(runs)


def drift_recovery(curve, half):
    """Seconds from the change until the updates a second are back at 95 % for the first time; None: they never are."""
    before = middle([point["updates_per_s"] for point in curve[:half][-5:]])
    seconds = 0
    for point in curve[half:]:
        seconds += point["seconds"]
        if point["updates_per_s"] >= 0.95 * before:
            return seconds
    return None


def sparse_drift(runs):
    """Updates a second and the hot share: before the change, right after it, and at the end."""
    rows = []
    for run in runs:
        half = run["result"]["settings"]["iterations"] // 2
        for index, row in enumerate(run["result"]["results"]):
            curve = [point for point in run["result"]["curves"] if point["row"] == index]
            parts = [curve[max(0, half - 5):half], curve[half:half + 1], curve[half + 1:half + 2], curve[-5:]]
            seconds = drift_recovery(curve, half)
            rows.append([row["system"], row["plane"]] +
                        [f"{count(middle([point['updates_per_s'] for point in part]))} "
                         f"({percent(middle([point['hot_share'] for point in part]), 0)})" for part in parts] +
                        ["not in this run" if seconds is None else f"{seconds:.1f} s"])
    return table(["system", "plane", "before: updates/s (hot)", "first iteration after", "second", "at the end",
                  "back at 95 % after"], rows) + notes(runs)


def sparse_store(runs):
    """Bytes a row of the store, beside those of the row and the optimizer's state."""
    rows = [[row["optimizer"], count(row["rows"]), row["width"], f"{row['needed_per_row']:.0f}",
             f"{row['counted_per_row']:.1f}", f"{row['resident_per_row']:.1f}", times(row["counted_ratio"]),
             times(row["resident_ratio"]), times(row.get("most_ratio"))]
            for run in runs for row in run["result"]["results"]]
    return table(["optimizer", "rows", "width", "bytes of row and state", "store, by its count", "resident",
                  "count / bytes", "resident / bytes", "most while it grows"], rows)


# ---- trib bench glm ----

def disturbed(runs):
    """Other work on the machine is said loudly too."""
    rows = [row for run in runs for row in run["result"]["results"]]
    count = sum(row.get("disturbed", 0) for row in rows)
    return ["", f"**Disturbed:** {count} of {sum(row['repeats'] for row in rows)} runs began while other work kept the "
            "machine busy."] if count else []


def precision(row):
    return f"{row['bits']} bits" if row["bits"] else "float"


def notes(runs):
    return disturbed(runs) + left_out(runs)


def ratio(a, b):
    return a / b if a and b else None


def glm(runs):
    """A row a system, beside CPUSync."""
    rows, last = [], None
    for run in runs:
        for row in run["result"]["results"]:
            shape = (run["label"], row["features"], row["hosts"], row["batch"])
            start = [""] * 4 if shape == last else [run["label"], f"{row['features']:,}", row["hosts"], row["batch"]]
            last = shape
            rows.append(start + [system_name(row), row["plane"], seconds(row["epoch_s"]), short_time(row["batch_s"]),
                                 percent(row.get("spread"), 0), times(row.get("mpi_ratio"))])
    return table(["values a row", "features", "hosts", "batch", "system", "plane", "epoch", "mini-batch", "spread",
                  "CPUSync / this"], rows) + notes(runs)


def glm_by(run, *keys):
    """{(values of keys): {system: row}}"""
    by = {}
    for row in run["result"]["results"]:
        by.setdefault(tuple(row[key] for key in keys), {})[row["system"]] = row
    return by


def brief_glm(runs):
    """The best of ours beside CPUSync, at each batch."""
    rows = []
    for run in runs:
        for (features, batch), of in glm_by(run, "features", "batch").items():
            cpu = of.get("mpi", {}).get("epoch_s")
            ours = min(row["epoch_s"] for row in run["result"]["results"]
                       if (row["features"], row["batch"]) == (features, batch) and row["system"] == "model" and row["epoch_s"])
            rows.append([f"{features:,}", batch, seconds(ours), seconds(cpu), times(ratio(cpu, ours))])
    return table(["features", "batch", "epoch", "CPUSync", "CPUSync / ours"], rows) + notes(runs)


def glm_parallel(runs):
    """Model parallelism in micro-batches, beside whole mini-batches (vanilla) and data parallelism (Fig. 9)."""
    rows = []
    for (features, batch), of in glm_by(runs[0], "features", "batch").items():
        model, vanilla, data = (of.get(system, {}).get("epoch_s") for system in ("model", "vanilla", "data"))
        rows.append([f"{features:,}", batch, seconds(model), seconds(vanilla), seconds(data), times(ratio(vanilla, model)),
                     times(ratio(data, model))])
    return table(["features", "batch", "model parallel, an epoch", "not cut", "data parallel", "not cut / model",
                  "data / model"], rows) + notes(runs)


def glm_batch(runs):
    """How much faster larger mini-batches are (Fig. 10)."""
    by = glm_by(runs[0], "features", "batch")
    features, batches = sorted({key[0] for key in by}), sorted({key[1] for key in by})
    rows = []
    for count in features:
        first = by[count, batches[0]]["model"]["epoch_s"]
        rows.append([f"{count:,}", seconds(first)] + [times(ratio(first, by[count, batch]["model"]["epoch_s"]))
                                                      for batch in batches[1:]])
    return table(["features", f"an epoch, B = {batches[0]}"] + [f"times as fast, B = {batch}" for batch in batches[1:]],
                 rows) + notes(runs)


def glm_hosts(runs):
    """How the time changes with the number of workers (Fig. 12 and 13)."""
    by = glm_by(runs[0], "features", "hosts")
    features, hosts = sorted({key[0] for key in by}), sorted({key[1] for key in by})
    rows = []
    for count in features:
        for system in by[count, hosts[0]]:
            epochs = [by[count, host][system]["epoch_s"] for host in hosts]
            rows.append([f"{count:,}", system] + [f"{seconds(value)} ({times(ratio(epochs[0], value))})" for value in epochs])
    return table(["features", "system"] + [f"{host} worker{'s' if host > 1 else ''}" for host in hosts], rows) + notes(runs)


def glm_threads(runs):
    """How the time changes with the threads of one worker (Fig. 11)."""
    one, *more = [glm_by(run, "features") for run in runs]
    rows = []
    for key, of in one.items():
        first = of["model"]["epoch_s"]
        rows.append([f"{key[0]:,}", seconds(first)] + [
            f"{seconds(by[key]['model']['epoch_s'])} ({times(ratio(first, by[key]['model']['epoch_s']))})" for by in more])
    return table(["features"] + [run["label"] for run in runs], rows) + notes(runs)


def glm_convergence(runs):
    """Seconds until losses are reached (Fig. 14 and 15)."""
    result, rows = runs[0]["result"], []
    curves = {}
    for point in result["curves"]:
        curves.setdefault(point["row"], []).append(point)
    marked = [1, 2, 5, 10]
    for number, row in enumerate(result["results"]):
        at = {point["epoch"]: point["at_s"] for point in curves[number]}
        rows.append([system_name(row)] + [seconds(at[epoch]) for epoch in marked if epoch in at])
    losses = {point["epoch"]: point["loss"] for point in curves[0]}
    same = "All have the same losses." if result["settings"]["same_losses"] else "**Losses differ.**"
    return [same, ""] + table(["system"] + [f"until loss {losses[epoch]:.4f} (epoch {epoch})" for epoch in marked
                                            if epoch in losses], rows) + notes(runs)


def glm_tools(runs):
    """Beside liblinear on published data."""
    result, rows, last = runs[0]["result"], [], None
    for row in result["rows"]:
        rows.append(["" if row["data"] == last else row["data"], row["tool"], row["epochs"] or "",
                     f"{row['accuracy']:.2f} %", "" if row["points"] is None else f"{row['points']:+.2f}",
                     seconds(row["seconds"]), times(row["times"]), f"{row['memory'] / 1e6:.1f} MB"])
        last = row["data"]
    missing = result["left_out"]
    return table(["data", "tool", "epochs", "test accuracy", "points above the first", "time", "first / this", "peak memory"],
                 rows) + (["", "**Left out:** " + "; ".join(missing) + "."] if missing else [])


def glm_losses(runs):
    """Losses of all ways to split, and of all precisions."""
    result, rows, last = runs[0]["result"], [], None
    epochs = sorted({row["epoch"] for row in result["rows"]})
    marked = {1, 2, 5, epochs[-1]}
    most = {}
    for row in result["rows"]:
        apart = most.setdefault(row["set"], {"bits8": 0, "bits4": 0})
        for way in apart:
            apart[way] = max(apart[way], abs(row[way] - row["one"]))
        if row["epoch"] in marked:
            rows.append(["" if row["set"] == last else row["set"], row["epoch"]] +
                        [f"{row[way]:.6f}" for way in ("one", "model", "data", "bits8", "bits4")])
            last = row["set"]
    apart = max(value for of in most.values() for value in of.values())
    same = "identical in all digits" if result["identical"] else "**not identical**"
    missing = result["left_out"]
    return [f"One process, model and data parallel: {same}, in all {epochs[-1]} epochs. 8 and 4 bits differ from float by at "
            f"most {apart:.1g}.", ""] + table(["data", "epoch", "one process", "model parallel, 4 workers",
                                               "data parallel, 4 workers", "8 bits", "4 bits"], rows) + (
                                                   ["", "**Left out:** " + "; ".join(missing) + "."] if missing else [])


def accuracy(runs):
    """Errors in millionths of the root mean square of exact sums, so that a column has one unit."""
    rows = []
    for run in runs:
        for row in run["result"]["rows"]:
            rows.append([run["label"], row["values"], row["workers"], row["bits"], f"{1e6 * row['mean']:.3g}",
                         f"{1e6 * row['ring_mean']:.3g}", f"{1e6 * row['once_mean']:.3g}", f"{1e6 * row['rare']:.3g}",
                         f"{1e6 * row['ring_rare']:.3g}"])
    return table(["type", "values", "workers", "bits", "mean", "mean in a ring", "exact, rounded once", "99.9 %",
                  "99.9 % in a ring"], rows)


def latency_faults(runs):
    """Median and p99 of small sums, and how many packets were sent again."""
    rows = [[row["plane"], row["faults"], short_time(row["median_s"]), short_time(row["p99_s"]), percent(row["p99_spread"], 0),
             short_time(row["worst_s"]), f"{row['again_a_sum']:.2f}"] for row in runs[0]["result"]["results"]]
    return table(["plane", "faults", "median", "p99", "spread of p99", "worst", "packets again, a sum"], rows)


def float_table(runs):
    """Precision of sums; uniform values are in the result of each run, and shown once."""
    found = {}
    for run in runs:
        for row in run["result"]["rows"]:
            values = "gradients, " + run["label"] if row["values"] == "file" else row["values"]
            found.setdefault((values, int(row["addends"])), {})[row["way"].split(",")[0]] = row
    rows = [[values, addends] + [f"{by['table'][field]:.4f} %" for field in ("median", "mean")] + [f"{by['table']['worst']:.2g}"] +
            [f"{by[way]['mean']:.4f} %" for way in ("fixed point of 32 bits", "fixed point of hot rows")]
            for (values, addends), by in found.items()]
    return table(["values", "addends", "table: median", "mean", "worst", "blocks: mean", "hot rows: mean"], rows)


def short_training(runs):
    by = {}
    for run in runs:
        model, kind, _ = run["label"].split("|")
        by.setdefault((model, kind), []).append(run["result"])
    rows = []
    for (model, kind), results in by.items():
        values = [100 * result["accuracy"] for result in results]
        rows.append([model, kind, ", ".join(f"{value:.2f} %" for value in values), f"{statistics.mean(values):.2f} %",
                     f"{max(values) - min(values):.2f} %",
                     f"{statistics.mean(result['curve'][-1]['loss'] for result in results):.4f}"])
    return table(["network", "gradients", "test accuracy, each seed", "mean", "highest - lowest", "loss at the end"], rows)


def profile(runs):
    figures = runs[0]["result"]
    names = list(figures)
    places = [place for place in figures[names[0]][0][1]
              if any(ns * shares[place] >= 0.5 for of in figures.values() for ns, shares in of)]
    rows = [[place] + [f"{middle([ns * shares[place] for ns, shares in figures[name]]):.0f}" for name in names]
            for place in places]
    rows.append(["**all**"] + [f"**{middle([ns for ns, _ in figures[name]]):.0f}**" for name in names])
    rows.append(["**without what only veth costs**"] +
                [f"**{middle([bench_profile.left_of(name, run) for run in figures[name]]):.0f}**" for name in names])
    return table(["ns a packet"] + names, rows)


TRAFFIC = re.compile(r"^(\S.*?)\s+(with XDP|without)\s+([\d.]+)\s+([\d.]+)\s+(\d+)\s*$", re.M)


def traffic(runs):
    by = {}
    for link, program, up, down, lost in TRAFFIC.findall(runs[0]["result"]["text"]):
        by.setdefault((link, program), []).append((float(up), float(down), int(lost)))
    return table(["link", "XDP program", "Gb/s to the server", "Gb/s back", "pings lost"],
                 [[link, program, f"{middle([r[0] for r in runs]):.3f}", f"{middle([r[1] for r in runs]):.3f}",
                   sum(r[2] for r in runs)] for (link, program), runs in by.items()])


# ---- rates, start, failover ----

def rates(runs):
    result = runs[0]["result"]
    words = {"first_s": "first JOIN until all workers know their rate", "begins_s": "another job begins: all know less",
             "ends_s": "the other job has ended: all know more"}
    rows = [[f"{one['levels']}", text, seconds(middle(one[key])), seconds(quantile(one[key], 0.9)), seconds(max(one[key]))]
            for one in result["agreed"] for key, text in words.items()]
    return table(["levels", "from … to", "median", "90 %", "longest"], rows) + ["", *halved(result)]


def halved(result):
    rows = []
    for name in dict.fromkeys(one["plane"] for one in result["planes"]):
        for link in ("slow", "restored"):
            phases = [phase for one in result["planes"] if one["plane"] == name and not one["error"]
                      for phase in one["phases"] if phase["link"] == link]
            settled = [phase["settled_s"] for phase in phases]
            if phases:
                rows.append([name, link, span([p["sent_bps"] / 1e6 for p in phases], 1),
                             span([p["lowest_bps"] / 1e6 for p in phases], 1), span(settled, 2),
                             span([100 * p["resent_packets"] / max(p["sent_packets"], 1) for p in phases], 2)])
    return table(["plane", "link", "sent, Mb/s a worker", "lowest in 50 ms", "settled in, s", "sent again, %"], rows)


def span(values, digits):
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def brief_halved(runs):
    return halved(runs[0]["result"])


def deploy(runs):
    rows = []
    for run in runs:
        for key, text in (("start_s", "start of the process to its answer"), ("join_s", "a job's JOIN to the lane's answer")):
            values = run["result"][key]
            rows.append([run["label"], text, len(values)] +
                        [seconds(v) for v in (min(values), middle(values), quantile(values, 0.9), max(values))])
    return table(["plane", "from … to", "times", "least", "median", "90 %", "longest"], rows)


def kills(runs):
    """The table that tests/net/standstill.py prints."""
    lines = [line.strip() for line in runs[0]["result"]["text"].splitlines() if line.strip().startswith("|")]
    if len(lines) < 3:
        raise ValueError("the output has no table of kills")
    return lines


SPREAD = re.compile(r"least ([\d.]+), median ([\d.]+), 90 % ([\d.]+), longest ([\d.]+) ms, of (\d+)")


def migrate(runs):
    found = SPREAD.findall(runs[0]["result"]["text"])
    if len(found) != 2:
        raise ValueError("the output has no spread of rounds")
    return table(["longest round, ms", "times", "least", "median", "90 %", "longest"],
                 [[what, row[4], *row[:4]] for what, row in zip(("while the job migrates", "while it does not"), found)])


DECISION = re.compile(r"^(\d+ (?:hosts|jobs)): (.+)$", re.M)


def decisions(runs):
    found = [[run["label"], *row] for run in runs for row in DECISION.findall(run["result"]["text"])]
    if not found:
        raise ValueError("the output has no times")
    return table(["decision", "cluster", "takes"], found)


# ---- plans, simulator, sharing ----

def plans(runs):
    return table(["trees", "clusters", "mean", "least", "within 3 % of the bound", "within 3 % of the optimum",
                  "mean time of a plan"],
                 [[run["label"], r["clusters"], f"{r['mean']:.4f}", f"{r['least']:.4f}", r["within_3_percent"],
                   r["of_program_within_3_percent"], seconds(r["plan_s"])] for run in runs for r in [run["result"]]])


def plans_large(runs):
    results = [run["result"] for run in runs]
    shares = [r["rate_bps"] / r["bound_bps"] for r in results]
    times = [r["took_s"] for r in results]
    return table(["clusters of 10,000 hosts", "of the bound, least", "median", "time of a plan, median", "longest"],
                 [[len(results), f"{min(shares):.4f}", f"{middle(shares):.4f}", seconds(middle(times)), seconds(max(times))]])


def sim_table1(runs):
    rows = [[cell["row"], f"{cell['score']:.4f}", percent(cell["gain"], 3), f"{cell['utilization']:.4f}",
             f"{cell['paper_score']:.3f}" if cell.get("paper_score") else "–"] for cell in runs[0]["result"]["cells"]]
    moved = runs[1]["result"]
    rows.append([f"smart, smart, frugal; a migration takes 0.559 s ({moved['moves']} of them)", f"{moved['score']:.4f}",
                 percent(moved["gain"], 3), f"{moved['utilization']:.4f}", "–"])
    return table(["placement, trees, sharing", "score", "saved", "utilization", "MINA's score"], rows)


def sim_grid(runs):
    """Rows and columns as the simulator names them; a cell is the mean score, and the lowest."""
    cells = runs[0]["result"]["cells"]
    columns = list(dict.fromkeys(cell.get("column", "score") for cell in cells))
    by = {(cell["row"], cell.get("column", "score")): cell for cell in cells}
    return table([""] + columns, [
        [row] + [f"{by[row, c]['score']:.4f} ({by[row, c]['score_low']:.4f})" if (row, c) in by else "–" for c in columns]
        for row in dict.fromkeys(cell["row"] for cell in cells)])


def sim_jitter(runs):
    """A row for each list of jobs and rule, a column for each jitter."""
    columns = list(dict.fromkeys(cell["row"] for cell in runs[0]["result"]["cells"]))
    rows = []
    for run in runs:
        cells = {(cell["column"], cell["row"]): cell["score"] for cell in run["result"]["cells"]}
        rows += [[run["label"], rule] + [f"{cells[rule, column]:.4f}" for column in columns]
                 for rule in dict.fromkeys(cell["column"] for cell in run["result"]["cells"])]
    return table(["jobs", "sharing"] + columns, rows)


def sim_pairs(runs):
    """The 49 pairs as means, by policy."""
    by = {}
    for cell in runs[0]["result"]["cells"]:
        by.setdefault(cell["settings"]["sharing"], []).append(cell["score"])
    return table(["sharing", "pairs", "mean score", "least", "most"],
                 [[name, len(s), f"{statistics.fmean(s):.3f}", f"{min(s):.3f}", f"{max(s):.3f}"] for name, s in by.items()])


def sim_settings(runs):
    by, columns = {}, {}
    for run in runs:
        row, column = run["label"].split("|")
        by.setdefault(row, {})[column] = run["result"]
        columns[column] = True
    return table(["placement, trees, sharing"] + list(columns), [
        [row] + [f"score {r.get('score_mean', r['score']):.3f}, saved {percent(r.get('gain_mean', r['gain']))}"
                 for r in (cells[column] for column in columns)] for row, cells in by.items()])


def sim_speed(runs):
    return table(["simulation", "hosts", "jobs", "events", "events a CPU-second", "CPU time"],
                 [[run["label"], r["settings"]["hosts"], r["jobs"], f"{r['events'] / 1e6:.2f} million",
                   f"{r['events'] / r['cpu_s'] / 1e6:.1f} million", seconds(r["cpu_s"])]
                  for run in runs for r in [run["result"]]])


def share(runs):
    r = runs[0]["result"]
    rows = [[one["name"]] + [f"{1e3 * r['step_s'][mode][i]:.0f} ms" for mode in r["modes"]]
            for i, one in enumerate(r["traces"])]
    score = ["**score** (runs)"]
    for mode in r["modes"]:
        many = r["score_runs"].get(mode)
        score.append(f"**{r['score'][mode]:.3f}** ({min(many):.3f} to {max(many):.3f})" if many
                     else {"exclusive": "1", "none": "0"}.get(mode, ""))
    most = max(c["most_at_once"] or 0 for c in r["counters"].values())
    over = sum(c["over_capacity"] or 0 for c in r["counters"].values())
    return table(["step of"] + r["modes"], rows + [score]) + [
        "", f"The aggregator had {most} job at once at most, and more than its capacity {over} times."]


def ddp(runs):
    """A row a system, beside gloo."""
    result = runs[0]["result"]
    systems, gloo = result["systems"], result["systems"]["gloo"]
    rows = [[name, seconds(of["median_s"]), f"{seconds(of['low_s'])} to {seconds(of['high_s'])}", percent(of.get("communication"), 0),
             times(of.get("gain")), f"{of['losses'][-1]:.4f}" if "gain" in of else "–"] for name, of in systems.items()]
    far = max(abs(a - b) / b for name, of in systems.items() if "gain" in of for a, b in zip(of["losses"], gloo["losses"]))
    return table(["gradients by", "step", "in all steps", "communication", "times gloo's speed", "last loss"], rows) + [
        "", f"{result['parameters'] / 1e6:.1f} million parameters, {result['data']}, {result['batch']} images a step on each of "
        f"{result['hosts']} hosts, torch {result['torch']}. The loss differs from gloo's by at most {percent(far, 3)} in any step.",
        "Weights that Tributary has trained " + ("have the same bits with and without an aggregator, and in a second run." if
                                                 result["same_bits"] else "DIFFER between runs.")]
