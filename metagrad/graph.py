"""The backward walk: from an output's gradient to the gradients of the leaves.

A node's serial number is larger than those of the nodes it was computed from. So taking nodes by
falling serial number visits each one after everything that used it: its gradient is complete, also
in a + a. A heap holds the nodes whose turn comes, a table their gradients; nothing recurses.
Numbers that the forward pass gives anyway spare a first pass that counts every node's users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from numpy import ndarray

from .cuda import current_device_kept, make_current
from .function import Function, Leaf
from .mode import MODE
from .ops.reduction import widened
from .rows import Rows

Node = Function | Leaf

# One clock for calls and for writes into arrays: "was it written after it was saved?" compares numbers.
tick = count(1).__next__
last_write = [0]

# Adding in place spares memory traffic for large arrays and costs twice as much for small ones.
_LARGE = 1 << 14


def walk(
    gradients: dict[Node, Any],
    *,
    retain_graph: bool = False,
    lift: Callable | None = None,
    wanted: Iterable[Node] = (),
) -> dict[Node, Any]:
    """Gradients of all leaves below the nodes in `gradients`, of nodes that retain, and of `wanted`.

    gradients: of each output node, an array of its shape and dtype that nobody else writes to.
    lift: None to compute with arrays; or a function (array, node, writes) → Tensor: then gradients are
        Tensors, everything saved is lifted and the rules' work is recorded in its turn.
    Nodes drop their edges and saved arrays when visited, unless retain_graph.
    Leaves get arrays of their own, which the caller may keep.
    """
    wanted = set(wanted)
    kept: dict[Node, Any] = {}
    heap: list[tuple[int, Any]] = [(-node.serial, node) for node in gradients if node.serial]
    heap.sort()
    mode = MODE.get()
    watch = mode and mode.watch
    with current_device_kept():
        while heap:
            node = heappop(heap)[1]
            grad = gradients.pop(node)
            edges = node.edges
            if type(grad) is not ndarray:
                grad = grad.dense() if type(grad) is Rows else grad
                make_current(grad)
            if node.hooks is not None:
                grad = _run_hooks(node, grad)
            if node.retains_grad or (wanted and node in wanted):
                kept[node] = _new_array(grad, lift)  # the walk goes on with `grad` itself
            grads, saved = _derivative(node, grad, lift, watch)
            if not retain_graph:
                node.edges = None
                node.saved = ()
            for edge, part in zip(edges, grads):
                if edge is None or part is None or part is False:
                    continue
                try:
                    fits = part.shape == edge.shape and (part.dtype is edge.dtype or part.dtype == edge.dtype)
                except AttributeError:
                    fits = False
                if not fits:
                    part = _fitted(part, edge, node)
                held = gradients.get(edge)
                if held is None:
                    if edge.serial:
                        heappush(heap, (-edge.serial, edge))
                    elif (part.base is not None if lift is None else part.is_view) or _is_held(
                        part, grad, grads, saved
                    ):
                        part = _new_array(part, lift)
                    gradients[edge] = part
                elif type(held) is ndarray and held.nbytes < _LARGE:
                    gradients[edge] = held + part
                else:
                    gradients[edge] = _sum(held, part, edge, grad, grads, saved)
        for leaf, grad in gradients.items():
            kept[leaf] = grad if leaf.hooks is None else _run_hooks(leaf, grad)
    return kept


def _derivative(node: Function, grad: Any, lift: Callable | None, watch: Any) -> tuple[tuple, tuple]:
    """The gradients that a node sends on, one for each input, and the saved values they were computed from."""
    if node.edges is None:
        raise RuntimeError(
            f"{type(node).__name__}: this graph was walked before and its saved values are freed. "
            "Compute the output again, or call the first backward with retain_graph=True"
        )
    if node.serial < last_write[0]:
        check_writes(node)
    saved = node.saved if lift is None else _lift_saved(node, lift)
    if watch:
        grads = watch.backward(node, grad, saved)
    else:
        grads = node.backward(grad, *saved) if saved else node.backward(grad)
    if type(grads) is not tuple:
        grads = (grads,)
    if len(grads) != len(node.edges):
        name = type(node).__name__
        raise RuntimeError(f"{name}.backward returned {len(grads)} gradients for {len(node.edges)} inputs")
    return grads, saved


def _new_array(grad: Any, lift: Callable | None) -> Any:
    """The same values in memory that nobody else holds."""
    return grad.copy() if lift is None else grad * 1


def _sum(held: Any, part: Any, edge: Node, grad: Any, grads: tuple, saved: tuple) -> Any:
    """held + part, in place where one of them is an array of the walk's own: a leaf's sum so far, or a new part."""
    if type(held) is ndarray and type(part) is ndarray:
        if not edge.serial:
            held += part
            return held
        if part.base is None and not _is_held(part, grad, grads, saved):
            part += held
            return part
    make_current(held)
    return held + part


def _fitted(part: Any, edge: Node, node: Function) -> Any:
    """A gradient in the shape and dtype of the input it belongs to."""
    if not hasattr(part, "shape"):
        raise TypeError(f"{type(node).__name__}.backward returned a {type(part).__name__}, not an array")
    if part.shape != edge.shape:
        part = unbroadcast(part, edge.shape, node)
    return part if part.dtype == edge.dtype else part.astype(edge.dtype)


def unbroadcast(grad: Any, shape: tuple[int, ...], node: Node) -> Any:
    """Sum `grad` over the axes along which an input of `shape` was repeated."""
    extra = grad.ndim - len(shape)
    stretched = [i for i in range(grad.ndim) if i < extra or (shape[i - extra] == 1 and grad.shape[i] != 1)]
    summed = tuple(1 if i in stretched else n for i, n in enumerate(grad.shape))
    if extra < 0 or summed[extra:] != tuple(shape):
        raise RuntimeError(
            f"{type(node).__name__}.backward returned a gradient of shape {tuple(grad.shape)} "
            f"for an input of shape {tuple(shape)}"
        )
    return widened(grad).sum(axis=tuple(stretched)).reshape(shape)


def _is_held(part: Any, grad: Any, grads: tuple, saved: tuple) -> bool:
    """Whether an array that a rule returned is not new: what it was given, or returned twice."""
    if part is grad:
        return True
    for array in saved:
        if part is array:
            return True
    return sum([part is other for other in grads]) > 1


def check_writes(node: Function) -> None:
    """Raise if an array that the node saved was written to since."""
    for writes in node.writes:
        if writes[0] > node.serial:
            raise RuntimeError(
                f"{type(node).__name__}: a value that its derivative needs was written over after the "
                "operation. Write before it is used, write into a copy, or use the version without '_'"
            )


def _lift_saved(node: Function, lift: Callable) -> tuple:
    """The saved arrays as Tensors: inputs hang on the node's edges, the output on the node itself."""
    makers = [*(node.edges or ())] if node.saves_inputs else []
    if node.saves_output:
        makers.append(node)
    return tuple(map(lift, node.saved, makers, node.writes))


def _run_hooks(node: Node, grad: Any) -> Any:
    for hook in tuple(node.hooks or ()):  # one may remove itself
        changed = hook(grad)
        if changed is not None:
            grad = changed
    return grad
