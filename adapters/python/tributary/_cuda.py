# SPDX-License-Identifier: Apache-2.0
"""CUDA tensors: they travel through pinned memory of the host.

Each call takes these steps, and no step blocks the caller:
 1. The stream on which the tensor was computed records an event. A side stream waits for it, and copies the tensor to
    pinned memory.
 2. A thread waits for the end of the copy, and starts the collective. It starts all calls of the communicator, also those
    of CPU tensors, so that their order is the same on all ranks.
 3. Whoever waits for the request copies the result back on another side stream, and makes the current stream wait for it.

The two side streams let copies in both directions run at the same time, beside the computation.
"""
from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Dict, Optional, Tuple

import torch

from . import _arrays
from .communicator import Begin, Communicator, Request

_streams: Dict[torch.device, Tuple[Any, Any]] = {}  # to the host, to the device
_streams_lock = threading.Lock()


def side_streams(device: torch.device) -> Tuple[Any, Any]:
    with _streams_lock:
        if device not in _streams:
            _streams[device] = (torch.cuda.Stream(device), torch.cuda.Stream(device))
        return _streams[device]


class Starter:
    """The thread of step 2."""

    def __init__(self) -> None:
        self._queue: "queue.SimpleQueue[Optional[Tuple[Request, Begin, Any]]]" = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="tributary-start", daemon=True)
        self._thread.start()

    def put(self, request: Request, begin: Begin, ready: Any) -> None:
        self._queue.put((request, begin, ready))

    def stop(self) -> None:
        """Starts what has been put, then ends."""
        self._queue.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while True:
            item = self._queue.get()
            if item is None:
                return
            request, begin, ready = item

            def begin_when_ready(out: Any, begin: Begin = begin, ready: Any = ready) -> int:
                if ready is not None:
                    ready.synchronize()
                return begin(out)

            request._start(begin_when_ready)


def run(comm: Communicator, tensor: Any, result: Any, begin: Callable[[Any, Any], int], async_op: bool,
        is_written: bool) -> Any:
    """As Communicator._run, for a tensor on a GPU."""
    tensor, device = tensor.detach(), tensor.device
    to_host, to_device = side_streams(device)
    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    copied, is_back = torch.cuda.Event(), torch.cuda.Event()
    to_host.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(to_host):
        pinned.copy_(tensor, non_blocking=True)
        copied.record(to_host)
    tensor.record_stream(to_host)
    view = _arrays.view(pinned)

    def put_back() -> None:
        with torch.cuda.stream(to_device):  # nothing else uses the tensor since it was copied to the host
            tensor.copy_(pinned, non_blocking=True)
            is_back.record(to_device)
        tensor.record_stream(to_device)

    def arrive() -> None:
        torch.cuda.current_stream(device).wait_event(is_back)

    request = Request(comm, result, put_back if is_written else None, (pinned, tensor), arrive if is_written else None)
    return comm._call(request, lambda out: begin(view, out), async_op, copied)
