"""Convolution and pooling, by PyTorch's names. Both take windows of their values, over one axis or over two.

L' is the number of windows along an axis of L entries: (L + 2 padding − dilation (k − 1) − 1) // stride + 1 for
windows of k. Arguments of two axes are a number for both or a pair. Raises ValueError for shapes that do not fit.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.convolution import Windows
from ..tensor import Tensor, record
from .arguments import as_tensor
from .reduction import max, mean
from .shape import pad


def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Σ window · weight + bias. x (N, C, L), weight (O, C/groups, k), bias (O,) → (N, O, L').

    padding: zeros at both ends. groups: the channels of x and of the output fall into so many groups, each of which
    sees its own only.
    """
    return _convolved("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """conv1d over two axes. x (N, C, H, W), weight (O, C/groups, h, w), bias (O,) → (N, O, H', W')."""
    return _convolved("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def max_pool1d(x: Any, size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """The largest entry of each window. x (N, C, L) → (N, C, L').

    stride: the size, unless said. padding: −∞ at both ends, at most half the size. Equal entries share the gradient
    equally.
    """
    return _pooled("max_pool1d", 1, max, x, size, stride, padding)


def max_pool2d(x: Any, size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """max_pool1d over two axes. x (N, C, H, W) → (N, C, H', W')."""
    return _pooled("max_pool2d", 2, max, x, size, stride, padding)


def avg_pool1d(x: Any, size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """The mean of each window, as max_pool1d; the zeros of the padding count."""
    return _pooled("avg_pool1d", 1, mean, x, size, stride, padding)


def avg_pool2d(x: Any, size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """avg_pool1d over two axes. x (N, C, H, W) → (N, C, H', W')."""
    return _pooled("avg_pool2d", 2, mean, x, size, stride, padding)


def _convolved(
    name: str, axes: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    """One product for each group: its rows of the weight times the windows as columns."""
    x, weight = as_tensor(x), as_tensor(weight)
    bias = None if bias is None else as_tensor(bias)
    _check_axes(name, axes, x)
    if (
        weight.ndim != x.ndim
        or x.shape[1] != groups * weight.shape[1]
        or len(weight) % groups
        or (bias is not None and bias.shape != weight.shape[:1])
    ):
        shapes = f"{weight.shape}" if bias is None else f"{weight.shape} and {bias.shape}"
        raise ValueError(
            f"{name}: values {x.shape} in {groups} group(s) need a weight (O, {x.shape[1]}/{groups}, "
            f"{_LETTERS[axes].lower()}), O a multiple of {groups}, and a bias (O,), or none; got {shapes}"
        )
    outputs, channels, *size = weight.shape
    windows = _windows(name, x, size, stride, padding, dilation)  # (C, *size, N, *number)
    rest, entries = windows.shape[1 + axes :], channels * math.prod(size)
    columns = windows.reshape(groups, entries, math.prod(rest))
    y = weight.reshape(groups, outputs // groups, entries) @ columns
    y = y.reshape(outputs, *rest).swapaxes(0, 1)
    return y if bias is None else y + bias.reshape(outputs, *[1] * axes)


def _pooled(name: str, axes: int, reduce: Callable, x: Any, size: Any, stride: Any, padding: Any) -> Tensor:
    x = as_tensor(x)
    _check_axes(name, axes, x)
    size, padding = _of_each_axis(name, "size", size, axes), _of_each_axis(name, "padding", padding, axes, least=0)
    if any(2 * p > k for p, k in zip(padding, size)):
        raise ValueError(f"{name}: a padding of {padding} is more than half of windows of {size}")
    # the lowest number for −∞, which debug_mode would report
    fill = float(np.finfo(x.dtype).min) if reduce is max and any(padding) else 0.0
    windows = _windows(name, x, size, size if stride is None else stride, padding, 1, fill)  # (C, *size, N, *number)
    channels, rest = x.shape[1], windows.shape[1 + axes :]
    # copied, so that long rows lie behind the entries of windows: a reduction of the view takes ten times as long
    entries = windows.reshape(channels, math.prod(size), math.prod(rest))
    return reduce(entries, axis=1).reshape(channels, *rest).swapaxes(0, 1)


def _windows(name: str, x: Tensor, size: Any, stride: Any, padding: Any, dilation: Any, fill: float = 0.0) -> Tensor:
    """The windows of x (N, C, *lengths) between paddings of `fill`: (C, *size, N, *number)."""
    axes = x.ndim - 2
    stride, dilation = _of_each_axis(name, "stride", stride, axes), _of_each_axis(name, "dilation", dilation, axes)
    padding = _of_each_axis(name, "padding", padding, axes, least=0)
    if any(padding):
        x = pad(x, ((0, 0), (0, 0), *zip(padding, padding)), constant_values=fill)
    reach = tuple(gap * (k - 1) + 1 for k, gap in zip(size, dilation))
    if any(not 0 < r <= n for r, n in zip(reach, x.shape[2:])):
        raise ValueError(f"{name}: windows that reach over {reach} do not fit into {x.shape[2:]}, padding included")
    return record(Windows, x, size=tuple(size), stride=stride, dilation=dilation)


_LETTERS = {1: "L", 2: "H, W"}


def _check_axes(name: str, axes: int, x: Tensor) -> None:
    if x.ndim != axes + 2:
        raise ValueError(f"{name}: needs values (N, C, {_LETTERS[axes]}), got {x.shape}")


def _of_each_axis(name: str, what: str, value: Any, axes: int, least: int = 1) -> tuple[int, ...]:
    """A number for all axes, or one for each, as one for each."""
    values = tuple(map(operator.index, (value,) * axes if isinstance(value, int | np.integer) else value))
    if len(values) != axes or min(values) < least:
        raise ValueError(f"{name}: {what} is a number from {least} on, or {axes} of them; got {value}")
    return values
