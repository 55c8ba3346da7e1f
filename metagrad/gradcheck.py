"""gradcheck: are the derivatives that autograd computes those of the function?

The function is varied by ±ε at each entry of each input (central differences, float64), and its output
projected on a random direction u. That compares u·J, the whole Jacobian at once, for the price of two
evaluations an entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .autograd import grad
from .mode import enable_grad, no_grad
from .rows import Rows
from .tensor import Tensor


class GradcheckError(AssertionError):
    """A derivative is wrong. The message names the input, the index and both numbers."""


def gradcheck(
    f: Callable[..., Tensor], *inputs: Any, eps: float = 1e-6, rtol: float = 1e-5, atol: float = 1e-7, seed: int = 0
) -> bool:
    """Compare autograd's gradient of every float input with central differences. True, or GradcheckError.

    f: takes as many Tensors as there are inputs and returns one Tensor.
    inputs: Tensors or arrays; those of floats are checked, in float64, the others are passed on.
    eps: the step. rtol, atol: |analytic − numeric| ≤ atol + rtol · the largest |numeric| of the input.
    Inputs must lie away from kinks by more than eps.
    """
    points = [_as_point(x) for x in inputs]
    checked = [i for i, x in enumerate(points) if x.requires_grad]
    if not checked:
        raise ValueError("gradcheck: no input holds floats, so there is nothing to check")
    with enable_grad():
        out = f(*points)
    if not isinstance(out, Tensor):
        raise TypeError(f"gradcheck: f returned a {type(out).__name__}, not a Tensor")
    direction = _direction(out, seed)
    found = grad([out], [points[i] for i in checked], [direction], allow_unused=True)
    for i, analytic in zip(checked, found):
        expected = _numeric(f, points, i, direction, eps)
        got = np.zeros(points[i].shape) if analytic is None else _host(analytic)
        _compare(got, expected, i, rtol, atol)
    return True


def gradgradcheck(
    f: Callable[..., Tensor], *inputs: Any, eps: float = 1e-6, rtol: float = 1e-5, atol: float = 1e-6
) -> bool:
    """gradcheck of the gradient of f: are second derivatives right? True, or GradcheckError."""
    points = [_as_point(x) for x in inputs]
    checked = [i for i, x in enumerate(points) if x.requires_grad]
    direction = _direction(f(*points), seed=1)

    def gradient_of_f(*xs: Tensor) -> Tensor:
        """The gradient of every checked input, weighed and added up: one Tensor that depends on all."""
        with enable_grad():
            given = [x if x.requires_grad else _as_point(x) for x in xs]
            out = f(*given)
            parts = grad([out], [given[i] for i in checked], [direction], create_graph=True, allow_unused=True)
            total = out.sum() * 0.0
            for k, part in enumerate(parts):
                if isinstance(part, Tensor):
                    total = total + (part * _direction(part, seed=2 + k)).sum()
        return total

    return gradcheck(gradient_of_f, *points, eps=eps, rtol=rtol, atol=atol)


def _as_point(x: Any) -> Tensor:
    """A float64 leaf of its own memory; integers and booleans stay constants."""
    data = (x if isinstance(x, Tensor) else Tensor(x)).data
    if data.dtype.kind != "f":
        return Tensor(data)
    return Tensor(data.astype(np.float64), requires_grad=True)


def _direction(out: Tensor, seed: int) -> Tensor:
    u = np.random.default_rng(seed).uniform(0.5, 1.5, out.shape)
    return Tensor(u).to(out.device)


def _numeric(f: Callable, points: list[Tensor], i: int, direction: Tensor, eps: float) -> np.ndarray:
    start = _host(points[i])
    expected = np.zeros(start.shape)
    for index in np.ndindex(start.shape):
        ends = []
        for step in (eps, -eps):
            moved = start.copy()
            moved[index] += step
            varied = [*points]
            varied[i] = Tensor(moved).to(points[i].device)
            with no_grad():
                ends.append((f(*varied) * direction).sum().item())
        expected[index] = (ends[0] - ends[1]) / (2 * eps)
    return expected


def _host(x: Tensor | Rows) -> np.ndarray:
    return Tensor(x.dense() if isinstance(x, Rows) else x.data).numpy()


def _compare(got: np.ndarray, expected: np.ndarray, i: int, rtol: float, atol: float) -> None:
    scale = np.abs(expected).max(initial=0.0)
    wrong = ~(np.abs(got - expected) <= atol + rtol * scale)
    if wrong.any():
        index = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise GradcheckError(
            f"input {i}, index {index}: autograd says {got[index]:.10g}, central differences say "
            f"{expected[index]:.10g} ({int(wrong.sum())} of {wrong.size} entries differ)"
        )
