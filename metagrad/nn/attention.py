"""Attention with several heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functional as F
from ..tensor import Tensor
from .layers import Linear
from .module import Module


class MultiheadAttention(Module):
    """Attention of `heads` heads of dim/heads entries each, between projections of query, key, value and of the result.

    query (B, L, dim), key and value (B, S, dim) → (B, L, dim). With one argument it is attention of x to itself.
    mask: booleans (L, S), (B, 1, L, S) or (B, heads, L, S), True where a key is seen; causal: keys up to the query.
    Batches come first, always. The projections are layers, which start as nn.Linear does.
    """

    def __init__(self, dim: int, heads: int, bias: bool = True, dtype: Any = np.float32) -> None:
        if dim % heads:
            raise ValueError(f"MultiheadAttention: {dim} entries do not divide among {heads} heads")
        self.heads = heads
        self.project = Linear(dim, 3 * dim, bias, dtype)  # query, key and value: one product where they are one Tensor
        self.out = Linear(dim, dim, bias, dtype)

    def forward(self, query: Any, key: Any = None, value: Any = None, mask: Any = None, causal: bool = False) -> Tensor:
        key = query if key is None else key
        value = key if value is None else value
        query, key, value = self._projected(query, key, value)
        seen = F.scaled_dot_product_attention(query, key, value, mask=mask, causal=causal).swapaxes(1, 2)
        return self.out(seen.reshape(seen.shape[:2] + (-1,)))

    def _projected(self, query: Any, key: Any, value: Any) -> Any:
        """(B, heads, length, dim/heads) of query, key and value."""
        if query is key is value:
            x = self.project(query)
            x = x.reshape(x.shape[:2] + (3, self.heads, -1)).transpose(2, 0, 3, 1, 4)
            return x[0], x[1], x[2]
        dim = self.out.weight.shape[0]
        parts = []
        for k, x in enumerate((query, key, value)):
            rows = slice(k * dim, (k + 1) * dim)
            bias = None if self.project.bias is None else self.project.bias[rows]
            x = F.linear(x, self.project.weight[rows], bias)
            parts.append(x.reshape(x.shape[:2] + (self.heads, -1)).swapaxes(1, 2))
        return parts

    def extra_repr(self) -> str:
        return f"{self.out.weight.shape[0]}, heads={self.heads}"
