#!/usr/bin/env python3
"""check_docs.py: fails if a page links to a missing page or heading, or names a missing file, folder, test or
section of `make bench`.

Pages are all tracked *.md files. A source file is a name in backticks that ends in .c, .h, .sh or .py;
its folder may be left out, as file names in src/ are unique. A test may be named without its ending.

Text between fences is not checked, except in pages with pictures of the code (PICTURES): there, folder/file.c has to
be the end of exactly one path below src/.
"""
import os
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAME = re.compile(r"`([\w./-]+\.(?:c|h|sh|py))`")
FOLDER = re.compile(r"`((?:adapters|bench|docs|examples|include|scripts|src|tests)/[\w/-]+)`")
TEST = re.compile(r"`((?:test|fuzz)_\w+)`")
SECTIONS = re.compile(r"\bONLY=([\w,-]+)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
DRAWN = re.compile(r"(?<![\w./-])[\w/-]+/[\w-]+\.[ch]\b")
PICTURES = ("docs/architecture.md",)


def anchors(text):
    """Headings as GitHub turns them into anchors."""
    found = set()
    for heading in re.findall(r"^#+ (.*)", text, re.M):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


def picture_faults(page, text, tracked):
    """Names in the page's pictures that do not mean one file of src/."""
    names = DRAWN.findall("\n".join(FENCE.findall(text)))
    sources = [path for path in tracked if path.startswith("src/")]
    faults = [] if names else ["%s: its pictures name no file" % page]
    for name in names:
        matches = sum(path.endswith("/" + name) for path in sources)
        if matches != 1:
            faults.append("%s: a picture names %s, which is the end of %d paths in src/" % (page, name, matches))
    return faults


def main():
    tracked = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split()
    pages = [path for path in tracked if path.endswith(".md")]
    suffixes = {path[at:] for path in tracked for at in [0] + [i + 1 for i, c in enumerate(path) if c == "/"]}
    stems = {os.path.basename(path).partition(".")[0] for path in tracked}
    with open("scripts/bench_sections.py") as file:
        sections = set(re.findall(r"""["']([\w-]+)["']""", file.read()))
    faults = ["there is no page %s" % page for page in PICTURES if page not in pages]
    for page in pages:
        with open(page) as file:
            whole = file.read()
        text = FENCE.sub("", whole)
        if page in PICTURES:
            faults += picture_faults(page, whole, tracked)
        for link in LINK.findall(text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(target):
                faults.append("%s: the link %s leads nowhere" % (page, link))
            elif anchor and target.endswith(".md"):
                with open(target) as file:
                    if anchor not in anchors(file.read()):
                        faults.append("%s: %s has no heading #%s" % (page, target, anchor))
        for name in NAME.findall(text):
            if "NAME" not in name and name.lstrip("./") not in suffixes:
                faults.append("%s: there is no file %s" % (page, name))
        for name in FOLDER.findall(text):
            if "NAME" not in name and not os.path.exists(name):
                faults.append("%s: there is no folder %s" % (page, name))
        for name in TEST.findall(text):
            if name not in stems:
                faults.append("%s: there is no test %s" % (page, name))
        for name in ",".join(SECTIONS.findall(text)).split(","):
            if name and name != "NAME" and name not in sections:
                faults.append("%s: make bench has no section %s" % (page, name))
    print("\n".join(faults) if faults else "%d pages: every link and file name is right" % len(pages))
    sys.exit(1 if faults else 0)


main()
