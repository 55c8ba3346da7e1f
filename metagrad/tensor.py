"""Tensor: an array, its gradient, and the call that made it.

An operation on Tensors runs its rule on their arrays (`record`) and, where a gradient is needed, keeps
the rule's instance as the node that made the result. `backward` walks those nodes (graph.py).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy import ndarray

from .conversions import Conversions, above
from .creation import Constructors, as_array
from .cuda import CPU, Array, Device, array_module, copied, device_of, get_device, is_array, to_device
from .function import Function, Leaf
from .graph import last_write, tick
from .hooks import Handle
from .mode import MODE, is_grad_enabled
from .operators import Operators
from .rows import Rows

NUMBERS = (int, float, bool)  # Python's: NumPy lets them take the dtype of the array they meet
_new = object.__new__


class Tensor(Operators, Conversions, Constructors):
    """An n-dimensional array that remembers how it was computed.

    data: an array (shared, not copied), or numbers in nested lists. An array keeps its dtype; Python
        floats become float32, integers int64, so that a number written in code never widens anything.
    dtype, device: convert to these ("cpu", "cuda:0").
    requires_grad: collect its gradient in `.grad` at backward; floats only.

    `.data` is the NumPy or CuPy array itself: what is written there escapes the version guard that
    protects values which backward still needs. Write with `x[index] = ...` or `x.mul_(...)`. Arrays handed to
    an operation as they are (ids, targets, weights, masks) are read again at backward and not guarded either.
    """

    __slots__ = ("data", "node", "writes", "is_view", "__weakref__")

    data: Array
    node: Function | Leaf | None  # where its gradient goes; None where none is needed
    writes: list[int]  # the moments of the last write into the memory and of the last recorded one; views share it
    is_view: int  # the moment when the view was taken; 0 for a Tensor with memory of its own

    def __init__(
        self,
        data: Any,
        dtype: Any = None,
        device: str | Device | None = None,
        requires_grad: bool = False,
    ) -> None:
        array = as_array(data)
        if dtype is not None and array.dtype != np.dtype(dtype):
            array = array.astype(dtype)
        if device is not None:
            array = to_device(array, get_device(device))
        self.data = array
        self.node = None
        if isinstance(data, Tensor) and array is data.data:
            self.writes, self.is_view = data.writes, tick()
        else:
            self.writes, self.is_view = [0, 0], 0
        if requires_grad:
            self.requires_grad = True

    # Its place in the graph ------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return self.node is not None

    @requires_grad.setter
    def requires_grad(self, needed: bool) -> None:
        if needed == (self.node is not None):
            return
        if not needed and type(self.node) is not Leaf:
            raise RuntimeError("only a leaf can stop requiring a gradient; x.detach() gives a Tensor without one")
        if needed and self.dtype.kind != "f":
            raise TypeError(f"a Tensor of {self.dtype} has no gradient: make it float first, x.astype('float32')")
        self.node = Leaf(self.shape, self.dtype) if needed else None

    def requires_grad_(self, needed: bool = True) -> Tensor:
        self.requires_grad = needed
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made it."""
        return self.node is None or type(self.node) is Leaf

    @property
    def grad(self) -> Tensor | Rows | None:
        """The gradient collected so far: a Tensor, or Rows for a sparsely read table. It adds up until cleared."""
        return None if self.node is None else self.node.grad

    @grad.setter
    def grad(self, value: Tensor | Rows | None) -> None:
        if self.node is None:
            if value is not None:
                raise RuntimeError("a Tensor that requires no gradient cannot hold one")
            return
        if value is not None and not isinstance(value, Rows):
            value = value if isinstance(value, Tensor) else Tensor(value)
            common_device("grad", (self.data, value.data))
            value = value.astype(self.dtype)
        if value is not None and value.shape != self.shape:
            raise ValueError(f"a gradient of shape {value.shape} does not fit a Tensor of shape {self.shape}")
        self.node.grad = value

    def retain_grad(self) -> None:
        """Keep the gradient also of this inner Tensor at backward, in `.grad`."""
        if self.node is None:
            raise RuntimeError("retain_grad: this Tensor requires no gradient")
        if isinstance(self.node, Function):
            self.node.retains_grad = True

    def register_hook(self, hook: Callable) -> Handle:
        """Call hook(gradient) at backward, when the gradient is complete; a Tensor it returns takes its place.

        The handle's `remove()` takes the hook away.
        """
        if self.node is None:
            raise RuntimeError("register_hook: this Tensor requires no gradient")

        def on_gradient(grad):
            changed = hook(grad if isinstance(grad, Tensor | Rows) else Tensor(copied(grad)))
            if changed is None:
                return None
            if not isinstance(changed, Tensor | Rows) or changed.shape != grad.shape:
                raise TypeError(f"a hook returns None or a gradient of shape {tuple(grad.shape)}, not {changed!r}")
            return changed.data if isinstance(changed, Tensor) and not isinstance(grad, Tensor) else changed

        if self.node.hooks is None:
            self.node.hooks = []
        return Handle(self.node.hooks, on_gradient)

    def backward(self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Add d self/d leaf to `.grad` of every leaf that self was computed from.

        gradient: that of some scalar with respect to self, of self's shape; 1 where self has one entry.
        retain_graph: keep what a second backward through the same graph needs; else it is freed.
        create_graph: make the gradients differentiable themselves. A leaf then holds, in `.grad`, a graph that
            leads back to it: a cycle, until `.grad` is cleared. metagrad.grad(...) makes none.
        """
        if self.node is None:
            raise RuntimeError(
                "backward: nothing this Tensor was computed from requires a gradient "
                "(requires_grad=False, or computed within no_grad)"
            )
        above("autograd").backward(self, gradient, retain_graph, create_graph)

    def detach(self) -> Tensor:
        """The same memory, without the graph."""
        return Tensor(self)

    def __copy__(self) -> Tensor:
        return copy.deepcopy(self)  # never the same memory under two version counters

    def __reduce__(self) -> tuple:
        """For copy and pickle: a leaf's values, and whether it requires a gradient."""
        if not self.is_leaf:
            raise RuntimeError("only leaves can be deep-copied or pickled, not what belongs to a graph: detach() first")
        return _rebuilt, (type(self), self.data, self.requires_grad)

    # Recording --------------------------------------------------------------------------------------

    def _unary(self, rule: type[Function]) -> Tensor:
        """record(rule, self), faster: see _binary."""
        data, edge = self.data, self.node
        if type(data) is not ndarray or MODE.get() is not None:
            return record(rule, self)
        if self.is_view:
            _check_view(self)
        node = rule()
        return made_by(node, node.forward(data), (data,), None if edge is None else (edge,), (self.writes,))

    def _binary(self, rule: type[Function], other: Any) -> Tensor:
        """record(rule, self, other), faster: most of an operation on small arrays is the engine's own time,
        and the usual cases (a Tensor on the host with another, or with a number; no special mode) need no loops."""
        left, to_x = self.data, self.node
        if isinstance(other, Tensor):
            right, to_y, writes = other.data, other.node, other.writes
            if type(right) is not ndarray:
                return record(rule, self, other)
            if other.is_view:
                _check_view(other)
        elif type(other) in NUMBERS:
            right, to_y, writes = other, None, _NEVER
        else:
            return record(rule, self, other)
        if type(left) is not ndarray or MODE.get() is not None:
            return record(rule, self, other)
        if self.is_view:
            _check_view(self)
        node = rule()
        edges = None if to_x is None and to_y is None else (to_x, to_y)
        return made_by(node, node.forward(left, right), (left, right), edges, (self.writes, writes))

    def _constant(self, function: Callable, *others: Any) -> Any:
        """What `function` makes of the arrays, as a Tensor without a gradient."""
        if any(x is None or isinstance(x, str) for x in others):
            return NotImplemented
        arrays = [self.data, *(array_of(operand(x, self.device)) for x in others)]
        with common_device(getattr(function, "__name__", "comparison"), arrays).active():
            return Tensor(function(*arrays))

    def _write(self, rule: type[Function], *others: Any, **constants: Any) -> Tensor:
        """Replace the values by rule(self, *others), in the same memory.

        Where a gradient is involved the write is recorded, and self is from then on the rule's output;
        that is refused where it could not be right: for a leaf, whose gradient would be that of a value
        that is gone, and for a view, whose base would not know.
        """
        recorded = is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in (self, *others))
        if recorded and type(self.node) is Leaf:
            raise RuntimeError(
                "a leaf that requires a gradient cannot be written over where that is recorded: "
                "write within no_grad() to change its value, or use the version without '_'"
            )
        if recorded and self.is_view:
            raise RuntimeError(
                "a view cannot be written over where that is recorded, its base would keep the old gradient: "
                "write into the base (base[index] = ...), or use the version without '_'"
            )
        inputs = [self, *(operand(x, self.device) for x in others)]
        arrays, writes = [], []
        for x in inputs:  # what shares memory with the target is read from a copy
            shared = isinstance(x, Tensor) and x.writes is self.writes and not (x is self and not rule.saves_inputs)
            arrays.append(copied(x.data) if shared else array_of(x))
            writes.append(x.writes if isinstance(x, Tensor) and not shared and x is not self else _NEVER)
        node, mode = rule(), MODE.get()
        with common_device(rule.__name__, (*arrays, *constants.values())).active():
            if mode is not None and mode.watch is not None:
                mode.watch.write(node, self.data, arrays, constants)
            else:
                node.write(self.data, *arrays, **constants)
        self.mark_written()
        if recorded:
            edges = [x.node if isinstance(x, Tensor) else None for x in inputs]
            self.writes[1] = self.writes[0]
            self.node = made_by(node, self.data, arrays, edges, writes).node
        return self

    def mark_written(self) -> Tensor:
        """Tell the version guard that the memory was written: for code that writes into `.data` itself."""
        self.writes[0] = last_write[0] = tick()
        return self


