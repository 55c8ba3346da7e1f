"""The nonlinearities of networks, by PyTorch's names."""

from __future__ import annotations

from typing import Any

from ..ops import activation
from ..tensor import Tensor, record


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


def softmax(x: Any, axis: int = -1) -> Tensor:
    """e^x / Σ e^x along an axis."""
    return record(activation.Softmax, x, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """x − log Σ e^x along an axis."""
    return record(activation.LogSoftmax, x, axis=axis)
