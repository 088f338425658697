# SPDX-License-Identifier: Apache-2.0
"""Tributary: collectives that sum vectors while they travel, for numpy arrays and torch tensors.

    import numpy, tributary
    comm = tributary.init()                      # rank, size and aggregator from the environment
    gradient = numpy.ones(1000, dtype="float32")
    comm.all_reduce(gradient)                    # in place: the sum over all ranks

With PyTorch's DistributedDataParallel one line is enough:

    tributary.register(ddp_model)

`python3 -m tributary.check` says whether this machine can use it. docs/pytorch.md has the whole story.
"""
from __future__ import annotations

from typing import Any, Optional

from ._library import (AggregatorError, ArgumentError, ClosedError, ConfigError, DeadlineError, Error, MismatchError,
                       NoMemoryError, PeerError, RefusedError, SystemCallError, __version__)
from .communicator import Communicator, Request

_default: Optional[Communicator] = None
# Names that need torch, and the modules that have them.
_WITH_TORCH = {"register": "ddp", "wrap": "ddp", "ddp_hook": "ddp", "communicator_of": "ddp",
               "sparse_all_reduce": "sparse_gradients", "future_of": "torch_future"}

__all__ = ["AggregatorError", "ArgumentError", "ClosedError", "Communicator", "ConfigError", "DeadlineError", "Error",
           "MismatchError", "NoMemoryError", "PeerError", "RefusedError", "Request", "SystemCallError", "__version__",
           "all_gather", "all_reduce", "barrier", "broadcast", "finalize", "init", "rank", "reduce", "reduce_scatter", "size",
           *_WITH_TORCH]


def __getattr__(name: str) -> Any:
    import importlib
    if name == "sparse":
        return importlib.import_module(".sparse", __name__)
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'tributary' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_WITH_TORCH[name]}", __name__), name)


def init(**options: Any) -> Communicator:
    """Opens the communicator of this process, or returns it if it is open. Options are those of Communicator.

    If torch.distributed is initialized and no option is given, it has torch's ranks, and they meet through torch's store.
    """
    global _default
    if _default is None or not _default.is_open:
        _default = _of_torch() if not options else None
        if _default is None:
            _default = Communicator(**options)
    return _default


def _of_torch() -> Optional[Communicator]:
    import sys
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    from .ddp import communicator_of
    return communicator_of()


def finalize() -> None:
    """Closes the communicator of `init`."""
    global _default
    if _default is not None:
        _default.close()
    _default = None


def rank() -> int:
    """This process's rank."""
    return init().rank


def size() -> int:
    """The number of ranks."""
    return init().size


def all_reduce(array: Any, op: str = "sum", **options: Any) -> Any:
    """Communicator.all_reduce of the communicator of `init`."""
    return init().all_reduce(array, op, **options)


def reduce(array: Any, root: int = 0, op: str = "sum", **options: Any) -> Any:
    """Communicator.reduce of the communicator of `init`."""
    return init().reduce(array, root, op, **options)


def broadcast(array: Any, root: int = 0, **options: Any) -> Any:
    """Communicator.broadcast of the communicator of `init`."""
    return init().broadcast(array, root, **options)


def all_gather(array: Any, **options: Any) -> Any:
    """Communicator.all_gather of the communicator of `init`."""
    return init().all_gather(array, **options)


def reduce_scatter(array: Any, op: str = "sum", **options: Any) -> Any:
    """Communicator.reduce_scatter of the communicator of `init`."""
    return init().reduce_scatter(array, op, **options)


def barrier(**options: Any) -> Any:
    """Communicator.barrier of the communicator of `init`."""
    return init().barrier(**options)
