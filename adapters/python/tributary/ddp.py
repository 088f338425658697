# SPDX-License-Identifier: Apache-2.0
"""Gradients of DistributedDataParallel through Tributary.

    model = DistributedDataParallel(network)
    tributary.register(model)           # gradients are averaged by Tributary from now on

DDP calls the hook for each bucket of gradients as soon as the backward pass has filled it. The hook starts an allreduce
and returns a Future, so several buckets travel while the backward pass goes on. The process group of DDP still
does the rest: the first broadcast of the weights, and the broadcast of buffers.
"""
import weakref  # no annotations from __future__: torch reads those of the hook
from typing import Any, Dict, Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from . import _library, sparse_gradients
from .communicator import Communicator
from .torch_future import future_of

_opened: Dict[str, int] = {}  # how many communicators of a name were opened
_of_groups: "weakref.WeakKeyDictionary[Any, Communicator]" = weakref.WeakKeyDictionary()


def ddp_hook(comm: Communicator, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The communication hook: the average of the bucket over all ranks.

    The average is the exact sum of the ranks' fixed-point values, divided once and rounded once, so the order of ranks
    does not matter. Use `register`, or give a Communicator as the state to DDP's register_comm_hook.
    """
    tensor = bucket.buffer()
    if tensor.layout is torch.sparse_coo:
        return sparse_gradients.average_later(comm, tensor)
    return future_of(comm, comm.all_reduce(tensor, "avg", async_op=True), tensor.device)


def _next_name(group: Any) -> str:
    """A new name for a communicator of these ranks, the same on all of them."""
    ranks = _ranks_of(group)
    number = _opened.get(ranks, 0)
    _opened[ranks] = number + 1
    return f"{ranks}-{number}" if number else ranks


def _ranks_of(group: Any) -> str:
    if group is None or group is dist.group.WORLD or dist.get_world_size(group) == dist.get_world_size():
        return "world"
    c10d = dist.distributed_c10d
    members = getattr(c10d, "get_process_group_ranks", None)
    ranks = members(group) if members else sorted(c10d._pg_group_ranks[group])
    return "ranks-" + "-".join(str(rank) for rank in ranks)


def communicator_of(group: Any = None, timeout: Optional[float] = None) -> Communicator:
    """The communicator of a process group's ranks (default: all), opened at the first call on all of them.

    Ranks find each other through the store of torch.distributed. If TRIB_AGGREGATOR, TRIB_TREES or TRIB_CONTROLLER is
    set on rank 0, all ranks use it. Otherwise they need no daemon.
    """
    if not dist.is_initialized():
        raise _library.ConfigError("torch.distributed is not initialized: call torch.distributed.init_process_group first")
    group = group if group is not None else dist.group.WORLD
    comm = _of_groups.get(group)
    if comm is None or not comm.is_open:
        comm = Communicator(store=dist.distributed_c10d._get_default_store(), name=_next_name(group), timeout=timeout,
                            rank=dist.get_rank(group), size=dist.get_world_size(group))
        _of_groups[group] = comm
    return comm


def register(model: DistributedDataParallel, comm: Optional[Communicator] = None,
             timeout: Optional[float] = None) -> DistributedDataParallel:
    """Lets Tributary average the gradients of a DistributedDataParallel model. All ranks call it. Returns the model."""
    if not isinstance(model, DistributedDataParallel):
        raise _library.ArgumentError(f"register needs a DistributedDataParallel model, and got {type(model).__name__}: "
                                     "tributary.wrap(model) makes one")
    model.register_comm_hook(comm or communicator_of(model.process_group, timeout), ddp_hook)
    return model


def wrap(module: torch.nn.Module, comm: Optional[Communicator] = None, **options: Any) -> DistributedDataParallel:
    """DistributedDataParallel(module, **options) whose gradients Tributary averages."""
    return register(DistributedDataParallel(module, **options), comm)
