"""Reductions over an axis, several axes, or all (axis=None), by NumPy's names."""

from __future__ import annotations

from typing import Any

from ..ops import reduction
from ..tensor import Tensor, record


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Sum, x, axis=axis, keepdims=keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Mean, x, axis=axis, keepdims=keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Max, x, axis=axis, keepdims=keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Min, x, axis=axis, keepdims=keepdims)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log Σ e^x, without overflow."""
    return record(reduction.LogSumExp, x, axis=axis, keepdims=keepdims)
