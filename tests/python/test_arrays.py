# SPDX-License-Identifier: Apache-2.0
"""Collectives of numpy arrays and plain buffers, and what the package says when it cannot work."""
import array
import ctypes
import json
import os
import subprocess
import sys

import jobs
import numpy
import pytest

import tributary
from tributary import _arrays, _library

TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def collectives():
    comm = tributary.init()
    rank, size = comm.rank, comm.size
    for name in TYPES:
        for op, expected in (("sum", 6), ("min", 1), ("max", 3), ("avg", 2)):
            values = numpy.full((5, 7), rank + 1, dtype=name)
            assert tributary.all_reduce(values, op) is values
            assert (values == expected).all(), (name, op, values)
    rows = tributary.all_gather(numpy.array([[rank, 10 * rank]], dtype="int16"))  # a type that the library does not add
    assert rows.tolist() == [[[r, 10 * r]] for r in range(size)]
    assert tributary.reduce_scatter(numpy.arange(6.0)).tolist() == [6.0 * rank, 6.0 * rank + 3]
    with pytest.raises(tributary.ArgumentError, match="Python objects"):
        tributary.broadcast(numpy.array([str(rank), {}], dtype=object))
    flags = numpy.array([rank == 1, True])
    assert tributary.broadcast(flags, root=1).tolist() == [True, True]
    one = tributary.reduce(numpy.array([rank + 1.0]), root=2)
    assert one.tolist() == [6.0 if rank == 2 else rank + 1.0]
    tributary.barrier()
    return comm.stats()["rounds"]


def memory_of_all_kinds():
    comm = tributary.init()
    whole = numpy.zeros((4, 6), dtype="float32")
    columns = whole[:, 1::2]  # not contiguous
    columns += comm.rank + 1
    comm.all_reduce(columns)
    assert whole.tolist() == [[0, 6, 0, 6, 0, 6]] * 4
    words = array.array("i", [comm.rank, 5])
    comm.all_reduce(words, "max")
    assert words.tolist() == [2, 5]
    plain = (ctypes.c_double * 3)(1, 2, comm.rank)
    comm.all_reduce(plain)
    assert list(plain) == [3, 6, 3]
    comm.all_reduce(numpy.zeros(0))
    several = [numpy.full(50000 + i, comm.rank + i, dtype="float32") for i in range(8)]
    requests = [comm.all_reduce(values, async_op=True) for values in several]
    for i, request in reversed(list(enumerate(requests))):
        assert (request.wait() == 3 + 3 * i).all() and request.done()
    comm.all_reduce(numpy.ones(10, dtype="float32"), async_op=True)  # dropped by the caller: its memory stays
    half = comm.split(comm.rank % 2)
    assert half.size == (2 if comm.rank % 2 == 0 else 1)
    residual = numpy.full(20000, 0.1, dtype="float32")
    comm.all_reduce(residual, wire_bits=16, residual="r")
    comm.drop_residual("r")
    half.close()
    comm.close()
    with pytest.raises(tributary.ClosedError):
        comm.barrier()
    return True


def wrong_calls():
    comm = tributary.init()
    for wrong in ("text", b"bytes", numpy.array(["a"]), numpy.ones(2, dtype="complex64"), numpy.ones(2, dtype=">f4")):
        with pytest.raises(tributary.ArgumentError):
            comm.all_reduce(wrong)
    locked = numpy.ones(2)
    locked.flags.writeable = False
    with pytest.raises(tributary.ArgumentError, match="cannot be written"):
        comm.all_reduce(locked)
    with pytest.raises(tributary.ArgumentError, match="product"):
        comm.all_reduce(numpy.ones(2), "product")
    with pytest.raises(tributary.ArgumentError, match="root 7"):
        comm.broadcast(numpy.ones(2), root=7)
    with pytest.raises(tributary.ArgumentError, match="multiple of"):
        comm.reduce_scatter(numpy.ones(4 if comm.size == 3 else 5))
    comm.all_reduce(numpy.ones(2 + comm.rank // 2))


def test_collectives():
    assert len(set(jobs.good(collectives, 3))) == 1  # the launcher's environment says where ranks meet


def test_memory_of_all_kinds():
    jobs.good(memory_of_all_kinds, 3, **jobs.ring())


def test_wrong_calls():
    for what, words in jobs.run(wrong_calls, 3, **jobs.ring()):
        assert what == "MismatchError" and "2 f64" in words and "3 f64" in words


def test_no_way():
    for what, words in jobs.run(tributary.init, 2, TRIB_AGGREGATOR="127.0.0.1:9", TRIB_TIMEOUT=1):
        assert what == "AggregatorError" and "127.0.0.1:9" in words


def test_library_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(_library, "_loaded", None)
    monkeypatch.setenv("TRIB_LIBRARY", str(tmp_path))
    with pytest.raises(tributary.ConfigError, match="libtributary.so was not found.*TRIB_LIBRARY"):
        _library.load()


def test_library_has_another_version(monkeypatch):
    monkeypatch.setattr(_library, "_loaded", None)
    monkeypatch.setattr(_library, "__version__", "9.9.0")
    with pytest.raises(tributary.ConfigError, match="version 0.*package is 9.9.0"):
        _library.load()


def test_structures_are_those_of_the_header():
    """The sizes that a C compiler gives on a machine with 64 bits."""
    assert [ctypes.sizeof(kind) for kind in (_library.Options, _library.Call, _library.Stats)] == [88, 24, 64]
    assert _arrays.view(bytearray(8)).type == "uint8"


def test_check():
    done = subprocess.run([sys.executable, "-m", "tributary.check", "--json"], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TRIB_AGGREGATOR": "10.9.9.9:7700"})
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["sum"] and "10.9.9.9:7700" in found["way"], done
