# SPDX-License-Identifier: Apache-2.0
"""A request as a torch Future, for code that goes on when the result is there (DDP, process groups).

One thread for each communicator waits for requests in the order in which they started, and completes their futures.
"""
from __future__ import annotations

import contextlib
import queue
import threading
import weakref
from typing import Any, Optional, Tuple

import torch

from .communicator import Communicator, Request

_completers: "weakref.WeakKeyDictionary[Communicator, _Completer]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class _Failure:
    """The value of a future whose request failed; `_unwrap` turns it into an error that C++ sees, too."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _unwrap(future: Any) -> Any:
    value = future.value()
    if isinstance(value, _Failure):
        raise value.error
    return value


class _Completer:
    def __init__(self) -> None:
        self._queue: "queue.SimpleQueue[Optional[Tuple[Request, Any, Optional[torch.device]]]]" = queue.SimpleQueue()
        threading.Thread(target=self._loop, name="tributary-complete", daemon=True).start()

    def put(self, request: Request, future: Any, device: Optional[torch.device]) -> None:
        self._queue.put((request, future, device))

    def stop(self) -> None:
        """The thread ends when it has completed what was put."""
        self._queue.put(None)

    def _loop(self) -> None:
        while True:
            item = self._queue.get()
            if item is None:
                return
            request, future, device = item
            with _stream_of(device):
                future.set_result(_outcome(request))
            del item, request, future  # not kept until the next one comes


def _outcome(request: Request) -> Any:
    try:
        return request.wait()
    except BaseException as error:
        return _Failure(error)


def _stream_of(device: Optional[torch.device]) -> Any:
    """The future records its event on this stream, on which the result is copied to the device."""
    if device is None:
        return contextlib.nullcontext()
    from . import _cuda
    return torch.cuda.stream(_cuda.side_streams(device)[1])


def future_of(comm: Communicator, request: Request, device: Optional[torch.device] = None) -> "torch.futures.Future[Any]":
    """A future of the request's result. `device` is that of a result on a GPU. Nobody else may wait for the request."""
    cuda = device if device is not None and device.type == "cuda" else None
    future: Any = torch.futures.Future(devices=[cuda] if cuda else None)
    child = future.then(_unwrap)  # an error in `then` is one of the C++ future; set_exception makes none
    with _lock:
        completer = _completers.get(comm)
        if completer is None:
            completer = _completers[comm] = _Completer()
            comm._at_close.append(completer.stop)
    completer.put(request, future, cuda)
    return child
