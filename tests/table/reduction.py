"""Reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from metagrad import functional as F

from .samples import AXES, EMPTY_AXES, Op, Sample, along_axes, elementwise


def _logsumexp(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


REDUCTION = [
    Op("sum", F.sum, np.sum, along_axes(AXES + EMPTY_AXES)),
    Op("mean", F.mean, np.mean, along_axes(AXES)),
    Op("max", F.max, np.max, along_axes(AXES), domain="distinct"),
    Op("min", F.min, np.min, along_axes(AXES), domain="distinct"),
    Op("logsumexp", F.logsumexp, _logsumexp, along_axes(AXES)),
    Op("prod", F.prod, np.prod, along_axes(AXES + EMPTY_AXES)),
    Op("prod with zeros", F.prod, np.prod, [Sample(((3, 4),), {"axis": a}) for a in (None, 0, 1, (0, 1))], domain="zeros"),
    Op("var", F.var, np.var, along_axes(AXES) + [Sample(((2, 3),), {"axis": 1, "ddof": 1})]),
    Op("std", F.std, np.std, along_axes([axes for axes in AXES if axes[0] not in ((), (1, 3))]) + [Sample(((2, 3),), {"axis": None, "ddof": 1})]),
    Op("norm", F.norm, lambda x, ord=2, axis=None, keepdims=False: (abs(x) ** ord).sum(axis=axis, keepdims=keepdims) ** (1 / ord),
       along_axes(AXES) + [Sample(((2, 3),), {"ord": n, "axis": 1}) for n in (1, 2, 3, 1.5)]),
    Op("norm, largest", lambda x: F.norm(x, np.inf), lambda x: abs(x).max(), elementwise([(3,), (2, 3)]), domain="distinct"),
    Op("cumsum", F.cumsum, np.cumsum, along_axes([((3,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3), None), ((0,), 0), ((2, 0), 1)], keepdims=False)),
    Op("cumprod", F.cumprod, np.cumprod, along_axes([((3,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3), None), ((0,), 0)], keepdims=False)),
    Op("cumprod with zeros", F.cumprod, np.cumprod, [Sample(((3, 4),), {"axis": a}) for a in (0, 1, None)], domain="zeros"),
    Op("median", F.median, np.median, along_axes(AXES), domain="distinct"),
    Op("argmax", F.argmax, np.argmax, along_axes([((3,), 0), ((2, 3), 1), ((2, 3), None)]), constant=True),
    Op("argmin", F.argmin, np.argmin, along_axes([((3,), 0), ((2, 3), 1), ((2, 3), None)]), constant=True),
    Op("any", lambda x, **options: F.any(x > 0.6, **options), lambda x, **options: np.any(x > 0.6, **options), along_axes(AXES + EMPTY_AXES), constant=True),
    Op("all", lambda x, **options: F.all(x > 0.3, **options), lambda x, **options: np.all(x > 0.3, **options), along_axes(AXES + EMPTY_AXES), constant=True),
    Op("count_nonzero", lambda x, **options: F.count_nonzero(x > 0.6, **options), lambda x, **options: np.asarray(np.count_nonzero(x > 0.6, **options)),
       along_axes(AXES + EMPTY_AXES), constant=True),
]  # fmt: skip
