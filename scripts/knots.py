#!/usr/bin/env python3
"""knots.py BUILD [--list]: holds src/ and adapters/ to the house rules on files and folders. See CONTRIBUTING.md.

1. No circle of calls between more than 3 files, and no circle at all between folders, nor between the
   folders right below src/ and adapters/ with all that is in them.
2. No folder has more than 25 files of its own.
3. No file name occurs in two folders, also with another ending: one name, one thing.
4. Only the folders of BORDERS call the functions that a border encloses, inline ones too.

Calls are read from the symbols of the built objects, so that a call counts whichever header declares
the function. Inline functions leave no symbol: for those the text is read. A header belongs to the file
of the same name, so x.h and x.c are one. Between folders an #include counts too, also if nothing is called.

EXCEPTIONS lists circles that may stay, each with its reason. An exception that is not needed is an error,
and so is a source without an object, or in no build: the check must not pass because it saw nothing.

--list also shows the small circles. --self-test checks this script on made-up sources."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

ROOTS = 'src', 'adapters'
# A Python package: its files have the names by which programs import them, and no symbols.
PYTHON = os.path.join('adapters', 'python')
LARGEST_FILE_CIRCLE = 3
MOST_FILES = 25  # of a folder's own
MAY_REPEAT = {'meson.build', 'LICENSE'}  # file names
# ('src/folder/file.c', ...) or ('src/folder', ...), sorted: why the circle may stay.
EXCEPTIONS = {}
# What encloses functions, by their names, within which folder, and the folders inside that may call them.
BORDERS = [
    ('the cells of a stream', re.compile(r'\b(?:dense|uplink)_\w+'), 'src/plane',
     ('src/plane/stream', 'src/plane/xdp/bpf')),
]
# Sources of builds that lack something, and programs for the kernel.
ELSEWHERE = re.compile(r'_none\.c$|\.bpf\.c$')

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
# The name of an inline function stands at the start of a line or behind its type, before a parenthesis.
INLINE = re.compile(r'^(?:static\s+(?:inline|__always_inline)|ALWAYS_INLINE)\b[^;{}()]*?\b(\w+)\s*\(', re.M)
CALL = re.compile(r'\b([A-Za-z_]\w*)\s*\(')


def objects(build):
    """Source file -> its objects, as the compiler was told to write them."""
    found = {}
    with open(os.path.join(build, 'compile_commands.json')) as commands:
        for command in json.load(commands):
            source = os.path.relpath(os.path.join(command['directory'], command['file']))
            if source.split(os.sep)[0] in ROOTS and source.endswith('.c'):
                found.setdefault(source, []).append(os.path.join(command['directory'], command['output']))
    return found


def walk():
    """Each folder with its files, below all roots."""
    for root in ROOTS:
        for folder, inside, names in os.walk(root):
            inside[:] = [name for name in inside if os.path.join(folder, name) != PYTHON]
            yield folder, names


def symbols(paths):
    """Object -> names that it defines for others, and names that it takes from others."""
    found = {path: (set(), set()) for path in paths}
    # One nm for all objects: a process for each takes longer than the names.
    listed = subprocess.run(['nm', '-P', '-A', *paths], check=True, capture_output=True, text=True).stdout if paths else ''
    for line in listed.splitlines():
        path, _, about = line.partition(': ')
        name, kind = about.split()[:2]
        defined, wanted = found[path]
        if kind in 'Uwv':
            wanted.add(name)
        elif kind.isupper():
            defined.add(name)
    return found


def texts():
    """The C files and headers, each with its text."""
    found = {}
    for folder, names in walk():
        for name in names:
            if name.endswith(('.c', '.h')):
                path = os.path.join(folder, name)
                with open(path) as text:
                    found[path] = text.read()
    return found


def unit(path, files):
    """A header belongs to the file of the same name, if there is one."""
    source = path[:-2] + '.c'
    return source if source in files else path


def only_owners(owners):
    """Several programs may define the same name (main, a table); such a name belongs to no file."""
    return {name: min(files) for name, files in owners.items() if len(files) == 1}


def symbol_calls(built):
    """Source file -> source files whose functions or variables it names; and objects that are missing."""
    source_of = {path: source for source, paths in built.items() for path in paths}
    missing = [path for path in source_of if not os.path.exists(path)]
    owners, wants = {}, {}
    for path, (defined, wanted) in symbols([path for path in source_of if path not in missing]).items():
        wants.setdefault(source_of[path], set()).update(wanted)
        for name in defined:
            owners.setdefault(name, set()).add(source_of[path])
    owner = only_owners(owners)
    graph = {source: {owner[name] for name in names if name in owner} - {source} for source, names in wants.items()}
    return graph, owner, missing


def inline_calls(files, owner):
    """The same for calls of inline functions, and for calls that inline functions make."""
    bare = {path: COMMENT.sub(' ', text) for path, text in files.items()}
    owners = {}
    for path, text in bare.items():
        if path.endswith('.h'):
            for name in INLINE.findall(text):
                owners.setdefault(name, set()).add(unit(path, files))
    inline = only_owners(owners)
    graph = {}
    for path, text in bare.items():
        known = dict(owner, **inline) if path.endswith('.h') and INLINE.search(text) else inline
        body = text[text.find('{'):] if path.endswith('.h') else text
        here = unit(path, files)
        for name in set(CALL.findall(body)):
            # A header also declares functions of its own, which is no call.
            if known.get(name, here) != here and not (path.endswith('.h') and declares(text, name)):
                graph.setdefault(here, set()).add(known[name])
    return graph


def declares(text, name):
    return re.search(r'^[A-Za-z_][\w \t*]*\b%s\s*\([^{}]*?\)[^{;]*;' % re.escape(name), text, re.M) is not None


def include_graph(files):
    """File -> files that it includes, those of src/ and adapters/ only."""
    graph = {}
    for path, text in files.items():
        graph[path] = set()
        for include in INCLUDE.findall(text):
            for base in (os.path.dirname(path), 'src', floor(path)):
                target = os.path.normpath(os.path.join(base, include))
                if target in files:
                    graph[path].add(target)
                    break
    return graph


def merged(*graphs):
    result = {}
    for graph in graphs:
        for node, others in graph.items():
            result.setdefault(node, set()).update(others)
    return result


def circles(graph):
    """The strongly connected components of more than one member (Tarjan), largest first."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = []
            while not members or members[-1] != node:
                members.append(stack.pop())
                on.discard(members[-1])
            if len(members) > 1:
                found.append(sorted(members))

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def floor(path):
    """The folder right below src/ or adapters/ that a file is in."""
    return os.sep.join(os.path.dirname(path).split(os.sep)[:2])