# Recording ------------------------------------------------------------------------------------------


def record(rule: type[Function], *inputs: Any, **constants: Any) -> Tensor:
    """The Tensor that `rule` makes of inputs (Tensors, arrays, numbers), on the graph if it needs to be.

    Numbers stay Python numbers, so that they take the other operand's dtype.
    """
    arrays: list[Any] = []
    edges: list[Function | Leaf | None] = []
    writes: list[list[int]] = []
    needed, on_host = False, True
    for x in inputs:
        if not isinstance(x, Tensor):
            if type(x) not in NUMBERS:
                x = operand(x, next((y.device for y in inputs if isinstance(y, Tensor)), CPU))
            if type(x) in NUMBERS:
                arrays.append(x)
                edges.append(None)
                writes.append(_NEVER)
                continue
        if x.is_view:
            _check_view(x)
        if x.node is not None:
            needed = True
        if type(x.data) is not ndarray:
            on_host = False
        arrays.append(x.data)
        edges.append(x.node)
        writes.append(x.writes)
    mode = MODE.get()
    node = rule()
    if on_host and mode is None:
        try:
            data = node.forward(*arrays, **constants)
        except (TypeError, ValueError, IndexError):
            common_device(rule.__name__, (*arrays, *constants.values()))  # where these lie apart, that is the reason
            raise
        return made_by(node, data, arrays, edges if needed else None, writes)
    with common_device(rule.__name__, (*arrays, *constants.values())).active():
        if mode is not None and mode.watch is not None:
            data = mode.watch.forward(node, arrays, constants)
        else:
            data = node.forward(*arrays, **constants)
    if mode is not None and not mode.recording:
        needed = False
    return made_by(node, data, arrays, edges if needed else None, writes)


