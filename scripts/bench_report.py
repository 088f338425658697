#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs benchmarks and writes their tables into docs/benchmarks.md and docs/benchmarks/*.md.

In these pages a table stands between `<!-- bench: NAME -->` and `<!-- /bench -->`, NAME being a section of
scripts/bench_sections.py; `<!-- bench: NAME VIEW -->` is its form for the front page, made by brief_VIEW or VIEW of
scripts/bench_tables.py.
Each block has the date, the commit, a digest of the code, the machine and the command of the run that its figures
are from.

A section that cannot run leaves its figures and is marked as stale. So is every block whose figures are of
other code than what is checked out when pages are written.

Results are kept in build/bench-results/NAME.json, so that a refresh can be done in pieces, and on several machines:
copy the files of the other machine there, then use --render.

Examples:
  scripts/bench_report.py --list
  scripts/bench_report.py --only allreduce,sim
  scripts/bench_report.py --only sixteen --trib ./trib --no-docs
  scripts/bench_report.py --render --only sixteen
  scripts/bench_report.py --check
"""
import argparse
import datetime
import fnmatch
import glob
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import bench_chart
import bench_sections
import bench_tables

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLOTS = os.path.join(ROOT, "docs/plots")
FRONT = "docs/benchmarks.md"
STATUS = "docs/benchmarks/status.md"  # the table of all sections
MOST_LINES = 400  # of a page, without the marks of what is stale
CODE = ("src", "include", "adapters", "bench", "examples", "meson.build")  # what figures depend on
BLOCK = re.compile(r"<!-- bench: ([a-z0-9-]+)(?: ([a-z0-9_]+))? -->\n(.*?)<!-- /bench -->", re.S)
OPENING = re.compile(r"<!-- bench: (.*?) -->")
STAMP = re.compile(r"^Measured (\d{4}-\d\d-\d\d) at commit `([0-9a-z]+(?:\+changes)?)`(?:, code `([0-9a-f]{8})`,)? on (.+)\.$",
                   re.M)
COMMAND = re.compile(r"^(```sh\n.+?\n```|Command: `make bench ONLY=[a-z0-9-]+`.*)$", re.M | re.S)
NOT_MEASURED = "Not measured for this version yet; run `make bench ONLY={}`."
STALE = "> **Stale:** "
CHANGED = "the code has changed since."
TOOK = re.compile(r"^Took (\d+) (min|s)", re.M)
QUICK = "**A quick run, to test the pipeline: no figure to rely on.**"
SLACK_S = 600  # a run may take three times as long as is said, and so much more


class CannotRun(Exception):
    """Why a section has no result; the text goes into the page."""


# ---- what a figure is stamped with ----

def git(*words):
    """What git prints; None if it fails or is not there."""
    try:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def commit_now():
    """BENCH_COMMIT is for a machine that has no git."""
    found = git("rev-parse", "--short", "HEAD")
    if found is None:
        return os.environ.get("BENCH_COMMIT", "unknown")
    return found + ("+changes" if git("status", "--porcelain", "-uno", "--", *CODE) else "")


def without_comments(text):
    """C without its comments, and with its words one blank apart."""
    kept = re.sub(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/|//[^\n]*', lambda found: found.group(1) or " ", text, flags=re.S)
    return " ".join(kept.split())


def bare_code(path, text):
    """What of a file changes figures: no comments of C, no list of files of Meson."""
    if path.endswith("meson.build"):
        return "\n".join(line for line in text.split("\n") if not re.match(r"\s*('[^']*',?|subdir\(.*\)|#.*)?\s*$", line))
    return without_comments(text) if path.endswith((".c", ".h")) else text


def bare_files():
    """The files that figures depend on: (path, bare code) of each."""
    paths = [place for place in CODE if os.path.isfile(os.path.join(ROOT, place))]
    for place in CODE:
        for folder, folders, names in os.walk(os.path.join(ROOT, place)):
            folders[:] = [name for name in folders if name != "__pycache__"]
            paths += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return [(path, bare_code(path, read(os.path.join(ROOT, path)))) for path in paths]


def code_of(section, files):
    """A digest of the code that the section uses: the same in every clone, also where git has another history."""
    texts = sorted(text for path, text in files if bench_sections.uses(section, path))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8]


def cpu_model():
    listed = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout if shutil.which("lscpu") else ""
    found = re.search(r"^Model name:\s*(.+)$", listed, re.M)
    if not found and os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.M)
    return " ".join(found.group(1).split()) if found else platform.machine()


def machine_now():
    return f"{os.cpu_count()} cores of {cpu_model()} ({platform.machine()}), Linux {platform.release().split('-')[0]}"


# ---- running ----

class Runner:
    def __init__(self, options):
        self.trib, self.quick = options.trib, options.quick
        self.folder = os.path.join(ROOT, "build/bench-results", *(["quick"] if options.quick else []))
        self.data = os.path.abspath(os.environ.get("TRIB_DATA", os.path.join(ROOT, "../shared/data")))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def words(self, command):
        words = shlex.split(command.replace("$TRIB_DATA", self.data))
        return [self.trib if words[0] == "trib" else words[0], *words[1:]]

    def execute(self, words, seconds, quiet=False):
        """What the command prints; its own process group, so that it can be ended with all that it started."""
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            text, _ = process.communicate(timeout=seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise CannotRun(f"`{words[0]}` took more than {seconds:.0f} s") from error
        if not quiet and len(text) < 20000:
            print(text, end="", flush=True)
        if process.returncode:
            raise CannotRun(f"`{os.path.basename(words[0])} {words[1]}` ended with {process.returncode}")
        return text

    def command_of(self, run):
        if not self.quick or not run.quick:
            return run.command
        return run.quick[1:] if run.quick.startswith("=") else f"{run.command} {run.quick}"

    def run_one(self, section, number, run, seconds, known):
        command = self.command_of(run)
        for key, value in known.items():
            command = command.replace("{%s}" % key, str(value))
        words, plot = self.words(command), self.path("plots", section.name + ".svg")
        target = self.path(f"{section.name}.{number}.json")
        if run.json == "file":
            words += ["--json", target]
        if run.plot:
            words += ["--plot", plot]
        print(f"-- {command}", flush=True)
        text = self.execute(words, seconds, run.json == "stdout")
        if run.json == "text":
            result = {"text": text}
        elif run.json == "stdout":
            result = json.loads(text)
        else:
            with open(target, encoding="utf-8") as file:
                result = json.load(file)
            os.remove(target)
        if isinstance(result, dict):
            known.update((key, value) for key, value in result.items() if isinstance(value, (int, float, str)))
        return {"label": run.label, "command": command, "result": result}

    def refuse(self, section):
        """Says why a section cannot run here, by an exception."""
        if section.cores > os.cpu_count() and not self.quick:
            raise CannotRun(f"it needs {section.cores} cores, and here are {os.cpu_count()}")
        if section.data and not os.path.isdir(os.path.join(self.data, "mina")):
            raise CannotRun("there is no folder mina with MINA's traces in TRIB_DATA")
        if os.geteuid() and not section.name.startswith(("sim", "plans")):
            raise CannotRun("it needs root, for network namespaces")

    def run(self, section):
        self.refuse(section)
        os.makedirs(self.path("plots"), exist_ok=True)
        busy, began, known, runs = os.getloadavg()[0], time.monotonic(), {}, []
        commit, code = commit_now(), code_of(section.name, bare_files())
        limit = 60 * 3 * section.minutes + SLACK_S
        try:
            for command in section.before:
                self.execute(self.words(command), 60)
            for number, run in enumerate(section.runs):
                runs.append(self.run_one(section, number, run, limit, known))
        finally:
            for command in section.after:
                subprocess.run(self.words(command), cwd=ROOT, check=False, capture_output=True)
        result = {"section": section.name, "quick": self.quick, "date": str(datetime.date.today()), "commit": commit,
                  "code": code, "machine": machine_now(), "load": busy, "seconds": round(time.monotonic() - began, 1), "runs": runs}
        getattr(bench_tables, section.table)(runs)  # a result that makes no table is none
        with open(self.path(section.name + ".json"), "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)

    def result(self, section):
        path = self.path(section.name + ".json")
        if not os.path.exists(path):
            raise CannotRun("it has no result in " + os.path.relpath(path, ROOT))
        with open(path, encoding="utf-8") as file:
            return json.load(file)


# ---- pages ----

def pages():
    return [os.path.join(ROOT, FRONT), *sorted(glob.glob(os.path.join(ROOT, "docs/benchmarks/*.md")))]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_seeds(commands):
    """Commands that differ in their seed alone become one line, with the other seeds as a comment."""
    seeds = {}
    for command in commands:
        found = re.search(r"--seed (\d+)", command)
        same = re.sub(r"--seed \d+", "--seed *", command)
        seeds.setdefault(same if found else command, []).append(found.group(1) if found else None)
    return [command.replace("--seed *", f"--seed {of[0]}") + (f"  # and seed {', '.join(of[1:])}" if of[1:] and of[0] else "")
            for command, of in seeds.items()]


def stamp(result, is_brief):
    took = result["seconds"]
    lines = ["", f"Measured {result['date']} at commit `{result['commit']}`, code `{result['code']}`, on {result['machine']}.",
             f"Took {took / 60:.0f} min." if took >= 90 else f"Took {took:.0f} s."]
    if result["quick"]:
        lines.append(QUICK)
    if is_brief:
        section = bench_sections.BY_NAME[result["section"]]
        return lines + ["", f"Command: `make bench ONLY={section.name}`; [all rows](benchmarks/{section.page}.md)."]
    return lines + ["", "```sh", *without_seeds([run["command"] for run in result["runs"]]), "```"]


def table_of(name, is_brief):
    """The function that makes a table: the short form if there is one and it is wanted, else the whole; or None."""
    return is_brief and getattr(bench_tables, "brief_" + name, None) or getattr(bench_tables, name, None)


def block_of(section, view, result):
    """The text between the markers."""
    lines = table_of(view or section.table, bool(view))(result["runs"])
    while lines and not lines[0]:
        lines = lines[1:]
    if not view:
        for suffix in section.plots:
            lines += ["", f"![{section.what}](../plots/{section.name}{suffix}.svg)"]
    return "\n".join(lines + stamp(result, bool(view))) + "\n"


def without_stale(text):
    return re.sub("^" + re.escape(STALE) + r".*\n\n?", "", text, flags=re.M)


def marked(section, text, why):
    """The same figures with a mark that they are not of this version."""
    found = STAMP.search(text)
    if found:
        return f"{STALE}these figures are of commit {found.group(2)}; {why}\n\n" + without_stale(text)
    return NOT_MEASURED.format(section.name) + "\n"


def status_text():
    """The table of all sections, from the blocks of the detail pages."""
    states, times = {}, {}
    for path in pages():
        for name, view, text in BLOCK.findall(read(path)):
            if name in bench_sections.BY_NAME and not view:
                found, took = STAMP.search(text), TOOK.search(text)
                states[name] = (f"{found.group(1)}, `{found.group(2)}`" + (", **stale**" if STALE in text else "")
                                if found else "not yet")
                times[name] = f"{took.group(1)} {took.group(2)}" if took else None
    return "\n".join(bench_tables.table(
        ["section", "what it measures", "takes", "measured"],
        [[f"[{s.name}]({s.page}.md)", s.what, times.get(s.name) or f"about {s.minutes:g} min",
          states.get(s.name, "has no block")] for s in bench_sections.SECTIONS])) + "\n"


def write_pages(results, failures):
    """`results` and `failures` by the section's name; every other block stays, or is marked as stale."""
    files = bare_files()

    def replaced(match):
        name, view, text = match.groups()
        section = bench_sections.BY_NAME.get(name)
        if section is None:
            return match.group(0)
        if name in results:
            text = block_of(section, view, results[name])
            if results[name]["code"] != code_of(name, files):
                text = marked(section, text, CHANGED)
        elif name in failures:
            text = marked(section, text, f"the run of {datetime.date.today()} at {commit_now()} failed: {failures[name]}.")
        else:
            found = STAMP.search(text)
            if found and found.group(3) != code_of(name, files):
                text = marked(section, text, CHANGED)
            elif CHANGED in text:
                text = without_stale(text)
        return f"<!-- bench: {name}{' ' + view if view else ''} -->\n{text}<!-- /bench -->"

    for path in pages():
        text = BLOCK.sub(replaced, read(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    status = os.path.join(ROOT, STATUS)
    text = re.sub(r"(<!-- bench: status -->\n).*?(<!-- /bench -->)", lambda m: m.group(1) + status_text() + m.group(2),
                  read(status), flags=re.S)
    with open(status, "w", encoding="utf-8") as file:
        file.write(text)


def draw_plots(runner, section, result):
    """Plots of several runs; a program draws its own with --plot."""
    os.makedirs(runner.path("plots"), exist_ok=True)
    for suffix, svg in (getattr(bench_chart, section.draw)(result["runs"]) if section.draw else {}).items():
        with open(runner.path("plots", f"{section.name}{suffix}.svg"), "w", encoding="utf-8") as file:
            file.write(svg)


def copy_plots(runner, section):
    os.makedirs(PLOTS, exist_ok=True)
    for suffix in section.plots:
        name = f"{section.name}{suffix}.svg"
        shutil.copyfile(runner.path("plots", name), os.path.join(PLOTS, name))


# ---- the check ----

def check_block(where, name, view, text):
    section = bench_sections.BY_NAME.get(name)
    if section is None:
        return [f"{where}: there is no section {name}"]
    if view and not table_of(view, True):
        return [f"{where}: {name}: there is no view {view}"]
    if text.strip() == NOT_MEASURED.format(name):
        return []
    wrong = []
    if not STAMP.search(text):
        wrong.append(f"{where}: {name}: neither measured (date, commit, machine) nor said not to be")
    if not COMMAND.search(text):
        wrong.append(f"{where}: {name}: no command")
    if QUICK in text:
        wrong.append(f"{where}: {name}: figures of a quick run")
    return wrong


def check():
    """Sentences about what is wrong with the pages."""
    wrong, seen, shown = [], set(), set()
    for path in pages():
        text, where = read(path), os.path.relpath(path, ROOT)
        blocks = [found for found in BLOCK.findall(text) if found[0] != "status"]
        if len(OPENING.findall(text)) != text.count("<!-- /bench -->"):
            wrong.append(f"{where}: a block is not closed, or closed twice")
        for name, view, inside in blocks:
            wrong += check_block(where, name, view, inside)
            seen |= set() if view else {name}
        for link in re.findall(r"\]\(((?:\.\./plots|benchmarks)/[^)#]+)\)", text):
            if not os.path.exists(os.path.join(os.path.dirname(path), link)):
                wrong.append(f"{where}: there is no {link}")
        shown |= {os.path.basename(link) for link in re.findall(r"\]\([^)]*plots/([^)]+\.svg)\)", text)}
        if without_stale(text).count("\n") > MOST_LINES:
            wrong.append(f"{where}: more than {MOST_LINES} lines")
    for section in bench_sections.SECTIONS:
        if section.name not in seen:
            wrong.append(f"{section.name}: no page has a block of it")
        if not hasattr(bench_tables, section.table):
            wrong.append(f"{section.name}: there is no table {section.table}")
        if section.draw and not hasattr(bench_chart, section.draw):
            wrong.append(f"{section.name}: there is no drawing {section.draw}")
        for program in {run.command.split()[0] for run in section.runs} - {"trib"}:
            if "/" in program and not program.startswith("build/") and not os.path.exists(os.path.join(ROOT, program)):
                wrong.append(f"{section.name}: there is no {program}")
    for path in glob.glob(os.path.join(PLOTS, "*")):
        if os.path.basename(path) not in shown:
            wrong.append(f"docs/plots/{os.path.basename(path)}: no page shows it")
    if status_text() not in read(os.path.join(ROOT, STATUS)):
        wrong.append(f"{STATUS}: the table of sections is not as the blocks are; run scripts/bench_report.py --render")
    return wrong


# ---- command line ----

def chosen(only):
    """Sections by name. A name that no section has stands for all of that page, and for all that begin with it and a
    hyphen; planes* also works."""
    if not only.strip(" ,"):
        return [section for section in bench_sections.SECTIONS if section.cores <= os.cpu_count()]
    names, found = [name for name in re.split(r"[,\s]+", only) if name], []
    for name in names:
        some = [s for s in bench_sections.SECTIONS if fnmatch.fnmatchcase(s.name, name)] or [
            s for s in bench_sections.SECTIONS if s.page == name or s.name.startswith(name + "-")]
        if not some:
            sys.exit(f"bench_report: there is no section {name}; --list has them all")
        found += [section for section in some if section not in found]
    return found


def options_read():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="sections, with commas between (all that this machine can run)")
    parser.add_argument("--quick", action="store_true", help="short runs, to test the pipeline; pages stay as they are")
    parser.add_argument("--docs", action=argparse.BooleanOptionalAction, default=None,
                        help="write the pages (default: yes, but not with --quick)")
    parser.add_argument("--render", action="store_true", help="run nothing: write pages from the results that are there")
    parser.add_argument("--check", action="store_true", help="run nothing: are all blocks known and stamped?")
    parser.add_argument("--list", action="store_true", help="run nothing: the sections and how long they take")
    parser.add_argument("--trib", default=os.path.join(ROOT, "build/src/cli/trib"), help="the program (%(default)s)")
    options = parser.parse_args()
    options.trib = os.path.abspath(options.trib)
    if options.docs is None:
        options.docs = not options.quick
    return options


def list_print(sections):
    for section in sections:
        print(f"{section.name:20} {section.minutes:4g} min  docs/benchmarks/{section.page}.md  {section.what}")
    print(f"{'together':20} {sum(s.minutes for s in sections):4g} min")


def main():
    options = options_read()
    if options.check:
        wrong = check()
        print("\n".join(wrong) if wrong else f"{len(bench_sections.SECTIONS)} sections, all blocks known and stamped")
        return 1 if wrong else 0
    sections = chosen(options.only)
    if options.list:
        list_print(sections if options.only else bench_sections.SECTIONS)
        return 0
    runner, results, failures = Runner(options), {}, {}
    for section in sections:
        try:
            if not options.render:
                print(f"\n== {section.name}: {section.what}, about {section.minutes:g} min", flush=True)
                runner.run(section)
            results[section.name] = runner.result(section)
            block_of(section, "", results[section.name])
            draw_plots(runner, section, results[section.name])
            if options.docs:
                copy_plots(runner, section)
        except (CannotRun, OSError, KeyError, IndexError, TypeError, ValueError) as error:
            results.pop(section.name, None)
            if options.render and isinstance(error, CannotRun):
                continue  # nothing new of it: its block stays
            failures[section.name] = str(error) if isinstance(error, CannotRun) else f"{type(error).__name__}: {error}"
            print(f"== {section.name}: NOT MEASURED: {failures[section.name]}", file=sys.stderr, flush=True)
        if options.docs and not options.render:
            write_pages(results, failures)  # now, so that what is done stays if a later section is interrupted
        elif section.name in results and not options.docs:
            print("\n" + block_of(section, "", results[section.name]), flush=True)
    if options.docs and options.render:
        write_pages(results, failures)
    print(f"\n{len(results)} sections measured, {len(failures)} not" + (", which are marked as stale: " if failures else "") +
          ", ".join(failures), file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
