#!/usr/bin/env python3
"""tidy.py BUILD FILE...: clang-tidy on files of a build folder that is up to date.

A file that was clean is not checked again while nothing changes that clang-tidy reads: the file, all that
it includes, the compiler's options, .clang-tidy, and clang-tidy itself. The cache is below
XDG_CACHE_HOME (~/.cache), as with ccache. TIDY_CACHE=off checks all files.

The analyzer follows the paths through a function until it has seen NODES states. Its own default of 225000
takes six times as long: TIDY_NODES=225000 for a deeper look.

Files that include a skeleton which bpftool generated are left out: its faults are bpftool's.

Faults go to standard output. The last line counts them. The exit code is 1 if there are any, and also
if there is no file to check."""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

NODES = os.environ.get('TIDY_NODES', '10000')
DEPTH = ['--extra-arg=' + word for word in ('-Xclang', '-analyzer-config', '-Xclang', 'max-nodes=' + NODES)]
SANITIZERS = re.compile(r' -f(no-)?sanitize\S*')
KEPT_S = 60 * 86400  # an entry that was not used for so long is forgotten


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def commands_of(build):
    """The compiler's command for each file, by its path from here. If a file has several, the first."""
    with open(os.path.join(build, 'compile_commands.json')) as rows:
        commands = {}
        for row in json.load(rows):
            row['command'] = SANITIZERS.sub('', row['command'])  # they add code that is none of ours
            commands.setdefault(os.path.normpath(os.path.join(build, row['file'])), row)
        return commands


def includes_of(build):
    """Object -> the files that it was made of, as ninja knows from the compiler."""
    includes, now = {}, None
    for line in output_of('ninja', '-C', build, '-t', 'deps').splitlines():
        if line.startswith('    '):
            now.append(line.strip())
        elif ': #deps ' in line:
            now = includes.setdefault(line.split(': #deps ')[0], [])
    return includes


class Keys:
    """The key of a file changes with everything that clang-tidy reads."""

    def __init__(self, build):
        self.build = build
        self.includes = includes_of(build)
        self.hashes = {}
        with open('.clang-tidy') as config:
            self.common = output_of('clang-tidy', '--version') + config.read() + NODES

    def hash_of(self, path):
        if path not in self.hashes:
            with open(os.path.join(self.build, path), 'rb') as text:
                self.hashes[path] = hashlib.sha256(text.read()).hexdigest()
        return self.hashes[path]

    def key(self, command):
        """None: ninja does not know what the file includes."""
        includes = self.includes.get(command['output'])
        if not includes:
            return None
        parts = [self.common, command['command'].replace(os.getcwd(), '.')]
        parts += ['%s %s' % (path, self.hash_of(path)) for path in sorted(includes)]
        return hashlib.sha256('\n'.join(parts).encode()).hexdigest()


    def has_skeleton(self, command):
        return any(path.endswith('.skel.h') for path in self.includes.get(command['output'], ()))


class Cache:
    """An empty file for each key that was clean."""

    def __init__(self):
        home = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
        self.folder = os.path.join(home, 'tributary', 'clang-tidy')
        self.on = os.environ.get('TIDY_CACHE') != 'off'
        try:
            os.makedirs(self.folder, exist_ok=True)
            self.forget()
        except OSError as error:
            print('there is no cache: %s' % error)
            self.on = False

    def forget(self):
        for entry in os.scandir(self.folder):
            if entry.stat().st_mtime < time.time() - KEPT_S:
                os.unlink(entry.path)

    def has(self, key):
        if not self.on or not key:
            return False
        try:
            os.utime(os.path.join(self.folder, key))
        except OSError:
            return False
        return True

    def add(self, key):
        if self.on and key:
            with open(os.path.join(self.folder, key), 'w'):
                pass


def look(folder, path):
    """Whether the file is clean, and the output."""
    done = subprocess.run(['clang-tidy', '--quiet', '-p', folder, *DEPTH, path], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def main(build, *files):
    commands, keys, cache = commands_of(build), Keys(build), Cache()
    wanted = {path: keys.key(commands[path]) for path in files
              if path in commands and not keys.has_skeleton(commands[path])}
    news = [path for path in wanted if not cache.has(wanted[path])]
    news.sort(key=os.path.getsize, reverse=True)  # the longest first, so that none runs alone at the end
    faulty = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        with open(os.path.join(folder, 'compile_commands.json'), 'w') as out:
            json.dump([commands[path] for path in news], out)
        for path, (clean, text) in zip(news, pool.map(lambda path: look(folder, path), news)):
            if clean:
                cache.add(wanted[path])
            else:
                faulty += 1
                print(text)
    print('%d files: %d unchanged since they were clean, %d checked, %d with faults' %
          (len(wanted), len(wanted) - len(news), len(news), faulty))
    return 1 if faulty or not wanted else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
