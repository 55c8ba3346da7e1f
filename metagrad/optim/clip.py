"""Clipping: bounds on gradients, between backward and step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from ..cuda import Array, array_module
from ..mode import no_grad
from ..rows import Rows
from ..tensor import Tensor


def clip_grad_norm(parameters: Tensor | Iterable[Tensor], max_norm: float, ord: float = 2.0) -> float:
    """Scale all gradients by one factor, so that their norm as one long vector is at most max_norm.

    Returns the norm before (Pascanu et al. 2013). ord: Σ |g|^ord ^ (1/ord), or math.inf for the largest |g|.
    Rows read several times count as their sum. Raises FloatingPointError if the norm is not finite.
    """
    if not max_norm > 0 or not ord > 0:
        raise ValueError(f"clip_grad_norm: max_norm and ord are above 0, not {max_norm} and {ord}")
    held = list(_gradients(parameters))
    parts = []
    for p, grad in held:
        with p.device.active():
            values = _entries(grad).reshape(-1).astype(np.float64)
            parts.append(float(array_module(values).linalg.norm(values, ord)))
    total = float(np.linalg.norm(parts, ord)) if parts else 0.0
    if not math.isfinite(total):
        raise FloatingPointError(f"clip_grad_norm: the norm of the gradients is {total}; nothing was changed")
    if total > max_norm:
        with no_grad():
            for p, grad in held:
                p.grad = grad * (max_norm / total)
    return total


def clip_grad_value(parameters: Tensor | Iterable[Tensor], limit: float) -> None:
    """Bring every entry of every gradient into [−limit, limit]; of rows read several times, their sum."""
    if not limit > 0:
        raise ValueError(f"clip_grad_value: limit is above 0, not {limit}")
    for p, grad in _gradients(parameters):
        with p.device.active():
            entries = _entries(grad).clip(-limit, limit)
        p.grad = Rows(grad.index, entries, p.shape) if isinstance(grad, Rows) else Tensor(entries)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor | Rows]]:
    """The parameters that have a gradient, with it; of Rows, each row once."""
    for p in [parameters] if isinstance(parameters, Tensor) else parameters:
        if isinstance(p.grad, Rows):
            with p.device.active():
                yield p, p.grad.coalesce()
        elif p.grad is not None:
            yield p, p.grad


def _entries(grad: Tensor | Rows) -> Array:
    """What of a gradient is not zero by construction."""
    return grad.values if isinstance(grad, Rows) else grad.data
