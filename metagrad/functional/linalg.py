"""Products of matrices, and solving with them, by NumPy's names."""

from __future__ import annotations

import math
import string
from typing import Any, NamedTuple

import numpy as np

from ..cuda import array_module
from ..ops import linalg
from ..tensor import Tensor, record
from .arguments import as_tensor, checked_axis
from .shape import diagonal, ravel


def matmul(x: Any, y: Any) -> Tensor:
    """The product of vectors, matrices, or stacks of matrices."""
    return record(linalg.MatMul, x, y)


def dot(x: Any, y: Any) -> Tensor:
    """numpy.dot: the product of vectors and matrices; the last axis of x against the last but one of y."""
    x, y = as_tensor(x), as_tensor(y)
    if not x.ndim or not y.ndim:
        return x * y
    return x @ y if y.ndim <= 2 else tensordot(x, y, (-1, -2))


def inner(x: Any, y: Any) -> Tensor:
    """Σ x y over the last axis of both, for all pairs of rows."""
    x, y = as_tensor(x), as_tensor(y)
    return tensordot(x, y, (-1, -1)) if x.ndim and y.ndim else x * y


def outer(x: Any, y: Any) -> Tensor:
    """All products of an entry of x (n entries) and one of y (m) → (n, m)."""
    return ravel(x)[:, None] * ravel(y)


def tensordot(x: Any, y: Any, axes: Any = 2) -> Tensor:
    """Σ x y over axes of both: the last of x and the first of y, so many; or those named, (of x, of y)."""
    x, y = as_tensor(x), as_tensor(y)
    if isinstance(axes, int):
        axes = (tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes)))
    of_x, of_y = (
        [checked_axis("tensordot", a, v.ndim) for a in np.atleast_1d(k).astype(int)] for k, v in zip(axes, (x, y))
    )
    shared = tuple(x.shape[a] for a in of_x)
    if shared != tuple(y.shape[a] for a in of_y):
        raise ValueError(f"tensordot: axes {of_x} of {x.shape} and {of_y} of {y.shape} are not of the same lengths")
    rest_x, rest_y = ([a for a in range(v.ndim) if a not in named] for v, named in ((x, of_x), (y, of_y)))
    shape_x, shape_y = tuple(x.shape[a] for a in rest_x), tuple(y.shape[a] for a in rest_y)
    n = math.prod(shared)
    left = x.transpose(rest_x + of_x).reshape(math.prod(shape_x), n)
    right = y.transpose(of_y + rest_y).reshape(n, math.prod(shape_y))
    return (left @ right).reshape(shape_x + shape_y)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of a diagonal."""
    return diagonal(x, offset, axis1, axis2).sum(axis=-1)


def inv(x: Any) -> Tensor:
    """The inverse of square matrices (..., n, n)."""
    return record(linalg.Inv, _floats(x))


def solve(a: Any, b: Any) -> Tensor:
    """x with a x = b: a (..., n, n), b (..., n, k), or (n,) for one vector."""
    a, b = _floats(a), _floats(b)
    return record(linalg.Solve, a, b[:, None])[..., 0] if b.ndim == 1 else record(linalg.Solve, a, b)


def det(x: Any) -> Tensor:
    """The determinant of square matrices (..., n, n) → (...). Its derivative needs an inverse."""
    return record(linalg.Det, _floats(x))


class SignAndLog(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


def slogdet(x: Any) -> SignAndLog:
    """The determinant's sign and the logarithm of its size, which do not overflow."""
    x = _floats(x)
    sign = x._constant(lambda a: array_module(a).linalg.slogdet(a)[0])
    return SignAndLog(sign, record(linalg.LogAbsDet, x))


def cholesky(x: Any) -> Tensor:
    """L, lower triangular, with L Lᵀ = x, for symmetric positive definite matrices (..., n, n)."""
    return record(linalg.Cholesky, _floats(x))


def _floats(x: Any) -> Tensor:
    x = as_tensor(x)
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def einsum(subscripts: Any, *operands: Any, optimize: Any = True) -> Tensor:
    """Einstein's sum, as numpy.einsum: einsum("be,bce->bc", x, y), or einsum(x, [0, 1], y, [1, 2], [0, 2])."""
    if not isinstance(subscripts, str):
        subscripts, operands = _spelled((subscripts, *operands))
    if not operands:
        raise ValueError(f"einsum: {subscripts!r} names {subscripts.count(',') + 1} operands, 0 were given")
    return record(linalg.Einsum, *map(as_tensor, operands), subscripts=subscripts)


def _spelled(args: tuple) -> tuple[str, tuple]:
    """Operands each followed by a list of its axes, and at the end perhaps the output's: as a string."""
    letters = string.ascii_letters

    def term(axes: Any) -> str:
        return "".join("..." if a is Ellipsis else letters[a] for a in axes)

    operands, lists = args[: len(args) // 2 * 2 : 2], args[1::2]
    output = f"->{term(args[-1])}" if len(args) % 2 else ""
    return ",".join(map(term, lists)) + output, operands


def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    """x Wᵀ + b. x (..., n), weight (m, n), bias (m,) → (..., m)."""
    return record(linalg.Linear, *map(as_tensor, (x, weight) if bias is None else (x, weight, bias)))
