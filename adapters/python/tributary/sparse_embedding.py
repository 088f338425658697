# SPDX-License-Identifier: Apache-2.0
"""A torch module whose rows are at parameter servers."""
from __future__ import annotations

from typing import Any, Tuple

import torch

from .sparse import Table


class _Rows(torch.autograd.Function):
    """Pulls rows, and pushes their gradients. `anchor` is there so that torch asks for gradients at all."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, keys: torch.Tensor, table: Table) -> torch.Tensor:
        ctx.keys, ctx.table = keys, table
        return table.pull(keys).to(anchor.device)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Tuple[None, None, None]:
        ctx.table.push(ctx.keys, gradients[0])
        return None, None, None


class Embedding(torch.nn.Module):
    """As nn.Embedding, for a table at parameter servers, whose optimizer updates the rows. `offset` is added to each index.

    It has no parameters, so a torch optimizer and DDP leave it alone. Call the table's `step` after each step.
    """

    def __init__(self, table: Table, offset: int = 0) -> None:
        super().__init__()
        self.table, self.offset = table, offset
        self.register_buffer("anchor", torch.zeros(()), persistent=False)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        keys, places = torch.unique(indices.detach().cpu() + self.offset, return_inverse=True)
        anchor = self.anchor.detach().requires_grad_(torch.is_grad_enabled())
        rows = _Rows.apply(anchor, keys, self.table)
        return rows[places.to(rows.device)]
