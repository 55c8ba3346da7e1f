"""Taking entries out, and their adjoint: adding entries in."""

from __future__ import annotations

import numpy as np

from ..cuda import array_module
from ..function import Function
from ..rows import Rows
from ..scatter import add_at, take_rows

_BASIC = {int, slice, type(None), type(...)}


def is_basic(index) -> bool:
    """Whether NumPy answers this index with a view: integers, slices, None and ... only."""
    for part in index if isinstance(index, tuple) else (index,):
        if type(part) not in _BASIC and (isinstance(part, bool) or not isinstance(part, int | np.integer)):
            return False
    return True


def check_bounds(x, index) -> None:
    """Raise IndexError for integers outside an axis of x: NumPy does that itself, CuPy wraps them around."""
    if type(x) is np.ndarray:
        return
    parts = list(index) if isinstance(index, tuple) else [index]
    taken = [0 if p is None else getattr(p, "ndim", 1) if _kind(p) == "b" else 1 for p in parts]
    axis = 0
    for i, (part, axes) in enumerate(zip(parts, taken)):
        if part is Ellipsis:
            axis = x.ndim - sum(taken[i + 1 :])
            continue
        if _kind(part) in "iu" and part.size and axis < x.ndim:
            low, high, n = int(part.min()), int(part.max()), x.shape[axis]
            if low < -n or high >= n:
                bad = low if low < -n else high
                raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {n}")
        axis += axes


def _kind(part) -> str:
    dtype = getattr(part, "dtype", None)
    return "-" if dtype is None else dtype.kind


def _names_no_place_twice(index) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return is_basic(index) or all(is_basic(part) or _kind(part) == "b" for part in parts)


class GetItem(Function):
    """x[index] for every kind of index that NumPy knows."""

    def forward(self, x, index):
        self.shape_in, self.index = x.shape, index
        self.is_view = is_basic(index)
        check_bounds(x, index)
        return x[index]

    def backward(self, grad):
        return AddAt.apply(grad, index=self.index, shape=self.shape_in)


class AddAt(Function):
    """Zeros of a shape, to which the values are added at an index, as often as it names a place."""

    def forward(self, values, index, shape):
        self.index = index
        total = array_module(values).zeros(shape, dtype=values.dtype)
        if _names_no_place_twice(index):
            total[index] = values
        else:
            add_at(total, index, values)
        return total

    def backward(self, grad):
        return grad[self.index]


class SetItem(Function):
    """x with values written at an index. Values take a gradient only if no place is named twice."""

    def forward(self, x, values, index):
        y = x.copy()
        self.write(y, x, values, index=index)
        return y

    def write(self, target, x, values, index):
        kind = getattr(values, "dtype", values)  # a Python number is as weak here as in arithmetic
        if not np.can_cast(np.result_type(target.dtype, kind), target.dtype, "same_kind"):
            raise TypeError(f"{np.result_type(kind)} values cannot be written into an array of {target.dtype}")
        check_bounds(target, index)
        self.index, self.values_ndim = index, getattr(values, "ndim", 0)
        target[index] = values

    def backward(self, grad):
        to_x, to_values = self.edges
        dx = to_x and SetItem.apply(grad, 0, index=self.index)
        if not to_values:
            return dx, None
        if not _names_no_place_twice(self.index):
            ones = grad[self.index] * 0 + 1
            if ones.size and bool(AddAt.apply(ones, index=self.index, shape=grad.shape).max() > 1):
                raise RuntimeError("SetItem: a place was written twice at once, so its value has no single source")
        values = grad[self.index]
        extra = self.values_ndim - values.ndim  # NumPy lets values have leading axes of length 1
        return dx, values.reshape((1,) * extra + values.shape) if extra > 0 else values


class Embedding(Function):
    """Rows of a table: table (V, ...), ids (...) → (..., row). Row `padding_idx` gets no gradient.

    The gradient is Rows where `sparse` and it is not to be differentiated again; else the whole table's.
    """

    def forward(self, table, ids, padding_idx, sparse):
        if ids.dtype.kind not in "iu":
            raise TypeError(f"embedding: ids must be integers, not {ids.dtype}")
        if not all_below(ids, len(table)):
            low, high = int(ids.min()), int(ids.max())
            bad = low if low < 0 else high
            raise IndexError(f"embedding: id {bad} is not in a table of {len(table)} rows (0 to {len(table) - 1})")
        self.shape_in, self.ids = table.shape, ids
        self.padding_idx, self.sparse = padding_idx, sparse
        return take_rows(table, ids)

    def backward(self, grad):
        ids, shape = self.ids.reshape(-1), self.shape_in
        values = grad.reshape((ids.size,) + shape[1:])
        if self.padding_idx is not None:
            real = ids != self.padding_idx
            if not real.all():
                ids, values = ids[real], values[real]
        if self.sparse and array_module(grad) is array_module(ids):
            return Rows(ids, values, shape)
        return AddAt.apply(values, index=ids, shape=shape)


class IndexFill(Function):
    """x with a constant at the places `index` (integers) of one axis."""

    def forward(self, x, axis, index, value):
        self.at = (slice(None),) * _checked_axis(axis, x.ndim, "index_fill") + (index,)
        y = x.astype(np.result_type(x.dtype, value))  # a copy, which holds fractions where x holds integers
        check_bounds(y, self.at)
        y[self.at] = value
        return y

    def backward(self, grad):
        return SetItem.apply(grad, 0, index=self.at)


class TakeAlongAxis(Function):
    """out[i, j] = x[i, index[i, j]] for axis 1, and so for any axis; index has x's number of axes."""

    def forward(self, x, index, axis):
        axis = _checked_axis(axis, x.ndim, "take_along_axis")
        n = x.shape[axis]
        if index.ndim != x.ndim:
            raise ValueError(f"take_along_axis: index has {index.ndim} axes, the array has {x.ndim}; they must agree")
        if index.size and not (-n <= int(index.min()) and int(index.max()) < n):
            raise IndexError(
                f"take_along_axis: index {int(index.min())} to {int(index.max())} is not within an axis of {n}"
            )
        self.index, self.axis, self.shape_in = index, axis, x.shape
        return array_module(x).take_along_axis(x, index, axis=axis)

    def backward(self, grad):
        return AddAt.apply(grad, index=places_along(self.index, self.axis, self.shape_in), shape=self.shape_in)


def all_below(ids, n):
    """Whether integers are all in 0 … n−1. Seen as unsigned, a negative one is huge, so one pass checks both ends."""
    return not ids.size or int(ids.view(f"u{ids.dtype.itemsize}").max()) < n


def places_along(index, axis, shape):
    """The index that names, for axis 1, the places (i, index[i, j]) of an array of a shape, and so for any axis."""
    xp = array_module(index)
    ndim = len(shape)
    places = [xp.arange(n).reshape((1,) * d + (n,) + (1,) * (ndim - d - 1)) for d, n in enumerate(shape) if d != axis]
    return (*places[:axis], index, *places[axis:])


def _checked_axis(axis: int, ndim: int, name: str) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: axis {axis} is not one of an array of {ndim} axes")
    return axis % ndim
