#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the gradients in files of pushes (--tensors of the examples factorize and words) to OUT, f32 one behind the
other, as `trib bench float-table --data` reads them.

Usage: row_values.py OUT FILE...
"""
import struct
import sys


def values(path):
    """The gradients of each step, as bytes. docs/sparse.md has the format."""
    with open(path, "rb") as file:
        magic, version, width, _ = struct.unpack("<8sIIQ", file.read(24))
        if magic != b"TRIBROWS" or version != 1:
            sys.exit(f"{path}: not a file of pushes")
        while head := file.read(4):
            rows = struct.unpack("<I", head)[0]
            file.seek(8 * rows, 1)
            part = file.read(4 * rows * width)
            if len(part) != 4 * rows * width:
                sys.exit(f"{path}: cut off")
            yield part


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "wb") as out:
        for path in sys.argv[2:]:
            out.writelines(values(path))


main()
