"""Products of matrices."""

from __future__ import annotations

from typing import Any

from ..ops import linalg
from ..tensor import Tensor, record
from .arguments import as_tensor


def matmul(x: Any, y: Any) -> Tensor:
    """The product of vectors, matrices, or stacks of matrices."""
    return record(linalg.MatMul, x, y)


def einsum(subscripts: str, *operands: Any, optimize: Any = True) -> Tensor:
    """Einstein's sum, as numpy.einsum: einsum("be,bce->bc", target, context)."""
    if not operands:
        raise ValueError(f"einsum: {subscripts!r} names {subscripts.count(',') + 1} operands, 0 were given")
    return record(linalg.Einsum, *map(as_tensor, operands), subscripts=subscripts)


def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    """x Wᵀ + b. x (..., n), weight (m, n), bias (m,) → (..., m)."""
    return record(linalg.Linear, *map(as_tensor, (x, weight) if bias is None else (x, weight, bias)))
