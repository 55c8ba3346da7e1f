"""Gradients of Tensors: into `.grad` of the leaves, or as values. The walk itself is in graph.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .cuda import array_module
from .graph import Node, walk
from .mode import enable_grad
from .rows import Rows
from .tensor import NUMBERS, Tensor, array_of, common_device


def backward(output: Tensor, gradient: Any, retain_graph: bool, create_graph: bool) -> None:
    """See Tensor.backward."""
    if output.node is None:
        raise RuntimeError(
            "backward: nothing this Tensor was computed from requires a gradient "
            "(requires_grad=False, or computed within no_grad)"
        )
    for node, found in gradients([output], [gradient], retain_graph, create_graph).items():
        held, new = node.grad, found if isinstance(found, Rows | Tensor) else Tensor(found)
        if isinstance(held, Tensor) and isinstance(new, Tensor):
            node.grad = held + new
        elif held is None:
            node.grad = new
        else:
            total = array_of(held) + array_of(new)
            node.grad = total if isinstance(total, Rows) else Tensor(total)


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
    nodes: list[Any] = [x.node for x in inputs]
    if None in nodes:
        k = nodes.index(None)
        raise RuntimeError(f"grad: input {k} requires no gradient; set requires_grad=True before it is used")
    reached = [(out, seed) for out, seed in zip(outputs, seeds) if out.node is not None]
    found = gradients(
        [out for out, _ in reached], [seed for _, seed in reached], retain_graph, create_graph, wanted=nodes
    )
    result: list[Tensor | Rows | None] = []
    for k, node in enumerate(nodes):
        part = found.get(node)
        if part is None and not allow_unused:
            raise RuntimeError(f"grad: the outputs do not depend on input {k}; allow_unused=True gives None for it")
        result.append(part if part is None or isinstance(part, Tensor | Rows) else Tensor(part))
    return result


def gradients(
    outputs: Iterable[Tensor],
    seeds: Iterable[Any],
    retain_graph: bool = False,
    create_graph: bool = False,
    wanted: Iterable[Node] = (),
) -> dict[Node, Any]:
    """graph.walk from Tensors: node → gradient, an array or Rows, or a Tensor where create_graph."""
    start: dict[Any, Any] = {}
    for output, seed in zip(outputs, seeds):
        seed = _seed(output, seed, create_graph)
        start[output.node] = start[output.node] + seed if output.node in start else seed
    if not create_graph:
        return walk(start, retain_graph=retain_graph, wanted=wanted)
    with enable_grad():
        return walk(start, retain_graph=True, lift=_lift, wanted=wanted)


def _seed(output: Tensor, gradient: Any, create_graph: bool) -> Any:
    """The gradient to start from: that given, or 1 for a single number; the walk may keep it."""
    if gradient is None:
        if output.size != 1:
            raise RuntimeError(
                f"backward from a Tensor of shape {output.shape} needs a gradient of that shape: "
                "reduce to one number first (.sum(), .mean()), or pass backward(gradient)"
            )
        gradient = 1
    given = array_of(gradient)
    with common_device("backward", (output.data, given)).active():
        array = array_module(output.data).array(given, dtype=output.dtype)
    if array.shape != output.shape:
        if not array.size == output.size == 1:
            raise ValueError(f"a gradient of shape {array.shape} does not fit an output of shape {output.shape}")
        array = array.reshape(output.shape)
    if not create_graph:
        return array
    return gradient if isinstance(gradient, Tensor) and gradient.requires_grad else Tensor(array)


def _lift(array: Any, node: Any, writes: list[int]) -> Any:
    """A saved array as a Tensor that hangs on `node`; Python numbers stay what they are."""
    if type(array) in NUMBERS:
        return array
    out = Tensor(array)
    out.node, out.writes = node, writes
    return out


def _listed(xs: Any) -> list[Tensor]:
    xs = [xs] if isinstance(xs, Tensor) else list(xs) if isinstance(xs, list | tuple) else [xs]
    for x in xs:
        if not isinstance(x, Tensor):
            raise TypeError(f"grad takes Tensors or lists of them, not {x!r}")
    return xs


def leaf_of(x: Any) -> Tensor:
    """A Tensor of its own place in the graph on the same memory, a leaf where x holds floats."""
    point = x.detach() if isinstance(x, Tensor) else Tensor(x)
    return point.requires_grad_() if point.dtype.kind == "f" else point


def called(name: str, f: Callable[..., Any], points: Sequence[Tensor]) -> Tensor:
    """f(*points), recorded. Raises TypeError unless it is a Tensor."""
    with enable_grad():
        out = f(*points)
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}: the function is to return a Tensor, not a {type(out).__name__}")
    return out
