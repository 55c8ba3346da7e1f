"""What functions of F are handed over, made into Tensors and constants on the right device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..cuda import copied, device_of, is_array, to_device
from ..mode import is_grad_enabled
from ..tensor import NUMBERS, Tensor


def as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)


def constant(value: Any, *beside: Any) -> Any:
    """The array of what takes part as a constant; numbers and lists go where the Tensors beside it are."""
    if isinstance(value, Tensor):
        if value.requires_grad and is_grad_enabled():
            raise RuntimeError("targets, weights and conditions are constants here: pass x.detach() if that is meant")
        value = copied(value.data)  # the derivative reads it, and its Tensor may be written to meanwhile
    if is_array(value):
        apart = [x.device for x in beside if isinstance(x, Tensor) and x.device != device_of(value)]
        if apart:
            raise RuntimeError(
                f"values are on {apart[0]}, the constants beside them on {device_of(value)}: "
                "bring them together with Tensor(constant).to(device)"
            )
        return value
    array = np.asarray(value)
    array = array if array.size else array.astype(np.intp)  # an empty list is one of indices
    for x in beside:
        if isinstance(x, Tensor):
            return to_device(array, x.device)
    return array


def constant_like(value: Any, x: Tensor) -> Any:
    """A constant of a loss: a Python number as it is, else an array, of x's dtype so that it widens no float."""
    if type(value) in NUMBERS:
        return value
    array = constant(value, x)
    return array.astype(x.dtype, copy=False) if x.dtype.kind == "f" else array


def array_first(x: Any, y: Any) -> tuple[Any, Any]:
    return (y, x) if type(x) in NUMBERS else (x, y)


def some(xs: Sequence[Any], name: str) -> Sequence[Any]:
    if not len(xs):
        raise ValueError(f"{name} needs at least one Tensor")
    return xs


def checked_axis(name: str, axis: int, ndim: int) -> int:
    """An axis counted from the front."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: axis {axis} is not one of an array of {ndim} axes")
    return int(axis) % ndim
