"""Layers that normalise."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functional as F
from ..tensor import Tensor
from .module import Module, Parameter


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
