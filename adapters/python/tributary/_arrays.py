# SPDX-License-Identifier: Apache-2.0
"""What the library sees of an array: an address, a count and a type.

Arrays are numpy arrays, torch tensors, or objects with a writable buffer (array.array, bytearray, ctypes arrays).
Neither numpy nor torch is imported here: an object that came from one of them brings its module along.
"""
from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Optional

from . import _library

_FORMATS = {"b": "int8", "i": "int32", "q": "int64", "l": "int64", "B": "uint8", "I": "uint32", "Q": "uint64",
            "L": "uint64", "e": "float16", "f": "float32", "d": "float64"}


class View:
    """`keep` holds the memory. `put_back` writes to the caller's array what a copy of it has got."""
    __slots__ = ("address", "count", "type", "bytes", "keep", "put_back")

    def __init__(self, address: int, count: int, name: str, item: int, keep: Any,
                 put_back: Optional[Callable[[], None]] = None) -> None:
        self.address, self.count, self.bytes = address, count, count * item
        self.type, self.keep, self.put_back = name, keep, put_back

    def code(self) -> int:
        """The trib_type, for calls that compute."""
        if self.type not in _library.TYPES:
            raise _library.ArgumentError(f"elements of type {self.type} cannot be summed or compared: use one of "
                                         f"{', '.join(_library.TYPES)}")
        return _library.TYPES[self.type]


def is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def is_numpy(array: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


def _view_torch(tensor: Any) -> View:
    tensor = tensor.detach()
    if tensor.layout is not sys.modules["torch"].strided:
        raise _library.ArgumentError("a sparse tensor has no plain memory: use tributary.sparse_all_reduce")
    dense = tensor.contiguous().resolve_conj().resolve_neg()  # memory that has the values, not a note to negate them
    copied = dense.data_ptr() != tensor.data_ptr()
    return View(dense.data_ptr(), dense.numel(), str(dense.dtype).replace("torch.", ""), dense.element_size(), dense,
                (lambda: tensor.copy_(dense)) if copied else None)


def _view_numpy(array: Any, is_written: bool) -> View:
    numpy = sys.modules["numpy"]
    if is_written and not array.flags.writeable:
        raise _library.ArgumentError("the array cannot be written: make a copy of it first")
    if array.dtype.hasobject:  # pointers
        raise _library.ArgumentError("the array has Python objects, which other processes cannot read: use torch's "
                                     "broadcast_object_list, or pickle them into bytes first")
    if not array.dtype.isnative:
        raise _library.ArgumentError("the array has the byte order of another machine: convert it first")
    dense = array if array.flags.c_contiguous and array.flags.aligned else numpy.array(array, order="C")

    def put_back() -> None:
        array[...] = dense

    return View(dense.ctypes.data, dense.size, dense.dtype.name, dense.itemsize, dense,
                put_back if dense is not array else None)


def _view_buffer(array: Any) -> View:
    try:
        memory = memoryview(array)
    except TypeError as error:
        raise _library.ArgumentError(f"{type(array).__name__} is no numpy array, no torch tensor, and has no buffer") from error
    if memory.readonly or not memory.c_contiguous:  # ctypes finds the address of writable memory alone
        raise _library.ArgumentError("the buffer cannot be written, or is not contiguous")
    name = _FORMATS.get(memory.format.lstrip("@<="), memory.format)
    keep = (ctypes.c_char * memory.nbytes).from_buffer(array)
    return View(ctypes.addressof(keep), memory.nbytes // memory.itemsize, name, memory.itemsize, (array, keep))


def view(array: Any, is_written: bool = True) -> View:
    """The memory of an array on this host."""
    if is_torch(array):
        return _view_torch(array)
    return _view_numpy(array, is_written) if is_numpy(array) else _view_buffer(array)


def like(array: Any, *shape: int) -> Any:
    """An uninitialized array of the same kind, type and device, with this shape."""
    if is_torch(array):
        return array.detach().new_empty(shape)
    if is_numpy(array):
        return sys.modules["numpy"].empty(shape, dtype=array.dtype)
    raise _library.ArgumentError("this call makes a new array, which it can for numpy arrays and torch tensors alone")
