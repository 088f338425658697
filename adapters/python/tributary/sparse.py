# SPDX-License-Identifier: Apache-2.0
"""Tables of rows at parameter servers, by key: include/tributary/sparse.h for numpy arrays and torch tensors.

    table = tributary.sparse.Table(width=16, optimizer="adagrad", rate=0.1)
    rows = table.pull(keys)                 # keys: an array of integers; rows: (n, 16) floats
    table.push(keys, gradients)             # the servers apply the optimizer
    table.step()

    layer = tributary.sparse.Embedding(table)     # a torch module: pulls in forward, pushes in backward

Servers are started by `trib run --servers N` or `trib sparse serve`; docs/sparse.md describes them.
"""
from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, Optional

from . import _arrays, _library

SONAME = "libtributary-sparse.so.0"


class Options(ctypes.Structure):
    """trib_sparse_options"""
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("parameters", c_uint64), ("width", c_uint32),
                ("optimizer", c_char_p), ("rate", c_double), ("momentum", c_double), ("beta1", c_double), ("beta2", c_double),
                ("epsilon", c_double), ("init", c_double), ("seed", c_uint64), ("servers", c_char_p), ("workers", c_int),
                ("rank", c_int), ("is_bounded", c_int), ("staleness", c_int), ("wire", c_char_p), ("path", c_char_p),
                ("sums", c_char_p), ("largest", c_double), ("timeout_s", c_double)]


class Stats(ctypes.Structure):
    """trib_sparse_stats"""
    _fields_ = [("struct_size", c_size_t)] + [(name, c_uint64) for name in (
        "pushed_rows", "hot_rows", "hot_packets", "resent_packets", "server_bytes_sent", "server_bytes_received", "pulled_rows",
        "hot_pulled_rows")] + [("hot_set", c_uint32), ("moves", c_uint32)]


_PROTOTYPES = {
    "open": (POINTER(c_void_p), POINTER(Options)),
    "close": (c_void_p,),
    "push": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
    "pull": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
    "flush": (c_void_p,),
    "step": (c_void_p,),
    "heat": (c_void_p, c_void_p, c_void_p, c_size_t),
    "get_stats": (c_void_p, POINTER(Stats)),
}
_loaded: Optional[ctypes.CDLL] = None


def _load() -> ctypes.CDLL:
    """libtributary-sparse.so, beside libtributary.so, in the build folder, or where the linker finds it."""
    global _loaded
    if _loaded is None:
        folder = os.path.dirname(_library.load().path)  # loaded first: the other one needs it
        names = [os.path.join(folder, *way, SONAME) for way in ((), ("sparse", "library"))]
        name = next((name for name in names if os.path.exists(name)), SONAME)
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            raise _library.ConfigError(f"{SONAME} was not found ({error}): install it with make install") from error
        for verb, arguments in _PROTOTYPES.items():
            function = getattr(library, "trib_sparse_" + verb)
            function.restype, function.argtypes = c_int, arguments
        _loaded = library
    return _loaded


class Table:
    """Opens a table at the servers, or makes it there. All workers call it, with the same options.

    Options are the fields of trib_sparse_options, without those for which None or 0 is the default: name, parameters,
    optimizer, rate, momentum, beta1, beta2, epsilon, init, seed, servers, workers, rank, wire, path, sums, largest,
    timeout_s. `staleness` bounds how many steps a worker may be ahead; None: no bound.
    """

    def __init__(self, width: int, *, staleness: Optional[int] = None, **options: Any) -> None:
        self.width, self._handle, self._lock = width, c_void_p(), threading.Lock()
        self._library, fields = _load(), dict(Options._fields_)
        given = Options(ctypes.sizeof(Options), width=width, is_bounded=staleness is not None, staleness=staleness or 0)
        for name, value in options.items():
            if name not in fields:
                raise _library.ArgumentError(f"a table has no option {name!r}")
            setattr(given, name, value.encode() if isinstance(value, str) else value)
        self._do("open", byref(self._handle), byref(given))

    def _do(self, verb: str, *arguments: Any) -> None:
        """A table may be used by one thread at a time."""
        with self._lock:
            status = getattr(self._library, "trib_sparse_" + verb)(*arguments)
            _library.load().check(status)

    def pull(self, keys: Any) -> Any:
        """Rows of these keys, as an array of float32 of the same kind."""
        numbers = _whole(keys)
        rows = _new_rows(keys, self.width)
        self._do("pull", self._handle, numbers.address, _arrays.view(rows).address, numbers.count, None)
        return rows

    def push(self, keys: Any, gradients: Any) -> None:
        """Adds gradients, a row for each key. It does not wait until they are durable: `flush` does."""
        numbers, rows = _whole(keys), _floats(gradients)
        if rows.count != numbers.count * self.width:
            raise _library.ArgumentError(f"{numbers.count} keys need {numbers.count} rows of {self.width} floats, and not "
                                         f"{rows.count} floats")
        self._do("push", self._handle, numbers.address, rows.address, numbers.count, None)

    def heat(self, keys: Any, counts: Any) -> None:
        """Tells the servers how often keys will be used."""
        numbers, often = _whole(keys), _whole(counts)
        if numbers.count != often.count:
            raise _library.ArgumentError("there must be a count for each key")
        self._do("heat", self._handle, numbers.address, often.address, numbers.count)

    def step(self) -> None:
        """Ends a step of this worker. With `staleness` it waits for workers that are behind."""
        self._do("step", self._handle)

    def flush(self) -> None:
        """Waits until all gradients of this worker are durable."""
        self._do("flush", self._handle)

    def stats(self) -> Dict[str, int]:
        """Counters, as trib_sparse_stats has them."""
        stats = Stats(ctypes.sizeof(Stats))
        self._do("get_stats", self._handle, byref(stats))
        return {name: getattr(stats, name) for name, _ in Stats._fields_[1:]}

    def close(self) -> None:
        """Waits for all pushes, and closes. Closing twice is allowed."""
        handle, self._handle = self._handle, c_void_p()
        if handle:
            self._do("close", handle)

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _whole(keys: Any) -> _arrays.View:
    """Integers of 64 bits. Keys are not negative, so signed ones have the same bits."""
    if _arrays.is_torch(keys):
        return _arrays.view(keys.detach().to("cpu", sys.modules["torch"].int64))
    import numpy
    return _arrays.view(numpy.ascontiguousarray(keys, dtype="uint64"), is_written=False)


def _floats(rows: Any) -> _arrays.View:
    if _arrays.is_torch(rows):
        return _arrays.view(rows.detach().to("cpu", sys.modules["torch"].float32))
    import numpy
    return _arrays.view(numpy.ascontiguousarray(rows, dtype="float32"), is_written=False)


def _new_rows(keys: Any, width: int) -> Any:
    if _arrays.is_torch(keys):
        torch = sys.modules["torch"]
        return torch.empty((keys.numel(), width), dtype=torch.float32)
    import numpy
    return numpy.empty((numpy.size(keys), width), dtype="float32")


def __getattr__(name: str) -> Any:
    if name == "Embedding":  # needs torch
        from .sparse_embedding import Embedding
        return Embedding
    raise AttributeError(f"module 'tributary.sparse' has no attribute {name!r}")
