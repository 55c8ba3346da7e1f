"""Elementwise operations."""

from __future__ import annotations

import math

import numpy as np

from metagrad import functional as F

from .samples import Op, Sample, elementwise, pairs, with_constants

CONDITION = np.array([[True, False, True], [False, False, True]])

ARITHMETIC = [
    Op("add", lambda x, y: x + y, np.add, pairs()),
    Op("add a number", lambda x: 2 + x + 0.5, lambda x: x + 2.5, elementwise()),
    Op("sub", lambda x, y: x - y, np.subtract, pairs()),
    Op("sub from a number", lambda x: 1.5 - x, lambda x: 1.5 - x, elementwise()),
    Op("mul", lambda x, y: x * y, np.multiply, pairs()),
    Op("mul by a number", lambda x: 3 * x, lambda x: 3 * x, elementwise()),
    Op("mul by itself", lambda x: x * x, lambda x: x * x, elementwise()),
    Op("div", lambda x, y: x / y, np.divide, pairs()),
    Op("div a number", lambda x: 1 / x, lambda x: 1 / x, elementwise()),
    Op("neg", lambda x: x.neg(), np.negative, elementwise()),
    Op("pow", lambda x, y: x**y, np.power, pairs(), domain="positive"),
    Op("pow by a number", lambda x: x**3, lambda x: x**3, elementwise()),
    Op("pow by a fraction", lambda x: x**0.5, lambda x: x**0.5, elementwise(), domain="positive"),
    Op("pow of a number", lambda x: 2.0**x, lambda x: 2.0**x, elementwise()),
    Op("abs", F.abs, np.abs, elementwise()),
    Op("sign", F.sign, np.sign, elementwise()),
    Op("exp", F.exp, np.exp, elementwise()),
    Op("expm1", F.expm1, np.expm1, elementwise()),
    Op("log", F.log, np.log, elementwise(), domain="positive"),
    Op("log1p", F.log1p, np.log1p, elementwise(), domain="positive"),
    Op("sqrt", F.sqrt, np.sqrt, elementwise(), domain="positive"),
    Op("maximum", F.maximum, np.maximum, pairs()),
    Op("maximum of a number", lambda x: F.maximum(0.1, x), lambda x: np.maximum(x, 0.1), elementwise()),
    Op("minimum", F.minimum, np.minimum, pairs()),
    Op("clip", F.clip, lambda x, low, high: np.clip(x, low, high), elementwise(low=-0.1, high=1.05)),
    Op("clip on one side", F.clip, lambda x, high: np.minimum(x, high), elementwise(high=0.1)),
    Op("where", with_constants(lambda x, y, condition: F.where(condition, x, y)),
       lambda x, y, condition: np.where(condition, x, y),
       [Sample(pair, {"condition": CONDITION}) for pair in [((2, 3), (2, 3)), ((), (2, 3)), ((3,), (2, 1))]]),
    Op("astype", lambda x: x.astype(np.float64), lambda x: x, elementwise()),
    Op("zeros_like", lambda x: x + F.zeros_like(x), lambda x: x, elementwise()),
    Op("log2", F.log2, np.log2, elementwise(), domain="positive"),
    Op("log10", F.log10, np.log10, elementwise(), domain="positive"),
    Op("logaddexp", F.logaddexp, np.logaddexp, pairs()),
    Op("square", F.square, np.square, elementwise()),
    Op("reciprocal", F.reciprocal, np.reciprocal, elementwise()),
    Op("floor", F.floor, np.floor, elementwise()),
    Op("ceil", F.ceil, np.ceil, elementwise()),
    Op("round", F.round, np.round, elementwise() + elementwise(decimals=1)),
    Op("erf", F.erf, np.vectorize(math.erf, otypes=[float]), elementwise()),
    # comparisons and logic
    Op("isnan", F.isnan, np.isnan, elementwise(), constant=True),
    Op("isinf", F.isinf, np.isinf, elementwise(), constant=True),
    Op("isfinite", F.isfinite, np.isfinite, elementwise(), constant=True),
    Op("logical_not", F.logical_not, np.logical_not, elementwise(), constant=True),
    Op("logical_and", lambda x, y: F.logical_and(x > 0, y > 0), lambda x, y: (x > 0) & (y > 0), pairs(), constant=True),
    Op("logical_or", lambda x, y: F.logical_or(x > 0, y > 0), lambda x, y: (x > 0) | (y > 0), pairs(), constant=True),
    Op("logical_xor", lambda x, y: F.logical_xor(x > 0, y > 0), lambda x, y: (x > 0) ^ (y > 0), pairs(), constant=True),
]  # fmt: skip
