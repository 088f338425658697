# SPDX-License-Identifier: Apache-2.0
"""Communicators and requests: the collectives of include/tributary.h for numpy arrays and torch tensors."""
from __future__ import annotations

import atexit
import ctypes
import threading
import time
import weakref
from ctypes import byref, c_double, c_void_p
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import _arrays, _library, _meeting

Begin = Callable[[Any], int]  # gets where the trib_request goes, returns a trib_status


class Request:
    """A collective that runs. `wait` returns its result, or raises its error."""

    def __init__(self, comm: "Communicator", result: Any, put_back: Optional[Callable[[], None]] = None,
                 keep: Any = None, arrive: Optional[Callable[[], None]] = None) -> None:
        """`put_back` writes the result to the caller's array, `arrive` is called before each `wait` returns."""
        self._comm, self._result, self._put_back, self._keep, self._arrive = comm, result, put_back, keep, arrive
        self._handle = c_void_p()
        self._error: Optional[BaseException] = None
        self._is_done = False
        self._started = threading.Event()
        self._waiting = threading.Lock()  # only one thread at a time may wait for a request

    def _start(self, begin: Begin) -> None:
        library = self._comm._library
        try:
            library.check(begin(byref(self._handle)))
        except BaseException as error:  # told by wait
            self._end(error)
        finally:
            self._started.set()

    def _end(self, error: Optional[BaseException]) -> None:
        """Gives the caller's arrays back."""
        try:
            if error is None and self._put_back is not None:
                self._put_back()
        except BaseException as failed:
            error = failed
        self._error, self._is_done = error, True
        self._put_back = self._keep = None
        self._comm._running.discard(self)

    def done(self) -> bool:
        """Whether it has ended, with success or with an error. It never waits."""
        if self._is_done or not self._started.is_set() or not self._waiting.acquire(blocking=False):
            return self._is_done
        try:
            if not self._is_done:
                self._take(self._comm._library.trib_test(byref(self._handle)))
            return self._is_done
        finally:
            self._waiting.release()

    def _take(self, status: int) -> None:
        """What trib_test or trib_wait said."""
        if status == _library.OK:
            self._end(None)
        elif status < 0:
            error = _library.error_of(status, self._comm._library.last_error())
            if status == _library.TIMEOUT and self._handle:
                raise error  # the request still runs
            self._end(error)

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Waits until the request has ended, up to `timeout` seconds (default: the communicator's). Returns the result.

        After a DeadlineError the request may still run, and can be waited for again.
        """
        seconds = -1.0 if timeout is None else float(timeout)
        self._started.wait()
        with self._waiting:
            if not self._is_done:
                self._take(self._comm._library.trib_wait(byref(self._handle), c_double(seconds)))
        if self._error is not None:
            raise self._error
        if self._arrive is not None:
            self._arrive()
        return self._result


class Communicator:
    """Ranks that call collectives together. Opening one waits until all ranks have come, up to the deadline.

    Without arguments everything is taken from the environment, as trib_init does: TRIB_AGGREGATOR or TRIB_CONTROLLER,
    TRIB_COOKIE, TRIB_RANK and so on, and rank and size from torchrun, mpirun or srun. Arguments win.

    aggregator, controller, trees, rendezvous: where ranks meet. cookie, job: of this communicator.
    rank, size: both or none. timeout: seconds, of opening and of every call that waits.
    wire_bits: 8, 16 or 32, see docs/numbers.md.
    store: a torch store that all ranks have. The ranks then find each other through it. `name` tells communicators apart
    that use one store; "world" is the job's own, and others get a job number of their own at an aggregator.

    Collectives change arrays in place, as torch.distributed does, and return them. With async_op=True they return a
    Request. All ranks have to make the same calls in the same order.
    """

    def __init__(self, *, aggregator: Optional[str] = None, controller: Optional[str] = None, trees: Optional[str] = None,
                 rendezvous: Optional[str] = None, cookie: Optional[str] = None, job: Optional[int] = None,
                 rank: Optional[int] = None, size: Optional[int] = None, timeout: Optional[float] = None,
                 wire_bits: int = 0, store: Any = None, name: str = "world") -> None:
        if (rank is None) != (size is None) or (store is not None and rank is None):
            raise _library.ArgumentError("give rank and size together; with a store both are needed")
        self._library = _library.load()
        self._handle = c_void_p()
        self._running: Set[Request] = set()
        self._order = threading.Lock()  # calls start in one order
        self._starter: Any = None  # of CUDA tensors, see _cuda.py
        self._at_close: List[Callable[[], None]] = []
        self.timeout = timeout or _meeting.timeout_now()
        settings: Dict[str, Optional[str]] = {}
        if store is not None and not (aggregator or controller or trees or rendezvous):
            settings = _meeting.Meeting(store, name, rank or 0, size or 1, self.timeout).settings(self._library.version)
        settings.update({key: str(value) for key, value in (
            ("TRIB_RENDEZVOUS", rendezvous), ("TRIB_COOKIE", cookie), ("TRIB_JOB", job)) if value is not None})
        if rendezvous is not None:  # a rendezvous is used if no aggregator is named
            settings.update(TRIB_AGGREGATOR=None, TRIB_TREES=None, TRIB_CONTROLLER=None)
        options = _library.Options(ctypes.sizeof(_library.Options))
        for field, text in (("aggregator", aggregator), ("controller", controller), ("trees", trees)):
            setattr(options, field, text.encode() if text else None)
        if rank is not None:
            options.has_rank, options.rank, options.size = 1, rank, size
        options.timeout_s, options.wire_bits = timeout or 0.0, wire_bits
        with _meeting.environment(settings):
            self._library.check(self._library.trib_init(byref(self._handle), byref(options)))
        _open.add(self)

    @classmethod
    def _adopt(cls, handle: c_void_p, parent: "Communicator") -> "Communicator":
        """One that trib_split made."""
        comm = cls.__new__(cls)
        comm._library, comm._handle, comm._running = parent._library, handle, set()
        comm._order, comm._starter, comm._at_close, comm.timeout = threading.Lock(), None, [], parent.timeout
        _open.add(comm)
        return comm

    def _here(self) -> c_void_p:
        if not self._handle:
            raise _library.ClosedError("the communicator is closed")
        return self._handle

    @property
    def rank(self) -> int:
        """This process's rank, from 0."""
        return int(self._library.trib_rank(self._here()))

    @property
    def size(self) -> int:
        """The number of ranks."""
        return int(self._library.trib_size(self._here()))

    @property
    def is_open(self) -> bool:
        """Whether it was not closed."""
        return bool(self._handle)

    # ---- starting a call ----

    def _call(self, request: Request, begin: Begin, async_op: bool, ready: Any = None) -> Any:
        """Starts a call, in order. `ready` is a CUDA event: before it has happened, the memory must not be read."""
        self._here()
        self._running.add(request)
        with self._order:
            if ready is None and self._starter is None:
                request._start(begin)
            else:
                self._starter_now().put(request, begin, ready)
        return request if async_op else request.wait()

    def _starter_now(self) -> Any:
        if self._starter is None:
            from . import _cuda
            self._starter = _cuda.Starter()
        return self._starter

    def _run(self, array: Any, result: Any, begin: Callable[[Any, Any], int], async_op: bool, is_written: bool = True) -> Any:
        """A call on one array. `begin` gets its view on this host, and where the request goes."""
        if _arrays.is_torch(array) and array.is_cuda:
            from . import _cuda
            return _cuda.run(self, array, result, begin, async_op, is_written)
        view = _arrays.view(array, is_written)
        return self._call(Request(self, result, view.put_back if is_written else None, view.keep),
                          lambda out: begin(view, out), async_op)

    # ---- collectives ----

    def all_reduce(self, array: Any, op: str = "sum", *, async_op: bool = False, wire_bits: int = 0,
                   residual: Optional[str] = None) -> Any:
        """Replaces the array by the sum (or "min", "max", "avg") over all ranks.

        wire_bits and residual (error feedback of f32) are those of trib_call.
        """
        code = _operation(op)
        call = _library.Call(ctypes.sizeof(_library.Call), wire_bits, residual.encode() if residual else None)
        return self._run(array, array, lambda view, out: self._library.trib_iallreduce_with(
            self._handle, _library.IN_PLACE, view.address, view.count, view.code(), code, byref(call), out), async_op)

    def reduce(self, array: Any, root: int = 0, op: str = "sum", *, async_op: bool = False) -> Any:
        """As all_reduce, but only the array of `root` changes."""
        code = _operation(op)
        return self._run(array, array, lambda view, out: self._library.trib_ireduce(
            self._handle, _library.IN_PLACE, view.address, view.count, view.code(), code, root, out), async_op,
            self.rank == root)

    def broadcast(self, array: Any, root: int = 0, *, async_op: bool = False) -> Any:
        """Replaces the array by that of `root`. Elements may have any type."""
        return self._run(array, array, lambda view, out: self._library.trib_ibroadcast(
            self._handle, view.address, view.bytes, _library.TYPES["uint8"], root, out), async_op)

    def all_gather(self, array: Any, *, async_op: bool = False) -> Any:
        """A new array of shape (size, ...): row r is the array of rank r. Elements may have any type."""
        whole = _arrays.like(array, self.size, *_shape(array))
        whole[self.rank] = array.detach() if _arrays.is_torch(array) else array
        return self._run(whole, whole, lambda view, out: self._library.trib_iallgather(
            self._handle, _library.IN_PLACE, view.address, view.bytes // self.size, _library.TYPES["uint8"], out), async_op)

    def reduce_scatter(self, array: Any, op: str = "sum", *, async_op: bool = False) -> Any:
        """A new array: this rank's part of the sum. The first dimension of `array` is a multiple of the size."""
        code, size, shape = _operation(op), self.size, _shape(array)
        if not shape or shape[0] % size:
            raise _library.ArgumentError(f"reduce_scatter: the first dimension of shape {shape} is no multiple of {size} ranks")
        part = _arrays.like(array, shape[0] // size, *shape[1:])
        whole = _arrays.like(array, *shape)
        whole[...] = array.detach() if _arrays.is_torch(array) else array  # the result comes to the start of the input

        def begin(view: _arrays.View, out: Any) -> int:
            return int(self._library.trib_ireduce_scatter(self._handle, _library.IN_PLACE, view.address,
                                                          view.count // size, view.code(), code, out))

        request = self._run(whole, whole, begin, True)
        return _Part(request, part, whole) if async_op else _Part(request, part, whole).wait()

    def barrier(self, *, async_op: bool = False) -> Any:
        """Returns when all ranks have called it."""
        return self._call(Request(self, None), lambda out: self._library.trib_ibarrier(self._handle, out), async_op)

    # ---- the rest ----

    def split(self, color: int, key: int = 0) -> Optional["Communicator"]:
        """A communicator of all ranks with the same color, ordered by key. None for a negative color."""
        out = c_void_p()
        self._library.check(self._library.trib_split(self._here(), color, key, byref(out)))
        return Communicator._adopt(out, self) if out else None

    def regroup(self) -> None:
        """Goes on with the ranks that are left, and new ones, for jobs with a controller (trib_regroup)."""
        self._here()
        self._library.check(self._library.trib_regroup(byref(self._handle)))

    def drop_residual(self, name: Optional[str] = None) -> None:
        """Frees a residual of all_reduce, or all of them."""
        self._library.check(self._library.trib_drop_residual(self._here(), name.encode() if name else None))

    def stats(self) -> Dict[str, float]:
        """Counters since the communicator was opened, as trib_stats has them."""
        stats = _library.Stats(ctypes.sizeof(_library.Stats))
        self._library.check(self._library.trib_get_stats(self._here(), byref(stats)))
        return {name: getattr(stats, name) for name, _ in _library.Stats._fields_[1:]}

    def close(self) -> None:
        """Waits for running requests, up to the deadline, and leaves. Closing twice is allowed."""
        _open.discard(self)
        if self._starter is not None:
            self._starter.stop()
        kept = self._drain()
        while self._at_close:
            self._at_close.pop()()
        handle, self._handle = self._handle, c_void_p()
        if handle:
            self._library.check(self._library.trib_finalize(handle))
        del kept

    def _drain(self) -> List[Any]:
        """Waits for all requests. Ends those that still run, and returns the memory that they use until trib_finalize."""
        until, kept = time.monotonic() + self.timeout, []
        for request in list(self._running):
            try:
                request.wait(max(until - time.monotonic(), 0.0))
            except _library.Error:
                pass
        for request in list(self._running):
            with request._waiting:  # not while another thread waits for it
                if not request._is_done:
                    kept.append(request._keep)
                    request._end(_library.ClosedError("the communicator was closed while this call ran"))
        return kept

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Part:
    """A request whose result is the start of a larger array."""

    def __init__(self, request: Request, part: Any, whole: Any) -> None:
        self._request, self._part, self._whole = request, part, whole

    def done(self) -> bool:
        return self._request.done()

    def wait(self, timeout: Optional[float] = None) -> Any:
        self._request.wait(timeout)
        self._part[...] = self._whole[:self._part.shape[0]]
        return self._part


def _shape(array: Any) -> Tuple[int, ...]:
    return tuple(getattr(array, "shape", ()))


def _operation(op: str) -> int:
    if op not in _library.OPERATIONS:
        raise _library.ArgumentError(f"there is no operation {op!r}: use one of {', '.join(_library.OPERATIONS)}")
    return _library.OPERATIONS[op]


_open: "weakref.WeakSet[Communicator]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Other ranks hear at once that this process leaves, and need not find out by silence."""
    for comm in list(_open):
        try:
            comm.close()
        except _library.Error:
            pass
