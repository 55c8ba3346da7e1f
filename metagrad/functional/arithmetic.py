"""Elementwise functions, by NumPy's names."""

from __future__ import annotations

from typing import Any

from ..ops import arithmetic
from ..tensor import Tensor, record
from .arguments import array_first, constant


def exp(x: Any) -> Tensor:
    return record(arithmetic.Exp, x)


def expm1(x: Any) -> Tensor:
    return record(arithmetic.Expm1, x)


def log(x: Any) -> Tensor:
    return record(arithmetic.Log, x)


def log1p(x: Any) -> Tensor:
    return record(arithmetic.Log1p, x)


def sqrt(x: Any) -> Tensor:
    return record(arithmetic.Sqrt, x)


def sign(x: Any) -> Tensor:
    return record(arithmetic.Sign, x)


def abs(x: Any) -> Tensor:
    return record(arithmetic.Abs, x)


def maximum(x: Any, y: Any) -> Tensor:
    """The larger of two, entry by entry; equal ones share the gradient."""
    return record(arithmetic.Maximum, *array_first(x, y))


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of two, entry by entry; equal ones share the gradient."""
    return record(arithmetic.Minimum, *array_first(x, y))


def clip(x: Any, low: float | None = None, high: float | None = None) -> Tensor:
    """x kept within [low, high], numbers; None leaves a side open."""
    return record(arithmetic.Clip, x, low=low, high=high)


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """x where the condition holds, y elsewhere."""
    return record(arithmetic.Where, x, y, condition=constant(condition, x, y))


def zeros_like(x: Any) -> Tensor:
    return Tensor.zeros_like(x)
