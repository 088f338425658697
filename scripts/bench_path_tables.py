# SPDX-License-Identifier: Apache-2.0
"""Tables of `trib bench path` and scripts/bench_verbs.py; see bench_tables.py."""
from bench_cells import table, seconds, percent, count, times


# ---- trib bench path ----

def of_repeats(rows):
    """For each transport, number of paths and length of chunks: the run in the middle, and all rates."""
    groups = {}
    for row in rows:
        groups.setdefault((row["transport"], row["paths"], row["chunk"]), []).append(row)
    for group in groups.values():
        group.sort(key=lambda row: row["gbps"])
        yield group[len(group) // 2], [row["gbps"] for row in group]


def path(runs):
    """A row a transport, with its share of what all paths together carry."""
    several = len(runs) > 1
    chunks = any(row["chunk"] for run in runs for row in run["result"]["rows"])
    rows = [([run["label"]] if several else []) + [row["transport"], row["paths"]] + ([count(row["chunk"])] if chunks else []) +
            [f"{row['gbps']:.3f}", f"{all_rates[0]:.3f} to {all_rates[-1]:.3f}", percent(row["share_of_sum"]), times(row["cores"]),
             percent(row["repeated"], 2) if "repeated" in row else "", row.get("each", "")]
            for run in runs for row, all_rates in of_repeats(run["result"]["rows"])]
    return table((["case"] if several else []) + ["transport", "paths"] + (["bytes of a chunk"] if chunks else []) +
                 ["Gb/s", "in all runs", "of the sum", "cores", "sent again", "Gb/s of each path"], rows)


def path_load(runs):
    """Beside the free rate of each path, what our channel put on it."""
    result = runs[0]["result"]
    free = [bps * (1 - load) for bps, load in zip(result["path_bps"], result["background"])]
    row, _ = next(of_repeats(result["rows"]))
    each = [float(word) for word in row["each"].split()]
    return table(["path", "background", "free, Gb/s", "ours, Gb/s", "share of the free", "share of ours"],
                 [[i + 1, percent(result["background"][i], 0), f"{free[i] / 1e9:.3f}", f"{each[i]:.3f}",
                   percent(free[i] / sum(free)), percent(each[i] / sum(each))] for i in range(len(each))])


def path_token(runs):
    """Half of a round trip, of each transport."""
    trips = {}
    for row in runs[0]["result"]["rows"]:
        if row["token_s"]:
            trips.setdefault(row["transport"], []).append(row["token_s"])
    return table(["transport", "one way", "in all runs"],
                 [[name, seconds(sorted(all_trips)[len(all_trips) // 2]), f"{seconds(min(all_trips))} to {seconds(max(all_trips))}"]
                  for name, all_trips in trips.items()])


def path_timeline(runs):
    """The mean rate of each second."""
    rates = {}
    for point in runs[0]["result"]["timeline"]:
        rates.setdefault(point["transport"], {}).setdefault(int(point["at_s"] - 0.01), []).append(point["gbps"])
    last = max(second for by_second in rates.values() for second in by_second)
    return table(["Gb/s in second"] + [str(second + 1) for second in range(last + 1)],
                 [[name] + [f"{sum(by_second[s]) / len(by_second[s]):.3f}" if s in by_second else "" for s in range(last + 1)]
                  for name, by_second in rates.items()])


def path_mice(runs):
    """A row a transport: the time of short flows beside it."""
    return table(["beside", "paths", "Gb/s", "short flows, median", "99 % are below"],
                 [[row["transport"], row["paths"], f"{row['gbps']:.3f}", seconds(row["mice_s"]), seconds(row["mice_p99_s"])]
                  for row, _ in of_repeats(runs[0]["result"]["rows"])])


# ---- scripts/bench_verbs.py ----

def mbits(values):
    return " ".join(f"{value:.1f}" for value in values)


def verbs(runs):
    """A row a program and number of paths, beside plain RDMA."""
    return table(["program", "transport", "paths", "Mb/s", "in all runs", "of the sum", "cores", "% of the bytes on each path"],
                 [[row["tool"], row["transport"], row["paths"], f"{row['mbit']:.1f}", f"{row['low']:.1f} to {row['high']:.1f}",
                   percent(row["of_sum"]), times(row["cores"]), mbits(100 * share for share in row["shares"])]
                  for row in runs[0]["result"]["rows"]])


def verbs_chunk(runs):
    return table(["bytes of a chunk", "Mb/s", "in all runs", "cores"],
                 [[count(row["chunk"]), f"{row['mbit']:.1f}", f"{row['low']:.1f} to {row['high']:.1f}", times(row["cores"])]
                  for row in runs[0]["result"]["rows"]])


def verbs_load(runs):
    """Beside the free rate of each path, what the library put on it."""
    result = runs[0]["result"]
    free = [result["rate"] * (1 - load) for load in result["background"]]
    return table(["path", "background", "free, Mb/s", "share of the free", "share of ours"],
                 [[i + 1, percent(result["background"][i], 0), f"{free[i]:.1f}", percent(free[i] / sum(free)),
                   percent(result["shares"][i])] for i in range(len(free))])


def verbs_events(runs):
    """A row a stretch of time in which the same paths were up."""
    appear, cut = (run["result"] for run in runs)
    used = appear["seconds_until_used"]
    rows = [["path 4 is down", appear["before"]],
            ["path 4 is up" + (f"; used after {used:.1f} s" if used else "; not used"), appear["after"]]]
    rows += [[f"{step['down']} paths are cut", step["each"]] for step in cut["steps"]]
    return table(["when", "Mb/s", "Mb/s of each path"], [[what, f"{sum(each):.1f}", mbits(each)] for what, each in rows])


def verbs_allreduce(runs):
    """Beside one path, what several carry."""
    rows = runs[0]["result"]["rows"]
    return table(["paths", "Mb/s that a rank sends", "in all runs", "times one path"],
                 [[row["paths"], f"{row['mbit']:.1f}", f"{row['low']:.1f} to {row['high']:.1f}", times(row["mbit"] / rows[0]["mbit"])]
                  for row in rows])


def verbs_token(runs):
    return table(["program", "bytes", "transport", "half a round trip", "in all runs"],
                 [[row["tool"], row["bytes"], row["transport"], f"{row['us']:.0f} µs", f"{row['low']:.0f} to {row['high']:.0f} µs"]
                  for row in runs[0]["result"]["rows"]])
