"""init: starting values for parameters, in place and in the parameter's own dtype.

Draws come from the host's random stream on every device, so that one seed means one start.
Formulas: Glorot and Bengio 2010 (xavier), He et al. 2015 (kaiming). A weight is (outputs, inputs, ...).
The padding row of an embedding's weight keeps its values.
"""

from __future__ import annotations

import math

import numpy as np

from ..mode import no_grad
from ..random import generator
from ..tensor import Tensor
from .module import Parameter


def constant_(x: Tensor, value: float) -> Tensor:
    return _put(x, np.full(x.shape, value, dtype=x.dtype))


def zeros_(x: Tensor) -> Tensor:
    return constant_(x, 0.0)


def ones_(x: Tensor) -> Tensor:
    return constant_(x, 1.0)


def uniform_(x: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """U(low, high)."""
    values = generator().random(x.shape, dtype=_draw_dtype(x))
    values *= high - low
    values += low
    return _put(x, values)


def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """N(mean, std²)."""
    values = generator().standard_normal(x.shape, dtype=_draw_dtype(x))
    values *= std
    values += mean
    return _put(x, values)


def xavier_uniform_(x: Tensor, gain: float = 1.0) -> Tensor:
    """U(−a, a), a = gain √(6 / (inputs + outputs))."""
    inputs, outputs = _fans(x)
    bound = gain * math.sqrt(6.0 / (inputs + outputs))
    return uniform_(x, -bound, bound)


def xavier_normal_(x: Tensor, gain: float = 1.0) -> Tensor:
    """N(0, s²), s = gain √(2 / (inputs + outputs))."""
    inputs, outputs = _fans(x)
    return normal_(x, 0.0, gain * math.sqrt(2.0 / (inputs + outputs)))


def kaiming_uniform_(x: Tensor, gain: float = math.sqrt(2.0)) -> Tensor:
    """U(−a, a), a = gain √(3 / inputs); gain √2 is that of relu."""
    bound = gain * math.sqrt(3.0 / _fans(x)[0])
    return uniform_(x, -bound, bound)


def kaiming_normal_(x: Tensor, gain: float = math.sqrt(2.0)) -> Tensor:
    """N(0, s²), s = gain / √inputs; gain √2 is that of relu."""
    return normal_(x, 0.0, gain / math.sqrt(_fans(x)[0]))


def _fans(x: Tensor) -> tuple[int, int]:
    """Inputs and outputs of a weight (outputs, inputs, ...)."""
    if x.ndim < 2 or not x.size:
        raise ValueError(f"shape {x.shape} has no inputs and outputs to scale by: use uniform_ or normal_")
    window = math.prod(x.shape[2:])
    return x.shape[1] * window, x.shape[0] * window


def _draw_dtype(x: Tensor) -> type[np.floating]:
    """What a Generator draws in, whatever x is: float32 spares a large table the double of its memory."""
    return np.float64 if x.dtype == np.float64 else np.float32


def _put(x: Tensor, values: np.ndarray) -> Tensor:
    """Write values (host, x's shape) into x, but not into a padding row."""
    if isinstance(x, Parameter) and x.padding_idx is not None:
        values[x.padding_idx] = x.numpy()[x.padding_idx]
    with no_grad():
        return x.copy_(Tensor(values, device=x.device))
