"""Trigonometric and hyperbolic functions."""

from __future__ import annotations

import numpy as np

from metagrad import functional as F

from .samples import Op, elementwise, pairs

TRIGONOMETRY = [
    Op("sin", F.sin, np.sin, elementwise()),
    Op("cos", F.cos, np.cos, elementwise()),
    Op("tan", F.tan, np.tan, elementwise(), domain="small"),
    Op("arcsin", F.arcsin, np.arcsin, elementwise(), domain="small"),
    Op("arccos", F.arccos, np.arccos, elementwise(), domain="small"),
    Op("arctan", F.arctan, np.arctan, elementwise()),
    Op("arctan2", F.arctan2, np.arctan2, pairs()),
    Op("hypot", F.hypot, np.hypot, pairs()),
    Op("sinh", F.sinh, np.sinh, elementwise()),
    Op("cosh", F.cosh, np.cosh, elementwise()),
    Op("arcsinh", F.arcsinh, np.arcsinh, elementwise()),
    Op("arccosh", lambda x: F.arccosh(x + 1), lambda x: np.arccosh(x + 1), elementwise(), domain="positive"),
    Op("arctanh", F.arctanh, np.arctanh, elementwise(), domain="small"),
]  # fmt: skip
