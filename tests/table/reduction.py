"""Reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from metagrad import functional as F

from .samples import AXES, EMPTY_AXES, Op, along_axes


def _logsumexp(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


REDUCTION = [
    Op("sum", F.sum, np.sum, along_axes(AXES + EMPTY_AXES)),
    Op("mean", F.mean, np.mean, along_axes(AXES)),
    Op("max", F.max, np.max, along_axes(AXES), domain="distinct"),
    Op("min", F.min, np.min, along_axes(AXES), domain="distinct"),
    Op("logsumexp", F.logsumexp, _logsumexp, along_axes(AXES)),
]  # fmt: skip
