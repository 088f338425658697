#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trib glm on published data, beside the tools that people know.

  glm_compare.py tools     one process each: time to the same test accuracy, and memory, beside
                           liblinear (Debian's liblinear-tools) and Vowpal Wabbit (vw), if they are there
  glm_compare.py losses    loss after each epoch: one process, model parallel, data parallel, and 8 and 4 bits

The data are a9a, farm-ads and amazon-sentiment in the folder --data (default: TRIB_DATA, or
../shared/data beside the checkout). What is missing is left out, and the output says so.

Every tool reads the same plain text. A time is that of a whole process: it reads the text, trains, and
writes its model. `trib glm` trains as many epochs as it needs to come within 0.1 points of liblinear's
test accuracy, or 10 if it does not. Tools run in turns; a time is the median of --repeats.

Example:
  scripts/glm_compare.py tools --json tools.json
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import glm_data  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NEAR = 0.1  # points below liblinear's accuracy that count as the same
EPOCHS = 10  # the default of trib glm
REVIEWS = ("books", "dvd", "electronics", "kitchen")
LIBLINEAR = (("liblinear -s 0", "0"), ("liblinear -s 7", "7"))  # logistic loss with L2: primal, dual


# ---- data ----

def copy_plain(source, target, shift=0):
    """A text file without compression, its columns counted from 1."""
    with glm_data.open_read(source) as file, open(target, "w", encoding="utf-8") as out:
        for line in file:
            words = line.split()
            if shift:
                words[1:] = [f"{int(column) + shift}:{value}" for column, value in
                             (word.split(":") for word in words[1:])]
            out.write(" ".join(words) + "\n")


def farm_ads(source, train, test):
    whole = train + ".all"
    glm_data.npz_write(argparse.Namespace(matrix=os.path.join(source, "X_raw.npz"),
                                          labels=os.path.join(source, "y_raw.npy"), out=whole))
    glm_data.rows_split(argparse.Namespace(file=whole, train=train, test=test, seed=1, share=0.2, header=False))
    os.remove(whole)


def data_prepare(folder, work, only):
    """Writes the text files; returns ({name: (train, test)}, [what is left out])."""
    found, missing = {}, []
    wanted = ["a9a", "farm-ads", *REVIEWS]
    for name in wanted:
        if only and name not in only:
            continue
        train, test = os.path.join(work, name), os.path.join(work, name + ".t")
        try:
            if name == "a9a":
                copy_plain(os.path.join(folder, "a9a/a9a.xz"), train)
                copy_plain(os.path.join(folder, "a9a/a9a.t.xz"), test)
            elif name == "farm-ads":
                farm_ads(os.path.join(folder, "farm-ads"), train, test)
            else:
                start = os.path.join(folder, "amazon-sentiment", name)
                copy_plain(start + "_train.svmlight.xz", train, 1)
                copy_plain(start + "_test.svmlight.xz", test, 1)
            found[name] = (train, test)
        except OSError as error:
            missing.append(f"{name} ({error.strerror}: {error.filename})")
    return found, missing


# ---- processes ----

# Linux counts the memory of the process that calls exec as the new program's. So the measuring process is as small as
# can be: 5 MB, below all that is measured.
MEASURE = """
import os, sys, time
began = time.monotonic()
child = os.fork()
if child == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print(time.monotonic() - began, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def process_run(words):
    """Seconds, CPU seconds and peak memory in bytes of a command that must succeed."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"glm_compare: `{' '.join(words[:3])}` failed: {done.stderr.strip()[-300:]}")
    seconds, cpu, memory = map(float, done.stdout.split())
    return seconds, cpu, int(memory)


def labels_read(path):
    with open(path, encoding="utf-8") as file:
        return [float(line.split()[0]) for line in file]


def accuracy_of(test, predicted):
    right = [a == b for a, b in zip(labels_read(test), labels_read(predicted), strict=True)]
    return 100 * sum(right) / len(right)


class Liblinear:
    def __init__(self, name, solver):
        self.name, self.solver = name, solver

    def train(self, train, model):
        # -B 1: with a constant term, as trib glm has one.
        return process_run(["liblinear-train", "-s", self.solver, "-c", "1", "-B", "1", "-q", train, model])

    def accuracy(self, test, model):
        process_run(["liblinear-predict", test, model, model + ".out"])
        return accuracy_of(test, model + ".out")


class VowpalWabbit:
    name = "vw"

    def text(self, path):
        """The same rows in vw's own format."""
        own = path + ".vw"
        if not os.path.exists(own):
            with open(path, encoding="utf-8") as file, open(own, "w", encoding="utf-8") as out:
                for line in file:
                    label, *values = line.split()
                    out.write(f"{'1' if float(label) > 0 else '-1'} | {' '.join(values)}\n")
        return own

    def train(self, train, model):
        own = self.text(train)
        return process_run(["vw", "--quiet", "--loss_function", "logistic", "-d", own, "-f", model, "--passes", "10",
                            "--cache_file", model + ".cache", "-k"])

    def accuracy(self, test, model):
        out = model + ".out"
        process_run(["vw", "--quiet", "-t", "-i", model, "-d", self.text(test), "-p", out])
        with open(out, encoding="utf-8") as file:
            signs = [float(line.split()[0]) > 0 for line in file]
        right = [(label > 0) == sign for label, sign in zip(labels_read(test), signs, strict=True)]
        return 100 * sum(right) / len(right)


class Trib:
    def __init__(self, program, bits):
        self.program, self.bits, self.epochs = program, bits, EPOCHS
        self.name = "trib glm" if bits == "float" else f"trib glm --bits {bits}"

    def words(self, train, *more):
        return [self.program, "glm", "train", train, "--bits", self.bits, *more]

    def epochs_find(self, train, test, wanted):
        """The first epoch whose test accuracy is `wanted`, or EPOCHS."""
        epochs = training(self.words(train, "--test", test, "--epochs", str(EPOCHS)))["epochs"]
        return next((e["epoch"] for e in epochs if 100 * e["test_accuracy"] >= wanted), EPOCHS)

    def train(self, train, model):
        return process_run(self.words(train, "--model", model, "--epochs", str(self.epochs)))

    def accuracy(self, test, model):
        process_run([self.program, "glm", "predict", model, test, "--output", model + ".out"])
        return accuracy_of(test, model + ".out")


def training(words):
    """What `trib glm train` writes as JSON."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        process_run([*words, "--json", out.name])
        return json.load(out)


# ---- tools ----

def tools_measure(tools, train, test, work, repeats):
    """{tool: row}, with times of runs in turns."""
    times, rows = {tool: [] for tool in tools}, {}
    for _ in range(repeats):
        for tool in tools:
            times[tool].append(tool.train(train, os.path.join(work, "model")))
    for tool in tools:
        model = os.path.join(work, "model")
        tool.train(train, model)
        rows[tool] = {"tool": tool.name, "accuracy": tool.accuracy(test, model),
                      "seconds": statistics.median(run[0] for run in times[tool]),
                      "cpu_s": statistics.median(run[1] for run in times[tool]),
                      "memory": max(run[2] for run in times[tool])}
    return rows


def tools_compare(options, data, work):
    left_out, rows = [], []
    others = [Liblinear(*row) for row in LIBLINEAR] if shutil.which("liblinear-train") else []
    if not others:
        left_out.append("liblinear (no liblinear-train: package liblinear-tools)")
    if shutil.which("vw"):
        others.append(VowpalWabbit())
    else:
        left_out.append("Vowpal Wabbit (no vw)")
    for name, (train, test) in data.items():
        ours = [Trib(options.trib, bits) for bits in ("float", "4")]
        best = 0.0
        if others:
            first = tools_measure(others[:1], train, test, work, 1)[others[0]]
            best = first["accuracy"]
        for tool in ours:
            tool.epochs = tool.epochs_find(train, test, best - NEAR)
        # The defaults, 10 epochs: the final accuracy.
        final = Trib(options.trib, "float")
        final.name = "trib glm, 10 epochs"
        found = tools_measure([*others, *ours, final], train, test, work, options.repeats)
        base = found[others[0]] if others else None
        for tool, row in found.items():
            row.update(data=name, epochs=getattr(tool, "epochs", None),
                       points=row["accuracy"] - base["accuracy"] if base else None,
                       times=base["seconds"] / row["seconds"] if base else None)
            rows.append(row)
            print(f"{name:12} {row['tool']:20} {row['accuracy']:6.2f} %  {row['seconds']:7.3f} s  "
                  f"{row['memory'] / 1e6:6.1f} MB", flush=True)
    return {"rows": rows, "left_out": left_out}


# ---- losses ----

WAYS = (("one", ()), ("model", ("-n", "4")), ("data", ("-n", "4", "--parallel", "data")), ("bits8", ("--bits", "8")),
        ("bits4", ("--bits", "4")))


def losses_compare(options, data, _work):
    rows, same = [], True
    for name, (train, _) in data.items():
        curves = {}
        for way, more in WAYS:
            words = [options.trib, "glm", "train", train, "--epochs", str(options.epochs), *more]
            curves[way] = [epoch["loss"] for epoch in training(words)["epochs"]]
        same &= curves["one"] == curves["model"] == curves["data"]
        rows += [{"set": name, "epoch": i + 1, **{way: curves[way][i] for way in curves}} for i in range(options.epochs)]
        apart = max(abs(curves[way][i] - curves["one"][i]) for way in ("bits8", "bits4") for i in range(options.epochs))
        print(f"{name:12} loss {curves['one'][-1]:.6f}, model and data parallel "
              f"{'identical' if same else 'DIFFERENT'}, 8 and 4 bits within {apart:.2g}", flush=True)
    return {"rows": rows, "identical": same, "left_out": []}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tools", "losses"))
    parser.add_argument("--data", default=os.environ.get("TRIB_DATA", os.path.join(ROOT, "../shared/data")),
                        help="the folder with the data (%(default)s)")
    parser.add_argument("--only", default="", help="data sets, with commas between")
    parser.add_argument("--trib", default=os.path.join(ROOT, "build/src/cli/trib"), help="the program (%(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each tool (%(default)s)")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of `losses` (%(default)s)")
    parser.add_argument("--json", help="write the result to this file")
    options = parser.parse_args()
    options.trib = os.path.abspath(options.trib)
    with tempfile.TemporaryDirectory(prefix="glm-compare-") as work:
        data, missing = data_prepare(options.data, work, [name for name in options.only.split(",") if name])
        if not data:
            sys.exit(f"glm_compare: no data: {', '.join(missing) or 'no such data set'}")
        result = (tools_compare if options.what == "tools" else losses_compare)(options, data, work)
    result["left_out"] += missing
    if result["left_out"]:
        print("left out: " + ", ".join(result["left_out"]))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return 0 if result.get("identical", True) else 1


if __name__ == "__main__":
    sys.exit(main())
