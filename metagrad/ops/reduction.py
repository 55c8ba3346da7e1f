"""Reductions over an axis, several axes, or all (axis=None), as NumPy's."""

from __future__ import annotations

import math

import numpy as np

from ..cuda import array_module
from ..function import Function


def kept_shape(shape: tuple[int, ...], axis) -> tuple[int, ...]:
    """The shape that a reduction over `axis` has with keepdims=True."""
    if axis is None:
        return (1,) * len(shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    reduced = {a % len(shape) for a in axes} if shape else set()
    return tuple(1 if i in reduced else n for i, n in enumerate(shape))


def widened(x):
    """x, in float32 if it is float16, whose sums lose every term below a 2048th."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


class Sum(Function):
    """Σ x. float16 adds up in float32."""

    def forward(self, x, axis, keepdims):
        self.shape_in, self.axis = x.shape, axis
        total = widened(x).sum(axis=axis, keepdims=keepdims)
        return total.astype(np.float16) if x.dtype == np.float16 else total

    def backward(self, grad):
        spread = grad.reshape(kept_shape(self.shape_in, self.axis))
        return array_module(grad).broadcast_to(spread, self.shape_in)


class Mean(Function):
    """Σ x / n. The mean of nothing is NaN, as NumPy's."""

    def forward(self, x, axis, keepdims):
        self.shape_in, self.axis = x.shape, axis
        return x.mean(axis=axis, keepdims=keepdims)

    def backward(self, grad):
        kept = kept_shape(self.shape_in, self.axis)
        n = 1
        for whole, left in zip(self.shape_in, kept):
            n *= whole if left == 1 else 1
        return array_module(grad).broadcast_to((grad / max(n, 1)).reshape(kept), self.shape_in)


class Prod(Function):
    """Π x;  ∂/∂x_i = the product of the others, from both sides: exact also where some are 0."""

    saves_inputs = True

    def forward(self, x, axis, keepdims):
        self.axis = axis
        return widened(x).prod(axis=axis, keepdims=keepdims).astype(x.dtype, copy=False)

    def backward(self, grad, x):
        xp = array_module(grad)
        grad = grad.reshape(kept_shape(x.shape, self.axis))
        last, restore = together(x, self.axis)
        before = _before(xp.cumprod(last, axis=-1), -1)
        after = xp.flip(_before(xp.cumprod(xp.flip(last, -1), axis=-1), -1), -1)
        return grad * restore(before * after)


def _before(products, axis):
    """What stands before each entry of an axis, and 1 before the first."""
    xp, others = array_module(products), (slice(None),) * (axis % products.ndim)
    first = xp.zeros_like(products[others + (slice(0, 1),)]) + 1
    return xp.concatenate([first, products[others + (slice(None, -1),)]], axis=axis)


def together(x, axis):
    """x with the reduced axes as one, its last, and the function that takes an array of that form back to x's."""
    shape, ndim = x.shape, x.ndim
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    reduced = [a % ndim for a in axes] if ndim else []
    order = tuple([i for i in range(ndim) if i not in reduced] + reduced)
    moved = tuple(shape[i] for i in order)
    inverse = tuple(order.index(i) for i in range(ndim))
    size = math.prod(shape[i] for i in reduced)
    last = x.transpose(order).reshape(moved[: ndim - len(reduced)] + (size,))
    return last, lambda y: y.reshape(moved).transpose(inverse)


class CumSum(Function):
    """y_i = Σ_{j ≤ i} x_j along an axis;  dx_i = Σ_{j ≥ i} dy_j."""

    def forward(self, x, axis):
        self.axis = axis
        return widened(x).cumsum(axis=axis).astype(x.dtype if x.dtype.kind == "f" else None, copy=False)

    def backward(self, grad):
        xp = array_module(grad)
        return xp.flip(xp.cumsum(xp.flip(grad, self.axis), axis=self.axis), self.axis)


class CumProd(Function):
    """y_i = Π_{j ≤ i} x_j along an axis;  dx_i = y_{i−1} S_i with S_i = dy_i + x_{i+1} S_{i+1}.

    Step by step along the axis: the usual sum of dy y / x fails where an x is 0.
    """

    saves_inputs = True
    saves_output = True

    def forward(self, x, axis):
        self.axis = axis
        return x.cumprod(axis=axis)

    def backward(self, grad, x, y):
        others = (slice(None),) * (self.axis % x.ndim)
        sums, part = [], 0
        for i in reversed(range(x.shape[self.axis])):
            sums.append(grad[others + (i,)] + part)
            part = x[others + (i,)] * sums[-1]
        return array_module(grad).stack(sums[::-1], axis=self.axis) * _before(y, self.axis) if sums else grad


class Max(Function):
    """The largest entry; equal ones share the gradient equally."""

    saves_inputs = True
    saves_output = True

    def forward(self, x, axis, keepdims):
        self.axis = axis
        return x.max(axis=axis, keepdims=keepdims)

    def backward(self, grad, x, y):
        return _to_equal(grad, x, y, self.axis)


class Min(Function):
    """The smallest entry; equal ones share the gradient equally."""

    saves_inputs = True
    saves_output = True

    def forward(self, x, axis, keepdims):
        self.axis = axis
        return x.min(axis=axis, keepdims=keepdims)

    def backward(self, grad, x, y):
        return _to_equal(grad, x, y, self.axis)


def _to_equal(grad, x, y, axis):
    """grad, shared among the entries of x that equal the reduced y."""
    kept = kept_shape(x.shape, axis)
    winners = (x == y.reshape(kept)).astype(grad.dtype)
    return winners * (grad.reshape(kept) / winners.sum(axis=axis, keepdims=True))


class LogSumExp(Function):
    """y = log Σ e^x, stable for any x;  dx = e^(x − y) dy."""

    saves_inputs = True
    saves_output = True

    def forward(self, x, axis, keepdims):
        self.axis = axis
        xp, wide = array_module(x), widened(x)
        top = wide.max(axis=axis, keepdims=True)
        top = xp.where(xp.isfinite(top), top, 0)  # −inf − −inf would be NaN
        total = xp.exp(wide - top).sum(axis=axis, keepdims=True)
        with np.errstate(divide="ignore"):  # the logarithm of an empty sum is −inf, and that is the answer
            y = xp.log(total) + top
        y = y.astype(x.dtype) if wide is not x else y
        return y if keepdims else y.squeeze(axis=axis)

    def backward(self, grad, x, y):
        xp = array_module(grad)
        y = y.reshape(kept_shape(x.shape, self.axis))
        share = xp.exp(x - xp.where(y == -np.inf, 0, y))
        return grad.reshape(y.shape) * share
