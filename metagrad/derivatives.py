"""Derivatives of functions of Tensors: whole matrices, and their products with vectors.

Each takes f and the place, where f is called once. A place of several inputs gives a tuple, one part for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import functional as F
from .autograd import called, grad, leaf_of
from .rows import Rows
from .tensor import Tensor


def jacobian(f: Callable[..., Tensor], *inputs: Any) -> Any:
    """∂f/∂input at `inputs`: Tensors of f's shape followed by the input's. One walk for each entry of f."""
    points = _points("jacobian", inputs)
    return _one_or_all(_rows(called("jacobian", f, points), points), len(points) == 1)


def hessian(f: Callable[..., Tensor], *inputs: Any) -> Any:
    """∂²f/∂input∂input' of an f of one entry: for each input, and within it each other, shapes one behind the other."""
    points = _points("hessian", inputs)
    parts = [_rows(part, points) for part in _gradient("hessian", f, points)[1]]
    return parts[0][0] if len(points) == 1 else tuple(map(tuple, parts))


def hvp(f: Callable[..., Tensor], inputs: Any, vectors: Any) -> tuple[Tensor, Any]:
    """f and the product of its Hessian with vectors of the inputs' shapes: two walks, whatever the size.

    inputs, vectors: a Tensor each, or a list of them.
    """
    points, single = _points("hvp", _listed(inputs)), not isinstance(inputs, list | tuple)
    out, parts = _gradient("hvp", f, points)
    along = _along("hvp", parts, points, vectors)
    return out.detach(), _one_or_all(_grads(along, points, create_graph=False), single)


def jvp(f: Callable[..., Tensor], inputs: Any, vectors: Any) -> tuple[Tensor, Tensor]:
    """f and its derivative along vectors of the inputs' shapes, J v.

    By two walks back: uᵀJ is linear in u, and its derivative with respect to u along v is J v.
    """
    points = _points("jvp", _listed(inputs))
    out = called("jvp", f, points)
    u = Tensor.zeros_like(out).requires_grad_()
    along = _along("jvp", _grads(out, points, [u]), points, vectors)
    (tangent,) = _grads(along, [u], create_graph=False)
    return out.detach(), tangent


def _points(name: str, inputs: Sequence[Any]) -> list[Tensor]:
    points = [leaf_of(x) for x in inputs]
    for k, point in enumerate(points):
        if not point.requires_grad:
            raise TypeError(f"{name}: input {k} holds {point.dtype}; there are derivatives by floats only")
    if not points:
        raise ValueError(f"{name} needs at least one input")
    return points


def _gradient(name: str, f: Callable[..., Tensor], points: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """f, and its gradient by each point, differentiable."""
    out = called(name, f, points)
    if out.size != 1:
        raise ValueError(f"{name}: the function is to return one entry, not shape {out.shape}; sum them, or weigh them")
    return out, _grads(out, points)


def _grads(out: Tensor, points: list[Tensor], seeds: Any = None, create_graph: bool = True) -> list[Tensor]:
    """Gradients as Tensors, zeros where there is none."""
    found: list[Any] = [None] * len(points)
    if out.requires_grad:
        found = grad(out, points, seeds, retain_graph=True, create_graph=create_graph, allow_unused=True)
    dense = [Tensor(part.dense()) if isinstance(part, Rows) else part for part in found]
    return [Tensor.zeros_like(x.detach()) if part is None else part for part, x in zip(dense, points)]


def _rows(out: Tensor, points: list[Tensor]) -> list[Tensor]:
    """The matrix ∂out/∂point, row by row, for each point."""
    rows = []
    for k in range(out.size):
        unit = np.zeros(out.shape, out.dtype)
        unit.flat[k] = 1
        rows.append(_grads(out, points, [Tensor(unit, device=out.device)], create_graph=False))
    if not rows:
        return [Tensor.zeros(*out.shape, *x.shape, dtype=x.dtype, device=x.device) for x in points]
    return [F.stack(column).reshape(out.shape + column[0].shape) for column in zip(*rows)]


def _along(name: str, parts: list[Tensor], points: list[Tensor], vectors: Any) -> Tensor:
    """Σ parts · vectors: one number."""
    vectors = [v if isinstance(v, Tensor) else Tensor(v, dtype=p.dtype) for v, p in zip(_listed(vectors), points)]
    shapes, expected = [v.shape for v in vectors], [p.shape for p in points]
    if shapes != expected or len(_listed(vectors)) != len(points):
        raise ValueError(f"{name}: vectors have the inputs' shapes, {expected}, not {shapes}")
    total: Any = 0.0
    for part, vector in zip(parts, vectors):
        total = total + (part * vector.detach()).sum()
    return total


def _listed(xs: Any) -> list[Any]:
    return list(xs) if isinstance(xs, list | tuple) else [xs]


def _one_or_all(parts: list[Tensor], single: bool) -> Any:
    return parts[0] if single else tuple(parts)
