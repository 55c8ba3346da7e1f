"""Elementwise arithmetic. Two inputs broadcast as in NumPy; the engine sums the gradients back."""

from __future__ import annotations

import math

import numpy as np

from ..cuda import array_module
from ..function import Function


class Add(Function):
    """x + y."""

    def forward(self, x, y):
        return x + y

    def backward(self, grad):
        return grad, grad


class Sub(Function):
    """x − y."""

    def forward(self, x, y):
        return x - y

    def backward(self, grad):
        to_y = self.edges[1]
        return grad, to_y and -grad


class Mul(Function):
    """x y."""

    saves_inputs = True

    def forward(self, x, y):
        return x * y

    def backward(self, grad, x, y):
        to_x, to_y = self.edges
        return to_x and grad * y, to_y and grad * x


class Div(Function):
    """x / y;  ∂/∂x = 1/y, ∂/∂y = −x/y². Integers divide to floats."""

    saves_inputs = True

    def forward(self, x, y):
        return x / y

    def backward(self, grad, x, y):
        to_x, to_y = self.edges
        return to_x and grad / y, to_y and -grad * x / (y * y)


class Neg(Function):
    """−x."""

    def forward(self, x):
        return -x

    def backward(self, grad):
        return -grad


class Pow(Function):
    """x^y;  ∂/∂x = y x^(y−1), ∂/∂y = x^y ln x.

    At x = 0: ∂/∂x is 0 for 0 ≤ y < 1 (as for the square root), and ∂/∂y is 0.
    """

    saves_inputs = True

    def forward(self, x, y):
        return x**y

    def backward(self, grad, x, y):
        xp = array_module(grad)
        to_x, to_y = self.edges
        dx = dy = None
        if to_x and isinstance(y, int | float) and not 0 <= y < 1:
            dx = grad * (y * x ** (y - 1))
        elif to_x:
            pole = (x == 0) & (y >= 0) & (y < 1)
            dx = xp.where(pole, 0, grad * y * xp.where(pole, 1, x) ** (y - 1))
        if to_y:
            dy = grad * x**y * _log_of_base(x, xp)
        return dx, dy


def _log_of_base(x, xp):
    """ln x, and 0 at 0, where x^y ln x has that limit for y > 0."""
    if isinstance(x, int | float):
        return math.log(x) if x > 0 else 0.0 if x == 0 else math.nan
    return xp.log(xp.where(x == 0, 1, x))


class Abs(Function):
    """|x|;  dy/dx = sign x, which is 0 at 0."""

    saves_inputs = True

    def forward(self, x):
        return abs(x)

    def backward(self, grad, x):
        return grad * array_module(grad).sign(x)


class Piecewise(Function):
    """The base of what is constant but for jumps: its derivative is 0 wherever there is one."""

    def backward(self, grad):
        return array_module(grad).zeros_like(grad)


class Sign(Piecewise):
    """−1, 0 or 1."""

    def forward(self, x):
        return array_module(x).sign(x)


class Floor(Piecewise):
    """The integer below."""

    def forward(self, x):
        return array_module(x).floor(x)


class Ceil(Piecewise):
    """The integer above."""

    def forward(self, x):
        return array_module(x).ceil(x)


class Round(Piecewise):
    """The nearest number of so many decimals; of two that are as near, the even one."""

    def forward(self, x, decimals):
        return x.round(decimals)


class Exp(Function):
    """e^x."""

    saves_output = True

    def forward(self, x):
        return array_module(x).exp(x)

    def backward(self, grad, y):
        return grad * y


class Expm1(Function):
    """e^x − 1, exact also for small x;  dy/dx = y + 1."""

    saves_output = True

    def forward(self, x):
        return array_module(x).expm1(x)

    def backward(self, grad, y):
        return grad * (y + 1)


class Log(Function):
    """ln x."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).log(x)

    def backward(self, grad, x):
        return grad / x


class Log2(Function):
    """log₂ x, exact at powers of 2, which ln x / ln 2 is not;  dy/dx = 1/(x ln 2)."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).log2(x)

    def backward(self, grad, x):
        return grad / (x * math.log(2))


class Log10(Function):
    """log₁₀ x, exact at powers of 10;  dy/dx = 1/(x ln 10)."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).log10(x)

    def backward(self, grad, x):
        return grad / (x * math.log(10))


class Log1p(Function):
    """ln(1 + x), exact also for small x."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).log1p(x)

    def backward(self, grad, x):
        return grad / (x + 1)


class LogAddExp(Function):
    """z = log(e^x + e^y), without overflow;  ∂/∂x = e^(x − z), ∂/∂y = e^(y − z)."""

    saves_inputs = True
    saves_output = True

    def forward(self, x, y):
        return array_module(x).logaddexp(x, y)

    def backward(self, grad, x, y, z):
        xp = array_module(grad)
        z = xp.where(z == -math.inf, 0, z)  # −∞ − −∞ would be NaN
        return grad * xp.exp(x - z), grad * xp.exp(y - z)


class Sqrt(Function):
    """√x;  dy/dx = 1/(2y), and 0 at 0, so that a norm of zeros does not poison a sum."""

    saves_output = True

    def forward(self, x):
        return array_module(x).sqrt(x)

    def backward(self, grad, y):
        xp = array_module(grad)
        return xp.where(y == 0, 0, grad / (xp.where(y == 0, 1, y) * 2))


class Maximum(Function):
    """The larger of x and y; where they are equal each gets half of the gradient."""

    saves_inputs = True

    def forward(self, x, y):
        return array_module(x).maximum(x, y)

    def backward(self, grad, x, y):
        return _to_winner(grad, x, y)


class Minimum(Function):
    """The smaller of x and y; where they are equal each gets half of the gradient."""

    saves_inputs = True

    def forward(self, x, y):
        return array_module(x).minimum(x, y)

    def backward(self, grad, x, y):
        return _to_winner(grad, y, x)


def _to_winner(grad, x, y):
    """The gradients of max(x, y)."""
    xp = array_module(grad)
    shared = xp.where(x == y, grad / 2, 0)
    return xp.where(x > y, grad, shared), xp.where(y > x, grad, shared)


class Clip(Function):
    """x kept within [low, high], constants of which either may be None; dy/dx is 1 within, borders included."""

    saves_inputs = True

    def forward(self, x, low, high):
        if not all(bound is None or isinstance(bound, int | float | np.number) for bound in (low, high)):
            raise TypeError(f"clip: bounds are numbers, not {low!r} and {high!r}; F.maximum and F.minimum take Tensors")
        self.low, self.high = low, high
        return x.clip(low, high)

    def backward(self, grad, x):
        xp = array_module(grad)
        if self.low is not None:
            grad = xp.where(x < self.low, 0, grad)
        if self.high is not None:
            grad = xp.where(x > self.high, 0, grad)
        return grad


class Where(Function):
    """x where the constant `condition` holds, y elsewhere. No gradient passes to the side not taken."""

    def forward(self, x, y, condition):
        self.condition = condition
        return array_module(condition).where(condition, x, y)

    def backward(self, grad):
        where = array_module(grad).where
        return where(self.condition, grad, 0), where(self.condition, 0, grad)


class Astype(Function):
    """x in another dtype. The engine casts the gradient back."""

    def forward(self, x, dtype):
        return x.astype(dtype)

    def backward(self, grad):
        return grad if np.issubdtype(grad.dtype, np.inexact) else None
