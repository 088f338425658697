# SPDX-License-Identifier: Apache-2.0
"""libtributary.so: where it is, its functions and structures, its errors as exceptions.

Everything that ctypes needs to know about include/tributary.h is here. ctypes drops the GIL during each call.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p
from typing import Dict, List, Optional, Tuple, Type

__version__ = "0.1.0"

SONAME = "libtributary.so.0"
OK, IN_PROGRESS = 0, 1
TIMEOUT = -5
IN_PLACE = c_void_p(-1)

TYPES = {name: code for code, name in enumerate((
    "int8", "int32", "int64", "uint8", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "float8_e4m3fn", "float8_e5m2"))}
OPERATIONS = {name: code for code, name in enumerate(("sum", "min", "max", "avg"))}


class Error(RuntimeError):
    """A call failed. The text is the library's sentence; `status` is the trib_status."""
    status = 0


class ArgumentError(Error):
    """A wrong argument; nothing was sent."""


class ConfigError(Error):
    """A setting is missing or malformed, or the library cannot be loaded."""


class NoMemoryError(Error):
    """There is no memory."""


class SystemCallError(Error):
    """A system call failed."""


class DeadlineError(Error):
    """The deadline passed; the sentence names the missing ranks."""


class PeerError(Error):
    """A rank died or left; the sentence names it."""


class AggregatorError(Error):
    """The aggregator cannot be reached, or died."""


class MismatchError(Error):
    """Ranks called different collectives; the sentence names them."""


class RefusedError(Error):
    """The aggregator refused this worker; the sentence says why."""


class ClosedError(Error):
    """Stopped from outside, or the communicator is closed."""


ERRORS: Dict[int, Type[Error]] = {-1 - i: kind for i, kind in enumerate((
    ArgumentError, ConfigError, NoMemoryError, SystemCallError, DeadlineError, PeerError, AggregatorError,
    MismatchError, RefusedError, ClosedError))}


for _status, _kind in ERRORS.items():
    _kind.status = _status


def error_of(status: int, sentence: str) -> Error:
    return ERRORS.get(status, Error)(sentence)


class Options(ctypes.Structure):
    """trib_options"""
    _fields_ = [("struct_size", c_size_t), ("aggregator", c_char_p), ("has_rank", c_int), ("rank", c_int),
                ("size", c_int), ("timeout_s", c_double), ("pool_bytes", c_uint64), ("rate_bps", c_uint64),
                ("lanes", c_int), ("trees", c_char_p), ("controller", c_char_p), ("wire_bits", c_int)]


class Call(ctypes.Structure):
    """trib_call"""
    _fields_ = [("struct_size", c_size_t), ("wire_bits", c_int), ("residual", c_char_p)]


class Stats(ctypes.Structure):
    """trib_stats"""
    _fields_ = [("struct_size", c_size_t)] + [(name, c_uint64) for name in (
        "rounds", "sent_packets", "resent_packets", "results", "duplicates", "dropped_packets")] + [
            ("wait_s", c_double)]


_REQUEST = POINTER(c_void_p)
_PROTOTYPES = {
    "trib_init": (c_int, POINTER(c_void_p), POINTER(Options)),
    "trib_finalize": (c_int, c_void_p),
    "trib_regroup": (c_int, POINTER(c_void_p)),
    "trib_split": (c_int, c_void_p, c_int, c_int, POINTER(c_void_p)),
    "trib_rank": (c_int, c_void_p),
    "trib_size": (c_int, c_void_p),
    "trib_iallreduce_with": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, POINTER(Call), _REQUEST),
    "trib_ireduce": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, _REQUEST),
    "trib_ibroadcast": (c_int, c_void_p, c_void_p, c_size_t, c_int, c_int, _REQUEST),
    "trib_iallgather": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int, _REQUEST),
    "trib_ireduce_scatter": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, _REQUEST),
    "trib_ibarrier": (c_int, c_void_p, _REQUEST),
    "trib_test": (c_int, _REQUEST),
    "trib_wait": (c_int, _REQUEST, c_double),
    "trib_drop_residual": (c_int, c_void_p, c_char_p),
    "trib_get_stats": (c_int, c_void_p, POINTER(Stats)),
    "trib_last_error": (c_char_p,),
    "trib_version": (c_char_p,),
}

_loaded: Optional["Library"] = None


class Library:
    """The loaded library. `path` is the name under which it was found."""

    def __init__(self, path: str, handle: ctypes.CDLL) -> None:
        self.path = path
        if not hasattr(handle, "trib_version"):
            raise ConfigError(f"{path} is older than this package, tributary {__version__}: install both from one "
                              "version, or set TRIB_LIBRARY to the right libtributary.so")
        for name, (result, *arguments) in _PROTOTYPES.items():
            function = getattr(handle, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.version: str = handle.trib_version().decode()
        if self.version.split(".")[:2] != __version__.split(".")[:2]:
            raise ConfigError(f"{path} is version {self.version}, and the Python package is {__version__}: install both "
                              "from one version, or set TRIB_LIBRARY to the right libtributary.so")

    def last_error(self) -> str:
        return self.trib_last_error().decode(errors="replace")

    def check(self, status: int) -> int:
        """Raises the library's error of this thread, if it is one."""
        if status < 0:
            raise error_of(status, self.last_error())
        return status


def _files() -> List[pathlib.Path]:
    """Beside the package (a wheel with the library), then in the build folder of a checkout."""
    package = pathlib.Path(__file__).resolve().parent
    return [package / SONAME, package.parents[2] / "build" / "src" / SONAME]


def candidates() -> List[str]:
    """Names to try, the best first. TRIB_LIBRARY, a file or a folder, is the only one if it is set."""
    named = os.environ.get("TRIB_LIBRARY")
    if named:
        return [os.path.join(named, SONAME) if os.path.isdir(named) else named]
    return [str(path) for path in _files() if path.exists()] + [SONAME]


def load() -> Library:
    """The library, loaded at the first call. ConfigError says where it was looked for."""
    global _loaded
    if _loaded is not None:
        return _loaded
    tried: List[Tuple[str, str]] = []
    for name in candidates():
        try:
            _loaded = Library(name, ctypes.CDLL(name))
            return _loaded
        except OSError as error:
            tried.append((name, str(error)))
    reasons = "; ".join(why if name in why else f"{name}: {why}" for name, why in tried)
    raise ConfigError(f"libtributary.so was not found ({reasons}). Install it with make install, or set TRIB_LIBRARY to "
                      "its path")
