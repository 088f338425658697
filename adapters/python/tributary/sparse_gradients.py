# SPDX-License-Identifier: Apache-2.0
"""Sums of sparse tensors, as gradients of nn.Embedding(sparse=True) are.

Each rank sends the rows that it has to all others: first how many, then their numbers and values, in two allgathers.
All ranks then add rows with the same number in the order of ranks, so the result has the same bits on all ranks.

A table that is too large for one host belongs on parameter servers: see tributary.sparse and docs/sparse.md.
"""
from __future__ import annotations

from typing import Any, Optional

import torch

from . import _library
from .communicator import Communicator
from .torch_future import future_of


def _padded(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Allgathers need the same count on all ranks."""
    out = rows.new_zeros((count, *rows.shape[1:]))
    out[:rows.shape[0]] = rows
    return out


class Gathering:
    """The sum or average of sparse tensors, as a request. Only the counts are waited for at once."""

    def __init__(self, comm: Communicator, tensor: torch.Tensor, op: str) -> None:
        if tensor.layout is not torch.sparse_coo:
            raise _library.ArgumentError("this is no sparse tensor in COO format: use all_reduce")
        if op not in ("sum", "avg"):
            raise _library.ArgumentError(f"sparse tensors have the operations sum and avg, and not {op!r}")
        own = tensor.detach().coalesce()
        self.shape, self.divisor = own.shape, comm.size if op == "avg" else 1
        self.counts = comm.all_gather(torch.tensor([own._nnz()], dtype=torch.int64))[:, 0].tolist()
        most = max(self.counts)
        self.keys = comm.all_gather(_padded(own.indices().t().contiguous(), most), async_op=True)
        self.values = comm.all_gather(_padded(own.values(), most), async_op=True)

    def done(self) -> bool:
        return self.keys.done() and self.values.done()

    def wait(self, timeout: Optional[float] = None) -> torch.Tensor:
        keys, values = self.keys.wait(timeout), self.values.wait(timeout)
        keys = torch.cat([part[:count] for part, count in zip(keys, self.counts)])
        values = torch.cat([part[:count] for part, count in zip(values, self.counts)])
        out = torch.sparse_coo_tensor(keys.t(), values, self.shape).coalesce()
        return out if self.divisor == 1 else out / self.divisor


def sparse_all_reduce(comm: Communicator, tensor: torch.Tensor, op: str = "sum") -> torch.Tensor:
    """A new sparse tensor, coalesced: the sum (or "avg") of the ranks' sparse tensors."""
    return Gathering(comm, tensor, op).wait()


def average_later(comm: Communicator, tensor: torch.Tensor) -> Any:
    """For the DDP hook: a Future of the average."""
    return future_of(comm, Gathering(comm, tensor, "avg"), tensor.device)  # type: ignore[arg-type]
