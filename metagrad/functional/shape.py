"""Functions that move entries without changing them, by NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..cuda import array_module
from ..ops import shape
from ..ops.indexing import AddAt, SetItem
from ..tensor import Tensor, record
from .arguments import as_tensor, checked_axis, some
from .arithmetic import where


def reshape(x: Any, shape_: Any) -> Tensor:
    return as_tensor(x).reshape(shape_)


def ravel(x: Any) -> Tensor:
    """All entries in one row."""
    return as_tensor(x).reshape(-1)


def transpose(x: Any, axes: Any = None) -> Tensor:
    x = as_tensor(x)
    return x.transpose() if axes is None else x.transpose(axes)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    return as_tensor(x).swapaxes(axis1, axis2)


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Axes to other places; the others keep their order."""
    x = as_tensor(x)
    sources, places = ([checked_axis("moveaxis", a, x.ndim) for a in np.atleast_1d(v)] for v in (source, destination))
    if len(set(sources)) != len(set(places)) or len(sources) != len(places):
        raise ValueError(f"moveaxis: {source} and {destination} do not name as many axes, each once")
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return x.transpose(order)


def squeeze(x: Any, axis: Any = None) -> Tensor:
    return as_tensor(x).squeeze(axis)


def expand_dims(x: Any, axis: int) -> Tensor:
    return as_tensor(x).unsqueeze(axis)


def broadcast_to(x: Any, shape_: tuple[int, ...]) -> Tensor:
    return record(shape.BroadcastTo, x, shape=shape_)


def concatenate(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """The Tensors one after the other along an axis that they have."""
    return record(shape.Concatenate, *some(xs, "concatenate"), axis=axis)


def stack(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """The Tensors, of one shape, one after the other along a new axis."""
    return record(shape.Stack, *some(xs, "stack"), axis=axis)


def split(x: Any, sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts of an axis, as views: so many of equal length, or those between the given places."""
    x = as_tensor(x)
    axis = checked_axis("split", axis, x.ndim)
    n = x.shape[axis]
    if isinstance(sections, int | np.integer):
        if sections < 1 or n % sections:
            raise ValueError(f"split: an axis of {n} does not divide into {sections}; chunk() lets the last be shorter")
        sections = range(n // sections, n, n // sections) if n else [0] * (sections - 1)
    places = [0, *sections, n]
    return [x[_along(axis, slice(start, stop))] for start, stop in zip(places, places[1:])]


def chunk(x: Any, chunks: int, axis: int = 0) -> list[Tensor]:
    """At most so many parts of an axis, as views, all of one length but the last, which may be shorter."""
    x = as_tensor(x)
    n = x.shape[checked_axis("chunk", axis, x.ndim)]
    if chunks < 1:
        raise ValueError(f"chunk: {chunks} parts of an axis of {n}; there must be at least one")
    size = -(-n // chunks) or 1
    return split(x, range(size, n, size), axis)


def flip(x: Any, axis: Any = None) -> Tensor:
    """The entries of an axis, of several, or of all (None), in reverse order, as a view."""
    x = as_tensor(x)
    named = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    turned = {checked_axis("flip", a, x.ndim) for a in named}
    return x[tuple(slice(None, None, -1 if i in turned else None) for i in range(x.ndim))]


def roll(x: Any, shift: Any, axis: Any = None) -> Tensor:
    """Entries moved on along an axis, or several; what leaves at the end comes in at the front. None: in one row."""
    x = as_tensor(x)
    if axis is None:
        return roll(x.reshape(-1), int(np.sum(shift)), 0).reshape(x.shape)
    for by, a in np.broadcast(shift, axis):
        a = checked_axis("roll", int(a), x.ndim)
        cut = -int(by) % (x.shape[a] or 1)
        if cut:
            x = concatenate([x[_along(a, slice(cut, None))], x[_along(a, slice(None, cut))]], a)
    return x


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each entry of an axis so often, one number for all or one for each; of all in one row where no axis is given."""
    x = as_tensor(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = checked_axis("repeat", axis, x.ndim)
    return x[_along(axis, np.repeat(np.arange(x.shape[axis]), np.asarray(repeats)).tolist())]


def tile(x: Any, reps: Any) -> Tensor:
    """x so often along each axis, beside and below itself."""
    x = as_tensor(x)
    reps = tuple(np.atleast_1d(reps).tolist())
    ndim = max(x.ndim, len(reps))
    lengths, reps = (1,) * (ndim - x.ndim) + x.shape, (1,) * (ndim - len(reps)) + reps
    both = tuple(n for pair in zip(reps, lengths) for n in pair)
    one = tuple(n for length in lengths for n in (1, length))
    return broadcast_to(x.reshape(one), both).reshape(tuple(r * n for r, n in zip(reps, lengths)))


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float = 0) -> Tensor:
    """More entries before and after each axis.

    pad_width: a number, (before, after) for all axes, or a pair for each. mode: "constant", or what repeats entries
    of x: "edge", "reflect", "symmetric", "wrap"; see numpy.pad.
    """
    x = as_tensor(x)
    widths = np.broadcast_to(pad_width, (x.ndim, 2)).tolist()
    if min((w for pair in widths for w in pair), default=0) < 0:
        raise ValueError(f"pad: widths are not negative; got {pad_width}")
    if mode == "constant":
        whole = tuple(n + before + after for n, (before, after) in zip(x.shape, widths))
        inside = tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, widths))
        if constant_values == 0:
            return record(AddAt, x, index=inside, shape=whole)
        return record(SetItem, Tensor.full(whole, constant_values, dtype=x.dtype, device=x.device), x, index=inside)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise ValueError(f"pad: mode is 'constant', 'edge', 'reflect', 'symmetric' or 'wrap', not {mode!r}")
    for axis, width in enumerate(widths):
        if any(width):  # NumPy says which entry stands where
            x = x[_along(axis, np.pad(np.arange(x.shape[axis]), width, mode=mode).tolist())]  # type: ignore[call-overload]
    return x


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The entries at equal places of two axes, the second moved on by offset, along a new last axis."""
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    row, column = max(-offset, 0), max(offset, 0)
    n = max(min(x.shape[-2] - row, x.shape[-1] - column), 0)
    places = np.arange(n)
    return x[(..., (places + row).tolist(), (places + column).tolist())]


def tril(x: Any, k: int = 0) -> Tensor:
    """The last two axes' lower triangle, up to the k-th diagonal; 0 above it."""
    x = as_tensor(x)
    return where(_lower(x, k), x, 0)


def triu(x: Any, k: int = 0) -> Tensor:
    """The last two axes' upper triangle, from the k-th diagonal on; 0 below it."""
    x = as_tensor(x)
    return where(_lower(x, k - 1), 0, x)


def _lower(x: Tensor, k: int) -> Any:
    if x.ndim < 2:
        raise ValueError(f"a triangle needs two axes, not an array of shape {x.shape}")
    with x.device.active():
        return array_module(x.data).tri(x.shape[-2], x.shape[-1], k, dtype=bool)


def _along(axis: int, index: Any) -> tuple:
    return (slice(None),) * axis + (index,)
