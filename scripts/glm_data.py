#!/usr/bin/env python3
"""glm_data.py: data for `trib glm`, with Python's own library alone.

  glm_data.py npz X.npz y.npy OUT              scipy's CSR matrix and labels as libsvm text
  glm_data.py split FILE TRAIN TEST            rows of a text file in two parts, at random
  glm_data.py join OUT FILE...                 files one after the other (plain, .gz and .xz)

Files are read by content (plain, gzip, xz). OUT, TRAIN and TEST are compressed if they end with .gz or
.xz. The same seed gives the same split.
"""
import argparse
import array
import ast
import contextlib
import gzip
import io
import lzma
import random
import struct
import sys
import zipfile

KINDS = {"f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H",
         "u4": "I", "u8": "Q"}


def npy_read(data, name):
    """The numbers of a .npy file with one dimension."""
    if data[:6] != b"\x93NUMPY":
        sys.exit(f"{name}: not a NumPy array")
    wide = data[6] > 1
    (length,) = struct.unpack_from("<I" if wide else "<H", data, 8)
    start = (12 if wide else 10) + length
    about = ast.literal_eval(data[12 if wide else 10:start].decode("latin-1"))
    kind = KINDS.get(about["descr"][1:])
    if kind is None or about["descr"][0] not in "<|" or len(about["shape"]) > 1:
        sys.exit(f"{name}: an array of {about['descr']} with shape {about['shape']} is not supported")
    numbers = array.array(kind)
    numbers.frombytes(data[start:])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def number_text(value):
    """The shortest text of a number; integers without a point."""
    return str(int(value)) if value == int(value) else repr(float(value))


def open_read(path):
    """A text file, decompressed if its first bytes say so."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic[:2] == b"\x1f\x8b":
        return gzip.open(path, "rt")
    if magic == b"\xfd7zXZ\0":
        return lzma.open(path, "rt")
    return open(path, "rt")


def open_write(path):
    if path == "-":
        return contextlib.nullcontext(sys.stdout)
    if path.endswith(".gz"):
        # Without a time stamp, the same data give the same file.
        return io.TextIOWrapper(gzip.GzipFile(path, "wb", mtime=0))
    if path.endswith(".xz"):
        return lzma.open(path, "wt")
    return open(path, "wt")


def npz_write(args):
    with zipfile.ZipFile(args.matrix) as archive:
        names = {name[:-4] for name in archive.namelist()}
        if not {"indices", "indptr", "data"} <= names:
            sys.exit(f"{args.matrix}: not a CSR matrix of scipy: indices, indptr or data is missing")
        indices, starts, values = (npy_read(archive.read(f"{name}.npy"), f"{args.matrix}:{name}")
                                   for name in ("indices", "indptr", "data"))
    with open(args.labels, "rb") as file:
        labels = npy_read(file.read(), args.labels)
    if len(labels) != len(starts) - 1:
        sys.exit(f"{args.labels}: {len(labels)} labels for {len(starts) - 1} rows")
    with open_write(args.out) as out:
        for row, label in enumerate(labels):
            # scipy does not always sort the entries of a row.
            entries = sorted(zip(indices[starts[row]:starts[row + 1]], values[starts[row]:starts[row + 1]]))
            words = [number_text(label)] + [f"{column + 1}:{number_text(value)}" for column, value in entries]
            out.write(" ".join(words) + "\n")


def rows_split(args):
    """Each row draws its part, so that the file is read once and never held in memory."""
    draw = random.Random(args.seed)
    counts = [0, 0]
    with open_read(args.file) as file, open_write(args.train) as train, open_write(args.test) as test:
        for number, line in enumerate(file):
            if args.header and number == 0:
                train.write(line)
                test.write(line)
                continue
            if not line.strip() or line.startswith("#"):
                continue
            part = draw.random() < args.share
            counts[part] += 1
            (test if part else train).write(line if line.endswith("\n") else line + "\n")
    print(f"{args.train}: {counts[0]} rows, {args.test}: {counts[1]} rows", file=sys.stderr)


def files_join(args):
    with open_write(args.out) as out:
        for path in args.files:
            with open_read(path) as file:
                for line in file:
                    out.write(line if line.endswith("\n") else line + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    npz = commands.add_parser("npz", help="scipy's CSR matrix and labels as libsvm text")
    npz.add_argument("matrix")
    npz.add_argument("labels")
    npz.add_argument("out")
    npz.set_defaults(run=npz_write)
    split = commands.add_parser("split", help="rows of a text file in two parts, at random")
    split.add_argument("file")
    split.add_argument("train")
    split.add_argument("test")
    split.add_argument("--seed", type=int, default=1)
    split.add_argument("--share", type=float, default=0.2, help="of the test rows (default: 0.2)")
    split.add_argument("--header", action="store_true", help="the first line is for both parts")
    split.set_defaults(run=rows_split)
    join = commands.add_parser("join", help="files one after the other")
    join.add_argument("out")
    join.add_argument("files", nargs="+")
    join.set_defaults(run=files_join)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
