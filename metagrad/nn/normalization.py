"""Layers that normalise."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functional as F
from ..tensor import Tensor
from .module import Buffer, Module, Parameter


class LayerNorm(Module):
    """(x − mean) / √(variance + eps) · weight + bias over the last axes, of the given shape.

    weight and bias have that shape and start at 1 and 0; affine=False is without them.
    """

    def __init__(self, shape: Any, eps: float = 1e-5, affine: bool = True, dtype: Any = np.float32) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.eps = eps
        self.weight = Parameter(np.ones(self.shape, dtype)) if affine else None
        self.bias = Parameter(np.zeros(self.shape, dtype)) if affine else None

    def forward(self, x: Any) -> Tensor:
        return F.layer_norm(x, self.shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.shape}, eps={self.eps}" + ("" if self.weight is not None else ", affine=False")


class BatchNorm(Module):
    """(x − mean) / √(variance + eps) · weight + bias for each channel of x (N, channels, ...), see F.batch_norm.

    In training mean and variance are the batch's, in evaluation the running ones, which start at 0 and 1 and follow
    those of the batches by `momentum`. weight and bias start at 1 and 0; affine=False is without them.
    Raises ValueError for other axes, and in training for one value in each channel.
    """

    axes: tuple[int, ...]  # how many x may have

    def __init__(
        self, channels: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, dtype: Any = np.float32
    ) -> None:
        self.eps, self.momentum = eps, momentum
        self.weight = Parameter(np.ones(channels, dtype)) if affine else None
        self.bias = Parameter(np.zeros(channels, dtype)) if affine else None
        self.running_mean = Buffer(np.zeros(channels, dtype))
        self.running_var = Buffer(np.ones(channels, dtype))

    def forward(self, x: Any) -> Tensor:
        x = x if isinstance(x, Tensor) else Tensor(x)
        if x.ndim not in self.axes:
            number = " or ".join(map(str, self.axes))
            raise ValueError(f"{type(self).__name__}: needs values (N, C, ...) of {number} axes, got {x.shape}")
        running = self.running_mean, self.running_var
        return F.batch_norm(x, *running, self.weight, self.bias, self.training, self.momentum, self.eps)

    def extra_repr(self) -> str:
        affine = "" if self.weight is not None else ", affine=False"
        return f"{len(self.running_mean)}, eps={self.eps}, momentum={self.momentum}{affine}"


class BatchNorm1d(BatchNorm):
    """BatchNorm of x (N, C) or (N, C, L)."""

    axes = (2, 3)


class BatchNorm2d(BatchNorm):
    """BatchNorm of x (N, C, H, W)."""

    axes = (4,)
