"""Normalisation, by PyTorch's formulas."""

from __future__ import annotations

from typing import Any

from ..mode import no_grad
from ..ops.normalization import Normalize
from ..ops.reduction import widened
from ..tensor import Tensor, record
from .arguments import as_tensor


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """(x − mean) / √(variance + eps) · weight + bias over the last axes, which have `shape` as weight and bias have."""
    x = as_tensor(x)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(f"layer_norm: values of shape {x.shape} do not end in the axes {shape}")
    return _scaled(record(Normalize, x, axes=tuple(range(-len(shape), 0)), eps=eps), weight, bias)


def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x − mean) / √(variance + eps) · weight + bias for each channel. x (N, C, ...), everything else (C,).

    Mean and variance are the running ones. In training they are those of x over all axes but the channels', and the
    running ones, which may be None then, become (1 − momentum) running + momentum new, in place; the new variance is
    the unbiased one. Raises ValueError for shapes that do not fit, and in training for one value in each channel.
    """
    x = as_tensor(x)
    running_mean, running_var, weight, bias = (
        v if v is None else as_tensor(v) for v in (running_mean, running_var, weight, bias)
    )
    shapes = [v.shape for v in (running_mean, running_var, weight, bias) if v is not None]
    if x.ndim < 2 or any(shape != x.shape[1:2] for shape in shapes):
        raise ValueError(f"batch_norm: values (N, C, ...) need all else to be (C,); got {x.shape} with {shapes}")
    if not training and (running_mean is None or running_var is None):
        raise ValueError("batch_norm: a running mean and variance are needed where it is not in training")
    axes, column = (0, *range(2, x.ndim)), (-1, *[1] * (x.ndim - 2))
    if training:
        if x.size < 2 * x.shape[1]:
            raise ValueError(f"batch_norm: in training each channel needs two values or more; got {x.shape}")
        y = record(Normalize, x, axes=axes, eps=eps)
        with no_grad():
            wide = widened(x)
            for running, new in ((running_mean, wide.mean(axes)), (running_var, wide.var(axes, ddof=1))):
                if running is not None:
                    running.mul_(1 - momentum).add_(new * momentum)
    else:
        y = (x - running_mean.reshape(column)) * ((running_var + eps) ** -0.5).reshape(column)
    return _scaled(y, *(v if v is None else v.reshape(column) for v in (weight, bias)))


def _scaled(y: Tensor, weight: Any, bias: Any) -> Tensor:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias
