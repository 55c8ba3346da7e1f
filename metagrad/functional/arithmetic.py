"""Elementwise functions, by NumPy's names."""

from __future__ import annotations

from typing import Any

from ..cuda import array_module
from ..ops import arithmetic, special
from ..tensor import Tensor, record
from .arguments import array_first, as_tensor, constant


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


def log2(x: Any) -> Tensor:
    return record(arithmetic.Log2, x)


def log10(x: Any) -> Tensor:
    return record(arithmetic.Log10, x)


def logaddexp(x: Any, y: Any) -> Tensor:
    """log(e^x + e^y), without overflow."""
    return record(arithmetic.LogAddExp, *array_first(x, y))


def square(x: Any) -> Tensor:
    x = as_tensor(x)
    return x * x


def reciprocal(x: Any) -> Tensor:
    return 1 / as_tensor(x)


def floor(x: Any) -> Tensor:
    """The integer below; gradient 0."""
    return record(arithmetic.Floor, x)


def ceil(x: Any) -> Tensor:
    """The integer above; gradient 0."""
    return record(arithmetic.Ceil, x)


def round(x: Any, decimals: int = 0) -> Tensor:
    """The nearest number of so many decimals; gradient 0."""
    return record(arithmetic.Round, x, decimals=decimals)


def erf(x: Any) -> Tensor:
    """2/√π ∫₀ˣ e^−t² dt."""
    return record(special.Erf, x)


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


def isnan(x: Any) -> Tensor:
    return as_tensor(x)._constant(lambda a: array_module(a).isnan(a))


def isinf(x: Any) -> Tensor:
    return as_tensor(x)._constant(lambda a: array_module(a).isinf(a))


def isfinite(x: Any) -> Tensor:
    return as_tensor(x)._constant(lambda a: array_module(a).isfinite(a))


def logical_not(x: Any) -> Tensor:
    return as_tensor(x) == 0


def logical_and(x: Any, y: Any) -> Tensor:
    return (as_tensor(x) != 0) & (as_tensor(y) != 0)


def logical_or(x: Any, y: Any) -> Tensor:
    return (as_tensor(x) != 0) | (as_tensor(y) != 0)


def logical_xor(x: Any, y: Any) -> Tensor:
    return (as_tensor(x) != 0) != (as_tensor(y) != 0)
