"""Taking entries by index, and writing into copies."""

from __future__ import annotations

from typing import Any

from ..ops import indexing
from ..tensor import Tensor, record
from .arguments import as_tensor, constant


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
