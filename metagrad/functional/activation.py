"""The nonlinearities of networks, by PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

from ..ops import activation, special
from ..tensor import Tensor, record
from .arguments import as_tensor
from .arithmetic import abs, clip, where


def tanh(x: Any) -> Tensor:
    return record(activation.Tanh, x)


def sigmoid(x: Any) -> Tensor:
    """1 / (1 + e^−x)."""
    return record(activation.Sigmoid, x)


def logsigmoid(x: Any) -> Tensor:
    """log(1 / (1 + e^−x)), exact also where the sigmoid rounds to 0: −20 at x = −20."""
    return record(activation.LogSigmoid, x)


def relu(x: Any) -> Tensor:
    """max(x, 0), with derivative 0 at 0."""
    return record(activation.Relu, x)


def softplus(x: Any) -> Tensor:
    """log(1 + e^x), without overflow."""
    return record(activation.Softplus, x)


def gelu(x: Any, approximate: str = "none") -> Tensor:
    """x Φ(x), Φ the normal distribution's; approximate="tanh": x σ(√(8/π) (x + 0.044715 x³))."""
    if approximate == "tanh":
        x = as_tensor(x)
        return x * sigmoid((x + x * x * x * 0.044715) * math.sqrt(8 / math.pi))
    if approximate != "none":
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    return record(special.Gelu, x)


def silu(x: Any) -> Tensor:
    """x σ(x)."""
    return record(activation.Silu, x)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """x above 0, α (e^x − 1) below."""
    return record(activation.Elu, x, alpha=alpha)


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """x above 0, α (e^(x/α) − 1) below."""
    return elu(as_tensor(x) / alpha) * alpha


def selu(x: Any) -> Tensor:
    """elu, scaled so that layers keep mean 0 and variance 1 (Klambauer et al. 2017)."""
    return elu(x, 1.6732632423543772) * 1.0507009873554805


def leaky_relu(x: Any, slope: float = 0.01) -> Tensor:
    """x above 0, slope · x below and at it."""
    x = as_tensor(x)
    return where(x > 0, x, x * slope)


def prelu(x: Any, weight: Any) -> Tensor:
    """leaky_relu of a learned slope: weight (1,), or (C,) for the channels of x (N, C, ...)."""
    x, weight = as_tensor(x), as_tensor(weight)
    if weight.ndim != 1 or (weight.size != 1 and weight.shape != x.shape[1:2]):
        raise ValueError(f"prelu: weight has one slope, or one for each channel of {x.shape}; not {weight.shape}")
    slopes = weight if weight.size == 1 else weight.reshape((-1,) + (1,) * (x.ndim - 2))
    return where(x > 0, x, x * slopes)


def hardtanh(x: Any, low: float = -1.0, high: float = 1.0) -> Tensor:
    """x kept within [low, high]; derivative 1 at both."""
    return clip(x, low, high)


def hardswish(x: Any) -> Tensor:
    """x · min(max(x + 3, 0), 6) / 6."""
    x = as_tensor(x)
    return x * clip(x + 3, 0, 6) / 6


def mish(x: Any) -> Tensor:
    """x tanh(softplus x)."""
    return as_tensor(x) * tanh(softplus(x))


def softsign(x: Any) -> Tensor:
    """x / (1 + |x|)."""
    x = as_tensor(x)
    return x / (abs(x) + 1)


def tanhshrink(x: Any) -> Tensor:
    """x − tanh x."""
    return as_tensor(x) - tanh(x)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """e^x / Σ e^x along an axis."""
    return record(activation.Softmax, x, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """x − log Σ e^x along an axis."""
    return record(activation.LogSoftmax, x, axis=axis)
