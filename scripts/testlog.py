#!/usr/bin/env python3
"""testlog.py LOG PREFIX: prints a Meson testlog.json as lines of verdict, name, and seconds or reason,
separated by tabs. A test of which cmocka skipped a part counts as skipped.

The output of a test goes to the file PREFIX + name + ".log"."""
import json
import re
import sys

CMOCKA_SKIPPED = re.compile(r'^\[  SKIPPED \] (\w+)$', re.M)
VERDICTS = {'OK': 'PASS', 'EXPECTEDFAIL': 'PASS', 'SKIP': 'SKIP'}


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else 'no reason given'


def main(log, prefix):
    with open(log) as rows:
        for row in map(json.loads, rows):
            verdict = VERDICTS.get(row['result'], 'FAIL')
            name = row['name'].split(' / ')[-1]
            text = row.get('stdout', '') + row.get('stderr', '')
            note = '%.1f s' % row['duration']
            parts = CMOCKA_SKIPPED.findall(text)
            if verdict == 'PASS' and parts:
                verdict, note = 'SKIP', 'skipped by the program: ' + ', '.join(sorted(set(parts)))
            elif verdict == 'SKIP':
                note = last_line(text)
            elif verdict == 'FAIL':
                note = '%s (exit code %s)' % (row['result'].lower(), row['returncode'])
            with open(prefix + name + '.log', 'w') as out:
                out.write(text)
            print(verdict, name, note, sep='\t')


main(*sys.argv[1:3])