Tensor.__record__ = staticmethod(record)
_NEVER = [0, 0]  # the writes of what cannot be written


def made_by(node: Function, data: Array, arrays: Any, edges: Any, writes: Any) -> Tensor:
    """The Tensor of what a rule returned; edges None: not recorded."""
    out = _new(Tensor)
    if type(data) is not ndarray and not is_array(data):
        if not isinstance(data, np.generic):
            raise TypeError(f"{type(node).__name__}.forward returned a {type(data).__name__}, not an array")
        data = np.asarray(data)  # NumPy makes scalars of arrays without axes
    out.data = data
    if data is arrays[0] or (
        node.is_view and data.base is not None and array_module(data).may_share_memory(data, arrays[0])
    ):
        out.writes, out.is_view = writes[0], tick()
    else:
        out.writes, out.is_view = [0, 0], 0
    if edges is None:
        out.node = None
        return out
    out.node = node
    node.edges = edges
    node.serial = tick()
    node.shape = data.shape
    node.dtype = data.dtype
    if node.saves_inputs:
        if node.saves_output:
            node.saved, node.writes = (*arrays, data), (*writes, out.writes)
        else:
            node.saved, node.writes = arrays, writes
    elif node.saves_output:
        node.saved, node.writes = (data,), (out.writes,)
    else:
        node.saved = node.writes = ()
    return out


def _check_view(x: Tensor) -> None:
    """Refuse a view whose memory was written through another Tensor after the view was taken and recorded."""
    stale = x.writes[1] > x.is_view if x.node is None else x.writes[0] > x.node.serial > 0
    if stale:
        raise RuntimeError(
            "this Tensor is a view of memory that was written over since, so its gradient would be that of "
            "values that are gone: take the view again after the write"
        )


def common_device(name: str, values: Any) -> Device:
    """The device of all arrays among values. Raises RuntimeError, naming them, where there are several."""
    devices = {device_of(x) for x in _arrays_in(values)}
    if len(devices) > 1:
        where = " and ".join(sorted(map(str, devices)))
        raise RuntimeError(f"{name}: operands are on {where}; bring them together with x.to(device)")
    return devices.pop() if devices else CPU


def _arrays_in(values: Any) -> Iterator[Array]:
    for x in values:
        if is_array(x):
            yield x
        elif isinstance(x, tuple):
            yield from _arrays_in(x)


# Arguments ------------------------------------------------------------------------------------------


def operand(x: Any, device: Device) -> Any:
    """What takes part beside a Tensor: Tensors and Python numbers as they are, arrays as Tensors of where they
    are, lists and NumPy's scalars as Tensors on `device`."""
    if isinstance(x, Tensor) or type(x) in NUMBERS:
        return x
    return Tensor(x) if is_array(x) else Tensor(x, device=device)


def _rebuilt(cls: type[Tensor], data: Array, requires_grad: bool) -> Tensor:
    out = _new(cls)
    Tensor.__init__(out, data, requires_grad=requires_grad)
    return out


def array_of(x: Any) -> Any:
    """The array of a Tensor; anything else as it is."""
    return x.data if isinstance(x, Tensor) else x
