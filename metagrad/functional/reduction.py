"""Reductions over an axis, several axes, or all (axis=None), by NumPy's names."""

from __future__ import annotations

from typing import Any

from ..ops import reduction
from ..tensor import Tensor, record
from .arguments import as_tensor
from .arithmetic import abs, sqrt
from .indexing import argsort, take_along_axis


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Sum, x, axis=axis, keepdims=keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Mean, x, axis=axis, keepdims=keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product; its gradient is exact also where entries are 0."""
    return record(reduction.Prod, x, axis=axis, keepdims=keepdims)


def var(x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """Σ (x − mean)² / (n − ddof)."""
    x = as_tensor(x)
    centred = x - mean(x, axis, keepdims=True)
    squares = sum(centred * centred, axis, keepdims)
    n = x.size // squares.size if squares.size else 0
    return squares / (n - ddof if n > ddof else float("nan"))


def std(x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """√var; gradient 0 where it is 0."""
    return sqrt(var(x, axis, ddof, keepdims))


def norm(x: Any, ord: float = 2, axis: Any = None, keepdims: bool = False) -> Tensor:
    """(Σ |x|^ord)^(1/ord), for ord ≥ 1, and the largest |x| for infinity; gradient 0 at 0. Of vectors."""
    x = as_tensor(x)
    if ord == 2:
        return sqrt(sum(x * x, axis, keepdims))
    if ord == float("inf"):
        return max(abs(x), axis, keepdims)
    if not isinstance(ord, int | float) or ord < 1:
        raise ValueError(f"norm: ord is a number from 1 on, or infinity, not {ord!r}")
    return sum(abs(x), axis, keepdims) if ord == 1 else sum(abs(x) ** ord, axis, keepdims) ** (1 / ord)


def cumsum(x: Any, axis: int | None = None) -> Tensor:
    """The sum of the entries up to each, along an axis; of all in a row where none is given."""
    x = as_tensor(x)
    return record(reduction.CumSum, x.reshape(-1) if axis is None else x, axis=0 if axis is None else axis)


def cumprod(x: Any, axis: int | None = None) -> Tensor:
    """The product of the entries up to each, as cumsum; its gradient is exact also where entries are 0."""
    x = as_tensor(x)
    return record(reduction.CumProd, x.reshape(-1) if axis is None else x, axis=0 if axis is None else axis)


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The middle entry, or the mean of the two middle ones, which share the gradient."""
    x = as_tensor(x)
    last, _ = reduction.together(x, axis)
    n = last.shape[-1]
    if not n:
        raise ValueError(f"median: there is none of an axis without entries; the values have shape {x.shape}")
    middle = argsort(last)[..., (n - 1) // 2 : n // 2 + 1]
    out = mean(take_along_axis(last, middle, axis=-1), axis=-1)
    return out.reshape(reduction.kept_shape(x.shape, axis)) if keepdims else out


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Max, x, axis=axis, keepdims=keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Min, x, axis=axis, keepdims=keepdims)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log Σ e^x, without overflow."""
    return record(reduction.LogSumExp, x, axis=axis, keepdims=keepdims)


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the largest entry, the first of equal ones; in the flattened array where no axis is given."""
    return as_tensor(x)._constant(lambda a: a.argmax(axis=axis, keepdims=keepdims))


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the smallest entry, as argmax."""
    return as_tensor(x)._constant(lambda a: a.argmin(axis=axis, keepdims=keepdims))


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether an entry is not 0."""
    return as_tensor(x)._constant(lambda a: a.any(axis=axis, keepdims=keepdims))


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether no entry is 0."""
    return as_tensor(x)._constant(lambda a: a.all(axis=axis, keepdims=keepdims))


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many entries are not 0."""
    return as_tensor(x)._constant(lambda a: (a != 0).sum(axis=axis, keepdims=keepdims))
