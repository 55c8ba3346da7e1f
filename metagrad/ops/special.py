"""The error function, which NumPy does not have, and what is made of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from ..cuda import array_module
from ..function import Function


def _polynomial(f: Callable[[float], float], low: float, high: float, degree: int) -> list[float]:
    """Coefficients, the highest first, of Chebyshev's interpolation of f on [low, high], as a function on [−1, 1]."""
    series = chebyshev.chebinterpolate(np.vectorize(lambda u: f(((high - low) * u + high + low) / 2)), degree)
    return chebyshev.cheb2poly(series)[::-1].tolist()


def _near(t: float) -> float:
    """erf(x) / x as a function of t = x²."""
    return math.erf(math.sqrt(t)) / math.sqrt(t)


def _far(s: float) -> float:
    """e^x² erfc(x) as a function of s = 1 / (1 + x/2)."""
    x = 2 / s - 2
    return math.exp(x * x) * math.erfc(x)


_END = 6.0  # from here on erf is 1 in float64
_LOW, _HIGH = 1 / (1 + _END / 2), 1 / (1 + 1 / 2)
# for |x| < 1 and for 1 ≤ |x| < 6, exact to 2e-15 and, with fewer terms, to float32
_EXACT = _polynomial(_near, 0, 1, 11), _polynomial(_far, _LOW, _HIGH, 14)
_SINGLE = _polynomial(_near, 0, 1, 6), _polynomial(_far, _LOW, _HIGH, 8)


class Erf(Function):
    """erf x = 2/√π ∫₀ˣ e^−t² dt;  dy/dx = 2/√π e^−x².

    A polynomial for erf(x)/x in x² where |x| < 1, and beyond one for e^x² erfc(x) in 1/(1 + x/2).
    """

    saves_inputs = True

    def forward(self, x):
        xp = array_module(x)
        x = x * 1.0  # integers become floats
        near, far = _EXACT if x.dtype == np.float64 else _SINGLE
        size = xp.minimum(abs(x), _END)
        square = xp.exp(-size * size)
        place = (1 / (size * 0.5 + 1) * 2 - (_HIGH + _LOW)) * (1 / (_HIGH - _LOW))
        tail = xp.copysign(1 - square * _horner(far, place), x)
        return xp.where(size < 1, x * _horner(near, xp.minimum(size, 1) ** 2 * 2 - 1), tail)

    def backward(self, grad, x):
        return grad * (array_module(grad).exp(-x * x) * (2 / math.sqrt(math.pi)))


def _horner(coefficients, u):
    y = u * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        y *= u
        y += c
    return y


class Gelu(Function):
    """x Φ(x), Φ the normal distribution's (Hendrycks & Gimpel 2016);  dy/dx = Φ(x) + x φ(x).

    One rule: the composition would save six arrays where x is enough.
    """

    saves_inputs = True

    def forward(self, x):
        return x * _phi(x)

    def backward(self, grad, x):
        density = array_module(grad).exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return grad * (_phi(x) + x * density)


def _phi(x):
    return Erf.apply(x * math.sqrt(0.5)) * 0.5 + 0.5
