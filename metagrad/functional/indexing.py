"""Taking entries by index, and writing into copies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..cuda import array_module
from ..ops import indexing
from ..tensor import Tensor, record
from .arguments import as_tensor, checked_axis, constant
from .arithmetic import where


def take_along_axis(x: Any, index: Any, axis: int) -> Tensor:
    """out[i, j] = x[i, index[i, j]] for axis 1, and so for any axis; index has as many axes as x."""
    return record(indexing.TakeAlongAxis, x, index=constant(index, x), axis=axis)


def embedding(weight: Any, ids: Any, padding_idx: int | None = None, sparse: bool = True) -> Tensor:
    """Rows of a table. weight (V, d), ids (...) integers → (..., d).

    Row padding_idx gets no gradient. With sparse, the table's gradient is Rows of what was read.
    Raises IndexError for an id outside 0 … V−1 and TypeError for ids that are not integers.
    """
    weight = as_tensor(weight)
    ids = constant(ids, weight)
    if padding_idx is not None:
        if not -len(weight) <= padding_idx < len(weight):
            raise ValueError(f"embedding: padding_idx {padding_idx} is not a row of a table of {len(weight)}")
        padding_idx %= len(weight)
    return record(indexing.Embedding, weight, ids=ids, padding_idx=padding_idx, sparse=sparse)


def index_fill(x: Any, axis: int, index: Any, value: float) -> Tensor:
    """A copy of x with `value` at the places `index` of an axis."""
    return record(indexing.IndexFill, x, axis=axis, index=constant(index, x), value=value)


def index_select(x: Any, axis: int, index: Any) -> Tensor:
    """The entries of an axis at the places `index`."""
    x = as_tensor(x)
    return x[_at(x, "index_select", axis, index)]


def index_add(x: Any, axis: int, index: Any, values: Any) -> Tensor:
    """A copy of x to which values are added at the places `index` of an axis; at a place named twice both are."""
    x = as_tensor(x)
    return x + _added(x, _at(x, "index_add", axis, index), values)


def scatter(x: Any, axis: int, index: Any, values: Any) -> Tensor:
    """A copy of x with out[i, index[i, j]] = values[i, j] for axis 1, and so for any axis, as PyTorch's.

    values: a number, or an array at least as large as index. Where they need a gradient no place is named twice.
    """
    x = as_tensor(x)
    index = _places(x, "scatter", axis, index)
    return record(indexing.SetItem, x, _beside(index[axis], values), index=index)


def scatter_add(x: Any, axis: int, index: Any, values: Any) -> Tensor:
    """A copy of x with values added as scatter writes them; at a place named twice both are."""
    x = as_tensor(x)
    index = _places(x, "scatter_add", axis, index)
    return x + _added(x, index, _beside(index[axis], values))


def masked_select(x: Any, mask: Any) -> Tensor:
    """The entries where the mask is True, in one row."""
    x = as_tensor(x)
    mask = constant(mask, x)
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return x.broadcast_to(shape)[array_module(mask).broadcast_to(mask, shape)]


def masked_fill(x: Any, mask: Any, value: float) -> Tensor:
    """A copy of x with `value` where the mask is True."""
    return where(mask, value, as_tensor(x))


def argsort(x: Any, axis: int = -1) -> Tensor:
    """The places of the entries of an axis in rising order; equal ones keep theirs."""
    return as_tensor(x)._constant(lambda a: a.argsort(axis=axis, kind="stable"))


def sort(x: Any, axis: int = -1) -> Tensor:
    """The entries of an axis in rising order."""
    x = as_tensor(x)
    return take_along_axis(x, argsort(x, axis), axis)


class TopK(NamedTuple):
    values: Tensor
    indices: Tensor


def topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> TopK:
    """The k largest entries of an axis, the largest first, or the smallest; and their places."""
    x = as_tensor(x)
    n = x.shape[checked_axis("topk", axis, x.ndim)]
    if not 0 <= k <= n:
        raise ValueError(f"topk: there are no {k} entries along axis {axis} of shape {x.shape}")
    order = argsort(x, axis).swapaxes(axis, -1)
    indices = (order[..., ::-1][..., :k] if largest else order[..., :k]).swapaxes(axis, -1)
    return TopK(take_along_axis(x, indices, axis), indices)


def nonzero(x: Any) -> tuple[Tensor, ...]:
    """The places of the entries that are not 0: for each axis their indices."""
    x = as_tensor(x)
    with x.device.active():
        return tuple(map(Tensor, x.data.nonzero()))


def _at(x: Tensor, name: str, axis: int, index: Any) -> tuple:
    """The index of places of one axis."""
    return (slice(None),) * checked_axis(name, axis, x.ndim) + (constant(index, x),)


def _places(x: Tensor, name: str, axis: int, index: Any) -> tuple:
    index = constant(index, x)
    checked_axis(name, axis, x.ndim)
    if index.ndim != x.ndim or index.dtype.kind not in "iu":
        raise ValueError(f"{name}: index has integers and as many axes as x, {x.ndim}; not {index.dtype} {index.shape}")
    return indexing.places_along(index, axis, index.shape)


def _beside(index: Any, values: Any) -> Any:
    """The values that belong to the index: a number, or the part of an array that is of its shape."""
    values = as_tensor(values)
    return values[tuple(map(slice, index.shape))] if values.ndim else values


def _added(x: Tensor, index: Any, values: Any) -> Tensor:
    """Zeros of x's shape with values added at an index."""
    values = as_tensor(values).astype(x.dtype)
    places = array_module(x.data).empty(x.shape, dtype=bool)[index].shape
    return record(indexing.AddAt, values.broadcast_to(places), index=index, shape=x.shape)
