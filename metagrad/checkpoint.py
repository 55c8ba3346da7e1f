"""Checkpoints: memory for time. What lies between inputs and output is computed again at backward, not kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import random
from .autograd import called, gradients
from .function import Function, Leaf
from .graph import tick
from .mode import enable_grad, is_grad_enabled
from .tensor import Tensor, made_by


def checkpoint(f: Callable[..., Tensor], *inputs: Any) -> Tensor:
    """f(*inputs), of which only the inputs are kept for backward: f is called once more then (Chen et al. 2016).

    Gradients go to the inputs and to leaves that f uses, such as parameters of a module. What f draws from
    metagrad's random streams it draws again alike; what it counts or writes elsewhere happens twice.
    Raises RuntimeError if f uses an inner Tensor of the graph that is not among its inputs.
    """
    if not is_grad_enabled():
        return f(*inputs)
    start = tick()
    tensors = [x if isinstance(x, Tensor) else Tensor(x) for x in inputs]
    node = Checkpoint(f, seed=int(random.generator().integers(2**63)))
    points = [x.detach().requires_grad_(x.requires_grad) for x in tensors]
    out = node.run(points)
    if out.node is None:
        return out
    leaves = _leaves_below(out.node, {x.node for x in points}, start)
    edges = [x.node for x in tensors] + list(leaves)
    writes = [x.writes for x in tensors] + [w for w in leaves.values() if w is not None]
    return made_by(node, out.data, [x.data for x in tensors], edges, writes)


class Checkpoint(Function):
    """f(x, …), computed again at backward. Its edges are those of the inputs, then the leaves that f uses."""

    edges: Any
    saves_inputs = True
    is_view = True  # f may return its input

    def __init__(self, f: Callable[..., Tensor], seed: int) -> None:
        self.f = f
        self.seed = seed

    def run(self, inputs: list[Tensor]) -> Tensor:
        """f(*inputs), recorded, with what it drew at first."""
        with random.seeded(self.seed):
            return called("checkpoint", self.f, inputs)

    def backward(self, grad, *saved):
        if isinstance(grad, Tensor):  # each gradient is a function of grad and the inputs, with a graph of its own
            parts = [edge and checkpoint(self._gradient(k), grad, *saved) for k, edge in enumerate(self.edges)]
            return tuple(parts)
        points = [Tensor(array, requires_grad=edge is not None) for array, edge in zip(saved, self.edges)]
        nodes = self._nodes(points)
        found = gradients([self.run(points)], [grad], wanted=[node for node in nodes if node])
        return tuple(node and found.get(node) for node in nodes)

    def _gradient(self, k: int) -> Callable[..., Tensor]:
        edge = self.edges[k]

        def gradient(grad: Tensor, *points: Tensor) -> Tensor:
            node = self._nodes(points)[k]
            with enable_grad():
                found = gradients([self.run(list(points))], [grad], create_graph=True, wanted=[node])
            zeros = Tensor.zeros(*edge.shape, dtype=edge.dtype, device=grad.device)
            return found.get(node, zeros)

        return gradient

    def _nodes(self, points: Any) -> list[Any]:
        """Where the gradients of a new run arrive: at its points, and at the leaves that f uses."""
        return [x.node for x in points] + list(self.edges[len(points) :])


def _leaves_below(node: Any, points: set[Any], start: int) -> dict[Leaf, list[int] | None]:
    """The leaves, other than points, that a graph begun at the moment `start` ends in.

    With each the moments of its writes, where an operation saved it: the guard of what is to be read again.
    """
    leaves: dict[Leaf, list[int] | None] = {}
    seen, waiting = {node, *points}, [node] if node not in points else []
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Leaf) and node.serial < start:
            raise RuntimeError(
                f"checkpoint: the function uses the result of {type(node).__name__}, computed outside: "
                "give it to checkpoint as an input"
            )
        for k, edge in enumerate(node.edges):
            if isinstance(edge, Leaf) and edge not in points:
                leaves[edge] = node.writes[k] if node.saves_inputs else leaves.get(edge)
            if edge is not None and edge not in seen:
                seen.add(edge)
                waiting.append(edge)
    return leaves
