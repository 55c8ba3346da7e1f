"""Functions that move entries without changing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops import shape
from ..tensor import Tensor, record
from .arguments import some


def broadcast_to(x: Any, shape_: tuple[int, ...]) -> Tensor:
    return record(shape.BroadcastTo, x, shape=shape_)


def concatenate(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """The Tensors one after the other along an axis that they have."""
    return record(shape.Concatenate, *some(xs, "concatenate"), axis=axis)


def stack(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """The Tensors, of one shape, one after the other along a new axis."""
    return record(shape.Stack, *some(xs, "stack"), axis=axis)
