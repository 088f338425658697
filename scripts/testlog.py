#!/usr/bin/env python3
"""testlog.py LOG PREFIX: a Meson testlog.json as lines: verdict, name, seconds or reason, with tabs.

The output of a test goes to the file PREFIX + name + ".log"."""
import json
import sys

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
            if verdict == 'SKIP':
                note = last_line(text)
            elif verdict == 'FAIL':
                note = '%s (exit code %s)' % (row['result'].lower(), row['returncode'])
            with open(prefix + name + '.log', 'w') as out:
                out.write(text)
            print(verdict, name, note, sep='\t')


main(*sys.argv[1:3])