def folders(place, *graphs):
    """Folder -> folders that it needs; and for each such pair the files that say so."""
    result, why = {}, {}
    for graph in graphs:
        for source, others in graph.items():
            for other in others:
                a, b = place(source), place(other)
                if a != b:
                    result.setdefault(a, set()).add(b)
                    why.setdefault((a, b), set()).add((source, other))
    return result, why


def excepted(members, exceptions, used):
    used.update({tuple(members)} & set(exceptions))
    return tuple(members) in exceptions


def knots(calls, includes, exceptions, everything):
    """Lines about the circles, and how many of them are faults."""
    lines, bad, used = [], 0, set()
    for members in circles(calls):
        large = len(members) > LARGEST_FILE_CIRCLE
        if excepted(members, exceptions, used) or not (large or everything):
            continue
        bad += large
        lines.append('%d files call each other in a circle%s:' % (len(members), '' if large else ', which is allowed'))
        lines += ['  %s -> %s' % (member, ', '.join(sorted(calls[member] & set(members)))) for member in members]
    for place in os.path.dirname, floor:
        graph, why = folders(place, calls, includes)
        for members in circles(graph):
            if excepted(members, exceptions, used):
                continue
            bad += 1
            lines.append('%d folders need each other in a circle:' % len(members))
            for a in members:
                for b in sorted(graph[a] & set(members)):
                    lines.append('  %s -> %s' % (a, b))
                    lines += ['      %s -> %s' % pair for pair in sorted(why[a, b])[:None if everything else 3]]
    for unused in sorted(set(exceptions) - used):
        bad += 1
        lines.append('this exception is not needed: %s' % ', '.join(unused))
    return lines, bad


def crowds():
    """Lines about folders with too many files, and about names that occur twice."""
    lines, places = [], collections.defaultdict(set)
    for folder, names in walk():
        if len(names) > MOST_FILES:
            lines.append('%s has %d files of its own, more than %d' % (folder, len(names), MOST_FILES))
        for name in set(names) - MAY_REPEAT:
            places[os.path.splitext(name)[0]].add(folder)
    for stem in sorted(places):
        if len(places[stem]) > 1:
            lines.append('the file name %s occurs in %s' % (stem, ', '.join(sorted(places[stem]))))
    return lines


