"""Gradients as values, rather than in `.grad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .rows import Rows
from .tensor import Tensor, gradients


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Any] | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> list[Tensor | Rows | None]:
    """The gradient of Σ outputs · grad_outputs with respect to each input; no `.grad` is touched.

    outputs: Tensors of one entry, unless grad_outputs gives a gradient of each one's shape.
    create_graph: make the gradients differentiable themselves.
    An input that the outputs do not depend on raises, or gives None with allow_unused.
    """
    outputs, inputs = _listed(outputs), _listed(inputs)
    if grad_outputs is None:
        seeds: list[Any] = [None] * len(outputs)
    else:
        seeds = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    if len(seeds) != len(outputs):
        raise ValueError(f"grad: {len(outputs)} outputs need as many grad_outputs, not {len(seeds)}")
    for k, x in enumerate(inputs):
        if x.node is None:
            raise RuntimeError(f"grad: input {k} requires no gradient; set requires_grad=True before it is used")
    reached = [(out, seed) for out, seed in zip(outputs, seeds) if out.node is not None]
    found = gradients(
        [out for out, _ in reached],
        [seed for _, seed in reached],
        retain_graph or create_graph,
        create_graph,
        wanted=[x.node for x in inputs],
    )
    result: list[Tensor | Rows | None] = []
    for k, x in enumerate(inputs):
        part = found.get(x.node)
        if part is None and not allow_unused:
            raise RuntimeError(f"grad: the outputs do not depend on input {k}; allow_unused=True gives None for it")
        result.append(part if part is None or isinstance(part, Tensor | Rows) else Tensor(part))
    return result


def _listed(xs: Any) -> list[Tensor]:
    xs = [xs] if isinstance(xs, Tensor) else list(xs) if isinstance(xs, list | tuple) else [xs]
    for x in xs:
        if not isinstance(x, Tensor):
            raise TypeError(f"grad takes Tensors or lists of them, not {x!r}")
    return xs
