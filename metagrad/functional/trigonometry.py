"""Trigonometric and hyperbolic functions, by NumPy's names."""

from __future__ import annotations

from typing import Any

from ..ops import trigonometry
from ..tensor import Tensor, record
from .arguments import array_first, as_tensor


def sin(x: Any) -> Tensor:
    return record(trigonometry.Sin, x)


def cos(x: Any) -> Tensor:
    return record(trigonometry.Cos, x)


def tan(x: Any) -> Tensor:
    return record(trigonometry.Tan, x)


def arcsin(x: Any) -> Tensor:
    return record(trigonometry.Arcsin, x)


def arccos(x: Any) -> Tensor:
    return record(trigonometry.Arccos, x)


def arctan(x: Any) -> Tensor:
    return record(trigonometry.Arctan, x)


def sinh(x: Any) -> Tensor:
    return record(trigonometry.Sinh, x)


def cosh(x: Any) -> Tensor:
    return record(trigonometry.Cosh, x)


def arcsinh(x: Any) -> Tensor:
    return record(trigonometry.Arcsinh, x)


def arccosh(x: Any) -> Tensor:
    return record(trigonometry.Arccosh, x)


def arctanh(x: Any) -> Tensor:
    return record(trigonometry.Arctanh, x)


def arctan2(y: Any, x: Any) -> Tensor:
    """The angle of the point (x, y), from −π to π."""
    return record(trigonometry.Arctan2, *map(as_tensor, (y, x)))


def hypot(x: Any, y: Any) -> Tensor:
    """√(x² + y²), without overflow; gradient 0 at 0."""
    return record(trigonometry.Hypot, *array_first(x, y))
