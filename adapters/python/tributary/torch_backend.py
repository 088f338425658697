# SPDX-License-Identifier: Apache-2.0
"""A backend of torch.distributed: every collective of a process group goes through Tributary.

    import tributary.torch_backend
    torch.distributed.init_process_group("tributary")

It has allreduce, reduce, broadcast, allgather, gather, scatter, reduce_scatter and barrier, for tensors of the CPU and
of CUDA devices. There is no send, recv or alltoall: use gloo for those. Groups made by new_group work, too; with a
controller they use no aggregator.
"""
from __future__ import annotations

from typing import Any, List, NoReturn, Optional

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from . import _library, sparse_gradients
from .communicator import Communicator
from .torch_future import future_of

NAME = "tributary"
_OPERATIONS = {"SUM": "sum", "AVG": "avg", "MIN": "min", "MAX": "max"}


def _operation(options: Any) -> str:
    """The ReduceOp of a call in words; torch 1.13 and 2.x wrap it differently."""
    op = getattr(options, "reduceOp", dist.ReduceOp.SUM)
    for name, ours in _OPERATIONS.items():
        if op == getattr(dist.ReduceOp, name):
            return ours
    raise _library.ArgumentError("the backend tributary has the operations SUM, AVG, MIN and MAX alone")


class _All:
    """Several requests as one; `finish` makes the result."""

    def __init__(self, requests: List[Any], finish: Any) -> None:
        self.requests, self.finish = requests, finish

    def wait(self, timeout: Optional[float] = None) -> Any:
        for request in self.requests:
            request.wait(timeout)
        return self.finish()


def _lacks(name: str) -> NoReturn:
    raise NotImplementedError(f"the backend tributary has no {name}: use a group of gloo for it")


class ProcessGroupTributary(dist.ProcessGroup):
    """Methods have the names and arguments with which torch calls them."""

    def __init__(self, comm: Communicator) -> None:
        super().__init__(comm.rank, comm.size)
        self.comm = comm

    def getBackendName(self) -> str:
        return NAME

    def name(self) -> str:
        return NAME

    @property
    def group_name(self) -> str:
        """torch 2.x asks for it, and looks into C++ backends, of which there is none."""
        return str(dist.distributed_c10d._world.pg_names.get(self, NAME))

    @property
    def group_desc(self) -> str:
        return NAME

    def _work(self, requests: List[Any], result: List[torch.Tensor], finish: Any = None) -> Any:
        def end() -> List[torch.Tensor]:
            if finish is not None:
                finish()
            return result

        device = next((tensor.device for tensor in result if tensor.is_cuda), None)
        return _create_work_from_future(future_of(self.comm, _All(requests, end), device))  # type: ignore[arg-type]

    def allreduce(self, tensors: List[torch.Tensor], opts: Any = None) -> Any:
        op = _operation(opts)
        if any(tensor.layout is torch.sparse_coo for tensor in tensors):
            return self._sparse(tensors, op)
        return self._work([self.comm.all_reduce(tensor, op, async_op=True) for tensor in tensors], tensors)

    def _sparse(self, tensors: List[torch.Tensor], op: str) -> Any:
        requests = [sparse_gradients.Gathering(self.comm, tensor, op) for tensor in tensors]

        def put_back() -> None:
            for tensor, request in zip(tensors, requests):
                tensor.copy_(request.wait())

        return self._work([], tensors, put_back)

    def allreduce_coalesced(self, tensors: List[torch.Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: List[torch.Tensor], opts: Any) -> Any:
        op = _operation(opts)
        return self._work([self.comm.reduce(tensor, opts.rootRank, op, async_op=True) for tensor in tensors], tensors)

    def broadcast(self, tensors: List[torch.Tensor], opts: Any) -> Any:
        return self._work([self.comm.broadcast(tensor, opts.rootRank, async_op=True) for tensor in tensors], tensors)

    def barrier(self, opts: Any = None) -> Any:
        return self._work([self.comm.barrier(async_op=True)], [])

    def allgather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], opts: Any = None) -> Any:
        requests = [self.comm.all_gather(tensor, async_op=True) for tensor in inputs]

        def spread() -> None:
            for request, out in zip(requests, outputs):
                for row, tensor in zip(request.wait(), out):
                    tensor.copy_(row)

        return self._work(requests, [tensor for out in outputs for tensor in out], spread)

    def _allgather_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        request = self.comm.all_gather(tensor, async_op=True)
        return self._work([request], [output], lambda: output.view(-1).copy_(request.wait().view(-1)))

    def gather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], opts: Any) -> Any:
        if self.comm.rank == opts.rootRank:
            return self.allgather(outputs, inputs)
        return self._work([self.comm.all_gather(tensor, async_op=True) for tensor in inputs], [])

    def scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], opts: Any) -> Any:
        """The root's parts reach all ranks, and each takes its own."""
        out, is_root = outputs[0], self.comm.rank == opts.rootRank
        whole = torch.stack(inputs[0]) if is_root else out.new_empty((self.comm.size, *out.shape))
        request = self.comm.broadcast(whole, opts.rootRank, async_op=True)
        return self._work([request], outputs, lambda: out.copy_(whole[self.comm.rank]))

    def reduce_scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], opts: Any = None) -> Any:
        return self._reduce_scatter_base(outputs[0], torch.stack(inputs[0]), opts)

    def _reduce_scatter_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        request = self.comm.reduce_scatter(tensor.reshape(-1), _operation(opts), async_op=True)
        return self._work([request], [output], lambda: output.view(-1).copy_(request.wait()))

    def send(self, *_: Any) -> Any:
        _lacks("send")

    def recv(self, *_: Any) -> Any:
        _lacks("recv")

    def recv_anysource(self, *_: Any) -> Any:
        _lacks("recv")

    def alltoall(self, *_: Any) -> Any:
        _lacks("alltoall")

    def alltoall_base(self, *_: Any) -> Any:
        _lacks("alltoall")


def _create(store: Any, rank: int, size: int, timeout: Any) -> ProcessGroupTributary:
    """torch calls it in init_process_group and new_group, with a store for each group."""
    is_world = not dist.is_initialized()
    return ProcessGroupTributary(Communicator(store=store, rank=rank, size=size, name="world" if is_world else "group"))


def _register() -> None:
    try:
        dist.Backend.register_backend(NAME, _create, devices=["cpu", "cuda"])
    except TypeError:  # torch 1.13 does not ask for devices
        dist.Backend.register_backend(NAME, _create)


if not hasattr(dist.Backend, NAME.upper()):
    _register()