def trespasses(files):
    """Lines about calls across a border. Functions of the file itself do not count."""
    lines = []
    for path in sorted(files):
        for what, names, within, inside in BORDERS:
            folder = os.path.dirname(path)
            if not (folder + os.sep).startswith(within + os.sep) or folder in inside:
                continue
            called = {name for name in CALL.findall(files[path]) if names.match(name)} - owned(path, files)
            lines += ['%s calls %s(): only %s may look into %s' % (path, name, ' and '.join(inside), what) for name in sorted(called)]
    return lines


def owned(path, files):
    """The functions that this file defines for itself."""
    return set(re.findall(r'^static\b[^;{}()]*?\b(\w+)\s*\(', files[path], re.M))


def main(build, everything=False, exceptions=EXCEPTIONS):
    files, built = texts(), objects(build)
    calls, owner, missing = symbol_calls(built)
    inline = inline_calls(files, owner)
    calls = merged(calls, inline)
    lines, bad = knots(calls, include_graph(files), exceptions, everything)
    missing += ['all of %s/' % root for root in ROOTS if not any(source.startswith(root + os.sep) for source in built)]
    faults = ['not built: %s' % path for path in missing] + crowds() + trespasses(files)
    faults += ['in no build: %s' % path for path in sorted(files)
               if built and path.endswith('.c') and path not in built and not ELSEWHERE.search(path)]
    print('\n'.join(lines + faults))
    print('%d files, %d calls between them, %d folders: %s' % (
        len(calls), sum(map(len, calls.values())), len({os.path.dirname(path) for path in files}),
        '%d faults' % (bad + len(faults)) if bad + len(faults) else 'no knots'))
    return 1 if bad + len(faults) else 0


ABSENT = 'int b; /* and no compiler is told of it */'
IDLE = 'adapters/idle/idle.c'  # in each self-test, so that there is an adapter
# Each with files of src/ (or adapters/), exceptions, words that the output must have, and the exit code.
SELF_TESTS = [
    ('no circle', {'a/a.c': 'int b(void); int a(void) { return b(); }', 'b/b.c': 'int b(void) { return 1; }'},
     {}, 'no knots', 0),
    ('three files in one folder', {'a/%d.c' % i: 'int f%d(void); int f%d(void) { return f%d(); }' % (
        (i + 1) % 3, i, (i + 1) % 3) for i in range(3)}, {}, 'no knots', 0),
    ('four files in one folder', {'a/%d.c' % i: 'int f%d(void); int f%d(void) { return f%d(); }' % (
        (i + 1) % 4, i, (i + 1) % 4) for i in range(4)}, {}, '4 files call each other', 1),
    ('two folders that call', {'a/a.c': 'int b(void); int a(void) { return b(); }',
                               'b/b.c': 'int a(void); int b(void) { return a(); }'}, {}, '2 folders need', 1),
    ('the same, by an #include', {'a/a.c': 'int b(void); int a(void) { return b(); }', 'a/t.h': 'struct t;',
                                  'b/b.c': '#include "a/t.h"\nint b(void) { return 1; }'}, {}, '2 folders need', 1),
    ('the same, by an inline function', {
        'a/a.h': 'static inline int a(void)\n{\n\treturn 1;\n}\n', 'a/c.c': 'int b(void); int c(void) { return b(); }',
        'b/b.c': 'int b(void) { return a(); }\n'}, {}, '2 folders need', 1),
    ('the same, by another kind of inline function', {
        'a/a.h': 'ALWAYS_INLINE int a(void)\n{\n\treturn 1;\n}\n', 'a/c.c': 'int b(void); int c(void) { return b(); }',
        'b/b.c': 'int b(void) { return a(); }\n'}, {}, '2 folders need', 1),
    ('two floors', {'a/low/l.c': 'int l(void) { return 1; }', 'a/top/t.c': 'int b(void); int t(void) { return b(); }',
                    'b/b.c': 'int l(void); int b(void) { return l(); }'}, {}, 'src/a -> src/b', 1),
    ('an exception', {'a/a.c': 'int b(void); int a(void) { return b(); }',
                      'b/b.c': 'int a(void); int b(void) { return a(); }'},
     {('src/a', 'src/b'): 'for the test'}, 'no knots', 0),
    ('an exception that is not needed', {'a/a.c': 'int a(void) { return 1; }'},
     {('src/a', 'src/b'): 'for the test'}, 'not needed: src/a, src/b', 1),
    ('a look into a cell', {'plane/lane/a.c': 'int dense_take(void); int a(void) { return dense_take(); }',
                            'engine/d.c': 'int dense_take(void) { return 1; }'}, {}, 'a.c calls dense_take(): only', 1),
    ('a look from the room of the cells', {
        'plane/stream/a.c': 'int dense_take(void); int a(void) { return dense_take(); }',
        'engine/d.c': 'int dense_take(void) { return 1; }'}, {}, 'no knots', 0),
    ('a crowded folder', {'a/%d.c' % i: 'int f%d;' % i for i in range(MOST_FILES + 1)}, {}, 'has 26 files', 1),
    ('a name twice', {'a/x.c': 'int a;', 'b/x.c': 'int b;'}, {}, 'file name x occurs in src/a, src/b', 1),
    ('a name twice, with another ending', {'a/x.c': 'int a;', 'b/x.h': 'struct x;'}, {}, 'file name x occurs in', 1),
    ('a header beside its source', {'a/x.c': 'int a;', 'a/x.h': 'struct x;'}, {}, 'no knots', 0),
    ('a program for the kernel', {'a/x.c': 'int a;', 'a/bpf/x.bpf.c': ABSENT}, {}, 'no knots', 0),
    ('an object that is missing', {'a/a.c': None}, {}, 'not built: ', 1),
    ('a source in no build', {'a/a.c': 'int a;', 'a/b.c': ABSENT}, {}, 'in no build: src/a/b.c', 1),
    ('four files of an adapter', {'adapters/a/%d.c' % i: 'int f%d(void); int f%d(void) { return f%d(); }' % (
        (i + 1) % 4, i, (i + 1) % 4) for i in range(4)}, {}, '4 files call each other', 1),
    ('two folders of an adapter, by an #include of its own root', {
        'adapters/a/c/t.h': 'struct t;', 'adapters/a/b/b.c': '#include "c/t.h"\nint b;',
        'adapters/a/c/c.c': 'extern int b; int c(void) { return b; }'}, {}, '2 folders need', 1),
    ('an adapter and src/', {'adapters/a/a.c': 'int b(void); int a(void) { return b(); }',
                             'b/b.c': 'int a(void); int b(void) { return a(); }'}, {}, 'adapters/a -> src/b', 1),
    ('a crowded adapter', {'adapters/a/%d.c' % i: 'int f%d;' % i for i in range(MOST_FILES + 1)}, {}, 'has 26 files', 1),
    ('a name of an adapter in src/', {'adapters/a/x.c': 'int a;', 'b/x.c': 'int b;'}, {},
     'file name x occurs in adapters/a, src/b', 1),
    ('a Python package', {'adapters/python/b.py': '', 'b/b.c': 'int b;'}, {}, 'no knots', 0),
    ('no adapter in the build', {'a/a.c': 'int a;', IDLE: ABSENT}, {}, 'not built: all of adapters/', 1),
    ('nothing at all', {}, {}, 'not built: all of src/', 1),
]


