"""Taking and writing entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from metagrad import Tensor
from metagrad import functional as F

from .samples import Op, Sample, on, with_constants

IDS = np.array([[0, 2, 2], [1, 0, 2]])


def _index_samples() -> list[Sample]:
    indices = [
        1, -1, slice(0, 2), slice(None, None, -1), slice(None, None, 2), ..., None, (0, 1), (slice(None), 0),
        (..., 1), (None, 2), np.array([0, 2, 0, -1]), np.array([[0, 1], [1, 1]]), [2, 0], np.array([True, False, True]),
        (np.array([0, 2, 2]), np.array([1, 0, 0])), (slice(None), np.array([1, 1, 0])), (np.array([0, 0]), 1),
        np.ones((3, 2), dtype=bool), np.array([], dtype=np.int64), (slice(1, 1), 0), np.int64(1), (np.array([1, 1]), None, slice(0, 1)),
    ]  # fmt: skip
    return [Sample(((3, 2),), {"index": index}) for index in indices]


def _filled(x: np.ndarray, axis: int, index: np.ndarray, value: float) -> np.ndarray:
    out = np.moveaxis(x.copy(), axis, 0)
    out[index] = value
    return np.moveaxis(out, 0, axis)


def _set(x: Tensor, y: Tensor, index: Any) -> Tensor:
    out = x * 1
    out[index] = y
    return out


def _set_numpy(x: np.ndarray, y: np.ndarray, index: Any) -> np.ndarray:
    out = x.copy()
    out[index] = y
    return out


def _index_added(x, y, axis, index):
    out = np.moveaxis(x.copy(), axis, 0)
    np.add.at(out, index, np.moveaxis(y, axis, 0) if y.ndim else y)
    return np.moveaxis(out, 0, axis)


def _scattered(x, y, axis, index, write=None):
    """Entry by entry."""
    out = x.copy()
    for place in np.ndindex(index.shape):
        there = list(place)
        there[axis] = index[place]
        out[tuple(there)] = y[place] + (out[tuple(there)] if write else 0)
    return out


INDEXING = [
    Op("getitem", with_constants(lambda x, index: x[index]), lambda x, index: x[index], _index_samples()),
    Op("gather", with_constants(lambda x, axis, index: x.gather(axis, index)), lambda x, axis, index: np.take_along_axis(x, index, axis),
       [Sample(((2, 3),), {"axis": 1, "index": IDS}), Sample(((3, 3),), {"axis": 0, "index": IDS}), Sample(((2, 3),), {"axis": -1, "index": -IDS[:, :1]})]),
    Op("take_along_axis", with_constants(F.take_along_axis), lambda x, axis, index: np.take_along_axis(x, index, axis), [Sample(((2, 3),), {"axis": 1, "index": IDS})]),
    Op("embedding", with_constants(F.embedding), lambda w, ids, **_: w[ids],
       [Sample(((4, 2),), {"ids": IDS, "sparse": s}) for s in (True, False)] + [Sample(((4, 2),), {"ids": IDS[0, 0]}), Sample(((4, 2),), {"ids": IDS[:0]})]),
    Op("index_fill", with_constants(F.index_fill), lambda x, axis, index, value: _filled(x, axis, index, value),
       [Sample(((2, 3),), {"axis": a, "index": np.array([0, 1, 1]), "value": 0.0}) for a in (0, 1, -1)]),
    Op("setitem", lambda x, y, index: _set(x, y, on(x, index)), lambda x, y, index: _set_numpy(x, y, index),
       [Sample(((3, 2), (2,)), {"index": i}) for i in (0, slice(0, 2), np.array([2, 0]), ...)] + [Sample(((3, 2), ()), {"index": np.array([True, False, True])})]),
    Op("index_select", with_constants(F.index_select), lambda x, axis, index: np.take(x, index, axis),
       [Sample(((3, 4),), {"axis": a, "index": np.array([2, 0, 2])}) for a in (0, 1, -1)]),
    Op("index_add", with_constants(lambda x, y, axis, index: F.index_add(x, axis, index, y)), lambda x, y, axis, index: _index_added(x, y, axis, index),
       [Sample(((3, 2), (4, 2)), {"axis": 0, "index": np.array([2, 0, 2, 1])}), Sample(((2, 3), (2, 2)), {"axis": -1, "index": np.array([1, 1])}),
        Sample(((2, 3), ()), {"axis": 0, "index": np.array([1, 1])})]),
    Op("scatter", with_constants(lambda x, y, axis, index: F.scatter(x, axis, index, y)), lambda x, y, axis, index: _scattered(x, y, axis, index),
       [Sample(((3, 3), (2, 3)), {"axis": 1, "index": np.array([[2, 0, 1], [1, 2, 0]])}), Sample(((3, 3), (3, 3)), {"axis": 0, "index": np.array([[2, 0]])})]),
    Op("scatter_add", with_constants(lambda x, y, axis, index: F.scatter_add(x, axis, index, y)), lambda x, y, axis, index: _scattered(x, y, axis, index, np.add.at),
       [Sample(((3, 3), (2, 3)), {"axis": 1, "index": IDS}), Sample(((3, 3), (3, 3)), {"axis": 0, "index": np.array([[1, 1], [1, 0]])})]),
    Op("masked_select", with_constants(F.masked_select), lambda x, mask: np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape))[np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))],
       [Sample(((2, 3),), {"mask": m}) for m in (IDS > 0, np.array([True, False, True]), IDS > 5)] + [Sample(((3,),), {"mask": IDS > 0})]),
    Op("masked_fill", with_constants(lambda x, mask, value: F.masked_fill(x, mask, value)), lambda x, mask, value: np.where(mask, value, x),
       [Sample(((2, 3),), {"mask": m, "value": -1.5}) for m in (IDS > 0, np.array([True, False, True]))]),
    Op("sort", F.sort, np.sort, [Sample(((3, 4),), {"axis": a}) for a in (0, 1, -1)] + [Sample(((0,),))], domain="distinct"),
    Op("argsort", F.argsort, np.argsort, [Sample(((3, 4),), {"axis": a}) for a in (0, 1, -1)], domain="distinct", constant=True),
    Op("topk", lambda x, k, axis, largest: F.topk(x, k, axis, largest).values, lambda x, k, axis, largest: np.take(np.flip(np.sort(x, axis), axis) if largest else np.sort(x, axis), range(k), axis),
       [Sample(((3, 4),), {"k": 2, "axis": a, "largest": large}) for a in (0, -1) for large in (True, False)], domain="distinct"),
    Op("nonzero", lambda x: F.nonzero(x > 0.5)[-1], lambda x: np.nonzero(x > 0.5)[-1], [Sample(((3, 4),)), Sample(((3,),))], constant=True),
]  # fmt: skip
