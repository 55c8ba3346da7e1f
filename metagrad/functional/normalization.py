"""Normalisation, by PyTorch's formulas."""

from __future__ import annotations

from typing import Any

from ..ops.normalization import Normalize
from ..tensor import Tensor, record
from .arguments import as_tensor


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """(x − mean) / √(variance + eps) · weight + bias over the last axes, which have `shape` as weight and bias have."""
    x = as_tensor(x)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(f"layer_norm: values of shape {x.shape} do not end in the axes {shape}")
    y = record(Normalize, x, axes=tuple(range(-len(shape), 0)), eps=eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias
