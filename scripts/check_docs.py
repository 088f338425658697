#!/usr/bin/env python3
"""check_docs.py: fails if a page links to a missing page or heading, or names a missing source file.

Pages are all tracked *.md files. A source file is a name in backticks that ends in .c, .h, .sh or .py;
its folder may be left out, as file names in src/ are unique.
"""
import os
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAME = re.compile(r"`([\w./-]+\.(?:c|h|sh|py))`")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def anchors(text):
    """Headings as GitHub turns them into anchors."""
    found = set()
    for heading in re.findall(r"^#+ (.*)", text, re.M):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


def main():
    tracked = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split()
    pages = [path for path in tracked if path.endswith(".md")]
    suffixes = {path[at:] for path in tracked for at in [0] + [i + 1 for i, c in enumerate(path) if c == "/"]}
    faults = []
    for page in pages:
        with open(page) as file:
            text = FENCE.sub("", file.read())
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
    print("\n".join(faults) if faults else "%d pages: every link and file name is right" % len(pages))
    sys.exit(1 if faults else 0)


main()
