#!/usr/bin/env python3
"""demo_summary.py TRAIN.json BENCH.json [CLUSTER]: the last words of make run, in a box."""
import json
import sys


BUSY = 1.2  # if the median is so many times the fastest run, something else used the processors


def time_ms(bench, system, field):
    times = [row[field] for row in bench['results'] if row['system'] == system]
    return 1e3 * times[0] if times and times[0] else None


def is_busy(bench):
    return any(row['median_s'] > BUSY * row['min_s'] for row in bench['results'])


def lines(train, bench, cluster):
    yield 'test accuracy      %.2f %%  (%s)' % (100 * train['accuracy'], train['data'])
    yield 'weights            ' + ('bitwise equal on all %d workers' % train['workers']
                                   if train['weights_equal'] else 'DIFFER between workers')
    yield 'step of training   %.1f ms, %.1f ms of it waiting for the network' % (
        1e3 * train['step_s'], 1e3 * train['comm_s'] / train['steps'])
    busy = is_busy(bench)
    ours, ring = (time_ms(bench, system, 'min_s' if busy else 'median_s')
                  for system in ('tributary', 'ring'))
    yield ''
    size = train['gradient_bytes'] / 1e6
    if not cluster:
        n = train['workers']
        yield 'each worker sends %.2f MB a step; around a ring it would send %.2f MB' % (
            size, size * 2 * (n - 1) / n)
        yield 'sudo make run shows what that saves on 1 Gb/s links'
        return
    if not ours:
        return
    yield 'communication a step, %.2f MB of gradient, 1 Gb/s links:' % size
    longest = max(ours or 0, ring or 0)
    for name, time in (('Tributary', ours), ('ring', ring)):
        if time:
            bar = '#' * max(1, round(30 * time / longest))
            yield '  %-10s %8.2f ms  %s' % (name, time, bar)
    if ours and ring:
        yield '  %-10s %8.2f times the speed of a ring' % ('gain', ring / ours)
    if busy:
        yield '  Other programs used the processors meanwhile: these are the fastest runs of each.'


def main(train, bench, cluster=''):
    with open(train) as t, open(bench) as b:
        text = list(lines(json.load(t), json.load(b), cluster))
    width = max(map(len, text))
    print('\n+-' + '-' * width + '-+')
    for line in text:
        print('| ' + line.ljust(width) + ' |')
    print('+-' + '-' * width + '-+')


main(*sys.argv[1:])
