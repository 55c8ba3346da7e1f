"""Function: a differentiable operation. One class an operation, one instance a call.

The instance is the node of the graph: it knows where its gradients go (`edges`) and what its
derivative needs (`saved`). A rule, that is a subclass in `ops/`, states mathematics and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .cuda import array_module


class Function:
    """The base of all rules.

        class Mul(Function):
            \"\"\"x y.\"\"\"
            saves_inputs = True

            def forward(self, x, y):
                return x * y

            def backward(self, grad, x, y):
                return grad * y, grad * x

    `forward` gets arrays, one for each input, and constants by keyword, and returns one array.
    It may keep constants as attributes (`self.axis = axis`), never arrays: what the derivative needs of
    inputs and output is declared, so that the engine can guard it and hand it over.
    `backward` gets the gradient of the output, then the inputs if `saves_inputs`, then the output if
    `saves_output`. It returns one gradient for each input, in their order: a new array, `grad` itself or
    a view of it, or None where there is no gradient to send. These are arrays, or Tensors when the
    derivative is to be differentiated again: use operators, methods that both have, and functions of
    `array_module(grad)`.
    The engine undoes broadcasting, casts to the input's dtype and adds up. Where it saves real work,
    `self.edges[i]` tells whether input i needs a gradient (it is None otherwise).
    """

    saves_inputs = False
    saves_output = False
    is_view = False  # the output may share memory with the first input

    hooks: list | None = None  # functions of the output's gradient, see Tensor.register_hook
    grad: Any = None  # the output's gradient, where retain_grad() asked for it
    retains_grad = False

    # Set by the engine when the call is recorded:
    edges: Sequence[Function | Leaf | None] | None  # where each input's gradient goes; None once freed
    saved: tuple  # the arrays that backward gets after grad
    writes: tuple  # of the saved arrays' tensors: lists that hold the moment of the last write
    serial: int  # the moment of the call: nodes of larger serial depend on nodes of smaller
    shape: tuple[int, ...]  # of the output
    dtype: Any

    def forward(self, *inputs, **constants):
        raise NotImplementedError(f"{type(self).__name__} must define forward(self, *inputs, **constants)")

    def backward(self, grad, *saved):
        raise NotImplementedError(f"{type(self).__name__} has no derivative: define backward(self, grad, *saved)")

    def write(self, target, *inputs, **constants):
        """Put what forward returns into the array `target`, whose values the first input has."""
        result = self.forward(*inputs, **constants)
        if result.shape != target.shape:
            raise ValueError(f"a result of shape {result.shape} cannot be written into shape {target.shape}")
        array_module(target).copyto(target, result, casting="same_kind")

    @classmethod
    def apply(cls, *inputs, **constants):
        """The result for these inputs: a Tensor, recorded, if any is a Tensor; else an array.

        It lets one rule use another, and is how a rule of your own is called.
        """
        for x in inputs:
            record = getattr(x, "__record__", None)
            if record is not None:
                return record(cls, *inputs, **constants)
        return cls().forward(*inputs, **constants)


class Leaf:
    """Where a graph ends: it collects the gradient of a Tensor that no operation made."""

    __slots__ = ("shape", "dtype", "grad", "hooks")
    edges = ()
    is_view = False
    serial = 0

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype
        self.grad: Any = None
        self.hooks: list | None = None
