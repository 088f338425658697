#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of bench_report.py, on pages and a git repository of their own. Nothing is measured."""
import os
import subprocess
import tempfile
import unittest
import xml.dom.minidom

import bench_chart
import bench_report
import bench_sections
import bench_tables

MACHINE = "2 cores of a test (none), Linux 6"
RUN = {"label": "", "command": "trib bench deploy", "result": {"start_s": [0.5], "join_s": [0.1]}}


def code_now(section="deploy"):
    return bench_report.code_of(section, bench_report.bare_files())


def result(commit, quick=False):
    return {"section": "deploy", "quick": quick, "date": "2026-01-02", "commit": commit, "code": code_now(),
            "machine": MACHINE, "load": 0.1, "seconds": 30, "runs": [RUN]}


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, bench_report, "ROOT", bench_report.ROOT)
        self.addCleanup(setattr, bench_report, "PLOTS", bench_report.PLOTS)
        bench_report.ROOT, bench_report.PLOTS = folder.name, os.path.join(folder.name, "docs/plots")
        os.makedirs(os.path.join(folder.name, "docs/benchmarks"))
        os.mkdir(os.path.join(folder.name, "src"))
        self.write("src/code.c", "1\n")
        self.write("docs/benchmarks.md", self.block("deploy deploy"))
        self.write("docs/benchmarks/status.md", "<!-- bench: status -->\n<!-- /bench -->\n")
        self.write("docs/benchmarks/failover.md", self.block("deploy") + self.block("kills"))
        self.git("init", "-q")
        self.commit()
        bench_report.write_pages({}, {})

    @staticmethod
    def block(words):
        return f"<!-- bench: {words} -->\n" + bench_report.NOT_MEASURED.format(words.split()[0]) + "\n<!-- /bench -->\n"

    def git(self, *words):
        subprocess.run(["git", "-C", bench_report.ROOT, "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "test")
        return bench_report.commit_now()

    def write(self, path, text):
        with open(os.path.join(bench_report.ROOT, path), "w", encoding="utf-8") as file:
            file.write(text)

    def page(self):
        return bench_report.read(os.path.join(bench_report.ROOT, "docs/benchmarks/failover.md"))

    def wrong(self):
        """What the check says about the blocks; sections that have none here do not count."""
        elsewhere = ("no page has a block", "there is no tests/", "there is no scripts/", "there is no benchmarks/")
        return [line for line in bench_report.check() if not any(words in line for words in elsewhere)]

    def measure(self):
        commit = bench_report.commit_now()
        bench_report.write_pages({"deploy": result(commit)}, {})
        return commit

    def test_comments_are_no_code(self):
        bare = bench_report.without_comments
        self.assertEqual(bare('int a; /* one */\n'), bare('int  a;\n// two\n'))
        self.assertNotEqual(bare('int a;'), bare('int b;'))
        self.assertNotEqual(bare('f("/* a */ \\" ")'), bare('f("/* b */ \\" ")'))

    def test_a_result_is_written_with_its_stamp(self):
        commit = self.measure()
        self.assertIn(f"Measured 2026-01-02 at commit `{commit}`, code `{code_now()}`, on {MACHINE}.", self.page())
        self.assertIn("```sh\ntrib bench deploy\n```", self.page())
        self.assertIn("run `make bench ONLY=kills`", self.page())
        self.assertEqual(self.wrong(), [])

    def test_pieces_merge(self):
        self.measure()
        before = self.page()
        self.commit()  # pages alone: the code is the same
        bench_report.write_pages({}, {})
        self.assertEqual(self.page(), before)

    def test_a_failed_run_leaves_figures_and_marks_them(self):
        commit = self.measure()
        bench_report.write_pages({}, {"deploy": "it broke", "kills": "it broke"})
        bench_report.write_pages({}, {"deploy": "it broke again"})
        self.assertEqual(self.page().count(bench_report.STALE), 1)
        self.assertIn(f"these figures are of commit {commit}; the run of", self.page())
        self.assertIn("failed: it broke again.", self.page())
        self.assertIn("500.00 ms", self.page())
        self.measure()
        self.assertNotIn(bench_report.STALE, self.page())

    def test_figures_of_other_code_are_marked(self):
        self.measure()
        self.write("src/code.c", "2\n")
        self.commit()
        bench_report.write_pages({}, {})
        self.assertIn("the code has changed since", self.page())
        self.assertIn("**stale**", bench_report.status_text())

    def test_code_of_others_does_not_count(self):
        self.write("src/meson.build", "files(\n  'code.c',\n)\n")
        before, glm = code_now(), code_now("glm-hosts")
        os.mkdir(os.path.join(bench_report.ROOT, "src/glm"))
        self.write("src/glm/rows.c", "1\n")
        self.write("src/meson.build", "files(\n  'code.c',\n  'glm/rows.c',\n)\n")
        self.assertEqual(code_now(), before)
        self.assertNotEqual(code_now("glm-hosts"), glm)
        self.write("src/meson.build", "files(\n  'code.c',\n)\nflags = '-O1'\n")
        self.assertNotEqual(code_now(), before)

    def test_the_same_code_in_another_history_is_not_old(self):
        self.measure()
        self.write("src/code.c", "/* a comment */ 1\n")
        self.git("checkout", "-q", "--orphan", "other")
        self.commit()
        bench_report.write_pages({}, {})
        self.assertNotIn(bench_report.STALE, self.page())

    def test_figures_without_a_digest_are_old(self):
        self.measure()
        self.write("docs/benchmarks/failover.md", self.page().replace(f", code `{code_now()}`,", ""))
        bench_report.write_pages({}, {})
        self.assertIn(bench_report.STALE, self.page())

    def test_changes_that_git_does_not_have_are_told(self):
        self.write("src/code.c", "2\n")
        self.assertTrue(self.measure().endswith("+changes"))
        self.assertEqual(self.wrong(), [])

    def test_the_check_finds_what_is_wrong(self):
        commit = self.measure()
        for text, sentence in ((self.page().replace(commit, ""), "neither measured"),
                               (self.page().replace("```sh", "```"), "no command"),
                               (self.page().replace("bench: kills", "bench: killed"), "there is no section killed"),
                               (self.page().replace("<!-- /bench -->", "", 1), "not closed"),
                               (self.page() + "![x](../plots/gone.svg)\n", "there is no ../plots/gone.svg")):
            self.write("docs/benchmarks/failover.md", text)
            self.assertTrue([line for line in self.wrong() if sentence in line], sentence)
            self.write("docs/benchmarks/failover.md", self.block("deploy") + self.block("kills"))
            self.measure()
        self.write("docs/benchmarks/loss.md", "\n" * (bench_report.MOST_LINES + 1))
        self.write("docs/benchmarks/status.md", "<!-- bench: status -->\n<!-- /bench -->\n")
        self.assertIn(f"docs/benchmarks/loss.md: more than {bench_report.MOST_LINES} lines", self.wrong())
        self.assertTrue([line for line in self.wrong() if line.startswith("docs/benchmarks/status.md: the table")])
        bench_report.write_pages({"deploy": result(commit, quick=True)}, {})
        self.assertTrue([line for line in self.wrong() if "quick run" in line])


def learned(label, *accuracies):
    curve = [{"epoch": i / 2, "samples": 100 * i, "loss": 1 / i, "accuracy": a} for i, a in enumerate(accuracies, 1)]
    return {"label": label, "command": "train", "result": {"accuracy": accuracies[-1], "curve": curve}}


class Charts(unittest.TestCase):
    RUNS = [learned("mlp|f32|1", 0.8, 0.9), learned("mlp|f32|2", 0.6, 0.96), learned("mlp|a < b|1", 0.8, 1.0)]

    def test_marks_are_around_the_values(self):
        self.assertEqual(bench_chart.marks(1.2, 30), [1, 2, 5, 10, 20, 50])
        self.assertEqual(bench_chart.marks(2, 5), [2, 5])
        self.assertEqual(bench_chart.marks(5, 5), [5, 10])
        self.assertEqual(bench_chart.marks(0.03, 0.04), [0.02, 0.05])

    def test_labels_stand_apart_and_inside(self):
        found = bench_chart.spread([476, 470, 100, 101])
        self.assertEqual(found, [476, 457, 100, 119])

    def test_a_line_is_the_mean_of_its_seeds(self):
        plots = bench_chart.short_training(self.RUNS)
        self.assertEqual(list(plots), ["-mlp"])
        drawn = xml.dom.minidom.parseString(plots["-mlp"])
        words = [node.firstChild.data for node in drawn.getElementsByTagName("text")]
        self.assertIn("f32  7.00 %", words)  # of 10 % and 4 %
        self.assertIn("a < b  0.01 %", words)
        self.assertEqual(len(drawn.getElementsByTagName("polyline")), 2)
        band = drawn.getElementsByTagName("polygon")[-1].getAttribute("points").split()
        self.assertEqual(len(band), 4)
        self.assertEqual(band[0].split(",")[0], band[3].split(",")[0])
        self.assertGreater(float(band[0].split(",")[1]), float(band[3].split(",")[1]))  # low errors are further down

    def test_the_table_has_mean_and_spread(self):
        self.assertEqual(bench_tables.short_training(self.RUNS)[2],
                         "| mlp | f32 | 90.00 %, 96.00 % | 93.00 % | 6.00 % | 0.5000 |")


class Latency(unittest.TestCase):
    def row(self, system, hosts, algorithm=None, **more):
        return {"system": system, "algorithm": algorithm, "plane": "udp", "hosts": hosts, "bytes": 32, "median_s": 7.25e-6,
                "p1_s": 6e-6, "p99_s": 2.5e-4, "spread": 0.5, "best_peer_ratio": 1.5, **more}

    def test_rows(self):
        rows = [self.row("xdp", 2, "slot"), self.row("dense", 2, "dense", disturbed=3), self.row("veth", 2, best_peer_ratio=None),
                self.row("gloo", 4, median_s=None, p1_s=None, p99_s=None)]
        runs = [{"label": "", "command": "", "result": {"results": rows, "settings": {"left_out": "pisa (no such plane)"}}}]
        self.assertEqual(bench_tables.latency(runs)[2:], [
            "| 2 | 32 bytes | xdp (slot) | 7.2 µs | 6.0 µs | 250 µs | 50.0 % | 1.50 |",
            "|  |  | dense | 7.2 µs | 6.0 µs | 250 µs | 50.0 % | 1.50 |",
            "|  |  | veth | 7.2 µs | 6.0 µs | 250 µs | 50.0 % |  |",
            "| 4 | 32 bytes | gloo | failed |  |  |  |  |", "",
            "**Disturbed:** 3 runs began while other work kept the machine busy.", "", "**Left out:** pisa (no such plane)."])


class Sections(unittest.TestCase):
    def test_names(self):
        self.assertEqual(len(bench_sections.BY_NAME), len(bench_sections.SECTIONS))
        names = [section.name for section in bench_report.chosen("sim-fig11,share")]
        self.assertEqual(names, ["sim-fig11", "share-two", "share-three"])
        self.assertEqual([section.name for section in bench_report.chosen("planes")], ["planes"])
        self.assertIn("planes-load", [section.name for section in bench_report.chosen("planes*")])
        self.assertIn("plans", [section.name for section in bench_report.chosen("trees")])
        with self.assertRaises(SystemExit):
            bench_report.chosen("no-such")


if __name__ == "__main__":
    unittest.main()
