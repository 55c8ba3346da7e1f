"""The layers that most networks are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import functional as F
from ..tensor import Tensor
from . import init
from .module import Module, Parameter


class Linear(Module):
    """y = x Wᵀ + b. x (..., inputs) → (..., outputs).

    weight (outputs, inputs) and bias (outputs,) start in U(−1/√inputs, 1/√inputs).
    """

    def __init__(self, inputs: int, outputs: int, bias: bool = True, dtype: Any = np.float32) -> None:
        bound = inputs**-0.5 if inputs else 0.0
        self.weight = Parameter(np.empty((outputs, inputs), dtype))
        self.bias = Parameter(np.empty(outputs, dtype)) if bias else None
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, x: Any) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"{inputs}, {outputs}" + ("" if self.bias is not None else ", bias=False")


class Embedding(Module):
    """A table of `num` rows of `dim` numbers, which start in N(0, 1); ids (...) → (..., dim).

    padding_idx: a row that starts at 0, gets no gradient and is left out by `nn.init`; what is loaded
        into it stays. None by default: row 0 is a row as any other.
    sparse: its gradient holds only the rows read (Rows), so a step costs what the batch costs, not what
        the table costs. Repeated ids add up. sparse=False gives a gradient of the table's shape.
    Raises IndexError for an id outside 0 … num−1.
    """

    def __init__(
        self,
        num: int,
        dim: int,
        padding_idx: int | None = None,
        sparse: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        self.padding_idx = _row_of(padding_idx, num)
        self.sparse = sparse
        self.weight = Parameter(np.zeros((num, dim), dtype), padding_idx=self.padding_idx)
        init.normal_(self.weight)

    @classmethod
    def from_pretrained(
        cls, weight: Any, freeze: bool = True, padding_idx: int | None = None, sparse: bool = True
    ) -> Embedding:
        """An Embedding of given rows (num, dim), copied in their dtype; it learns unless frozen."""
        rows = Tensor(weight)
        if rows.ndim != 2:
            raise ValueError(f"from_pretrained: weight is (num, dim), two axes, not of shape {rows.shape}")
        num, dim = rows.shape
        layer = cls(0, dim, sparse=sparse)
        layer.padding_idx = _row_of(padding_idx, num)
        layer.weight = Parameter(rows, requires_grad=not freeze, padding_idx=layer.padding_idx)
        return layer

    def forward(self, ids: Any) -> Tensor:
        return F.embedding(self.weight, ids, padding_idx=self.padding_idx, sparse=self.sparse)

    def extra_repr(self) -> str:
        num, dim = self.weight.shape
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{num}, {dim}{padding}, sparse={self.sparse}"


def _row_of(padding_idx: int | None, num: int) -> int | None:
    """padding_idx counted from the front."""
    if padding_idx is None:
        return None
    if not -num <= padding_idx < num:
        raise ValueError(f"Embedding: padding_idx {padding_idx} is not a row of a table of {num}")
    return padding_idx % num


class Dropout(Module):
    """Each entry 0 with probability p while training, else divided by 1 − p; nothing in eval mode. See F.dropout."""

    def __init__(self, p: float = 0.5) -> None:
        F.dropout(0.0, p)  # refuses what is no probability
        self.p = p

    def forward(self, x: Any) -> Tensor:
        return F.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Flatten(Module):
    """The axes from `start` on as one: (N, C, H, W) → (N, C·H·W)."""

    def __init__(self, start: int = 1) -> None:
        self.start = start

    def forward(self, x: Any) -> Tensor:
        return F.reshape(x, (*x.shape[: self.start], math.prod(x.shape[self.start :])))

    def extra_repr(self) -> str:
        return f"start={self.start}"
