"""Layers of convolution and pooling: the functions of F with their weights and options."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import functional as F
from ..tensor import Tensor
from . import init
from .module import Module, Parameter


class Convolution(Module):
    """weight (outputs, inputs/groups, *size) and bias (outputs,) start in U(−1/√n, 1/√n), n the entries of a window.

    size, stride, padding, dilation: a number, or one for each axis.
    """

    function: Callable[..., Tensor]  # of `functional`
    axes: int

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        if inputs % groups or outputs % groups:
            raise ValueError(
                f"{type(self).__name__}: {inputs} inputs and {outputs} outputs do not divide into {groups} groups"
            )
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        size = (size,) * self.axes if isinstance(size, int) else tuple(size)
        self.weight = Parameter(np.empty((outputs, inputs // groups, *size), dtype))
        self.bias = Parameter(np.empty(outputs, dtype)) if bias else None
        bound = math.prod(self.weight.shape[1:]) ** -0.5
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, x: Any) -> Tensor:
        return self.function(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        outputs, channels, *size = self.weight.shape
        options = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
        changed = [f", {name}={getattr(self, name)}" for name in options if getattr(self, name) != options[name]]
        changed += [] if self.bias is not None else [", bias=False"]
        return f"{channels * self.groups}, {outputs}, {tuple(size)}" + "".join(changed)


class Conv1d(Convolution):
    """x (N, inputs, L) → (N, outputs, L'), see F.conv1d. Parameters: see Convolution."""

    function = staticmethod(F.conv1d)
    axes = 1


class Conv2d(Convolution):
    """x (N, inputs, H, W) → (N, outputs, H', W'), see F.conv2d. Parameters: see Convolution."""

    function = staticmethod(F.conv2d)
    axes = 2


class Pool(Module):
    """size, stride, padding: a number, or one for each axis; the stride is the size, unless said."""

    function: Callable[..., Tensor]  # of `functional`

    def __init__(self, size: Any, stride: Any = None, padding: Any = 0) -> None:
        self.size, self.stride, self.padding = size, size if stride is None else stride, padding

    def forward(self, x: Any) -> Tensor:
        return self.function(x, self.size, self.stride, self.padding)

    def extra_repr(self) -> str:
        return f"{self.size}, stride={self.stride}, padding={self.padding}"


class MaxPool1d(Pool):
    """x (N, C, L) → (N, C, L'), see F.max_pool1d."""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(Pool):
    """x (N, C, H, W) → (N, C, H', W'), see F.max_pool2d."""

    function = staticmethod(F.max_pool2d)


class AvgPool1d(Pool):
    """x (N, C, L) → (N, C, L'), see F.avg_pool1d."""

    function = staticmethod(F.avg_pool1d)


class AvgPool2d(Pool):
    """x (N, C, H, W) → (N, C, H', W'), see F.avg_pool2d."""

    function = staticmethod(F.avg_pool2d)