def self_test_one(files, exceptions):
    """The exit code and the output for these files."""
    if files:
        files = dict({IDLE: 'int idle;'}, **files)
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for path, text in files.items():
            path = path if path.startswith('adapters/') else os.path.join('src', path)
            source, target = os.path.join(folder, path), os.path.join(folder, path.replace('/', '_') + '.o')
            os.makedirs(os.path.dirname(source), exist_ok=True)
            with open(source, 'w') as out:
                out.write(text or '')
            if path.endswith('.c') and text != ABSENT:
                rows.append({'directory': folder, 'file': source, 'output': target})
                if text is not None:
                    subprocess.run(['cc', '-w', '-Isrc', '-Iadapters/a', '-c', source, '-o', target], check=True, cwd=folder)
        with open(os.path.join(folder, 'compile_commands.json'), 'w') as out:
            json.dump(rows, out)
        program = 'import os, sys; sys.path.insert(0, %r); import knots; os.chdir(%r); sys.exit(knots.main(".", False, %r))'
        done = subprocess.run([sys.executable, '-B', '-c', program % (
            os.path.dirname(os.path.abspath(__file__)), folder, exceptions)], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def self_test():
    bad = 0
    for what, files, exceptions, words, code in SELF_TESTS:
        got, text = self_test_one(files, exceptions)
        if words not in text or got != code:
            bad += 1
            print('self-test: %s: exit code %d, and instead of "%s":\n%s' % (what, got, words, text))
    print('self-test: %d of %d as expected' % (len(SELF_TESTS) - bad, len(SELF_TESTS)))
    return 1 if bad else 0


if __name__ == '__main__':
    if sys.argv[1:] == ['--self-test']:
        sys.exit(self_test())
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], '--list' in sys.argv))
