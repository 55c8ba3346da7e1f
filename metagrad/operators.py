"""Operators: what can be done with a Tensor. Each method names its rule, which stands in `ops/`.

Methods are those that arrays have too, so that a rule's derivative may run on either, and the operators of
Python; every other function is in `functional`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .creation import shape_of
from .cuda import CPU, Array, Device, copied, device_of, get_device, to_device
from .ops import activation, arithmetic, indexing, linalg, reduction, shape


class Operators:
    """The methods of Tensor that compute. How a call is recorded is Tensor's own affair (tensor.py)."""

    __slots__ = ()

    data: Array
    __record__: Callable  # (rule, *inputs, **constants) → Tensor
    _unary: Callable  # the same for (rule) and (rule, other), faster
    _binary: Callable
    _constant: Callable  # (function of arrays, *others) → Tensor without a gradient
    _write: Callable  # (rule, *others, **constants): into this memory
    __array_namespace__: Callable  # () → metagrad.functional

    # What it is ------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.data.size

    @property
    def device(self) -> Device:
        return device_of(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("a Tensor without axes cannot be iterated; its value is x.item()")
        return (self[i] for i in range(len(self)))

    # Where it is -----------------------------------------------------------------------------------

    def to(self, device: str | Device) -> Any:
        """This Tensor on a device: itself if it is there, else a recorded copy."""
        target = get_device(device)
        return self if target == self.device else self.__record__(shape.ToDevice, self, device=target)

    def cpu(self) -> Any:
        return self.to(CPU)

    def astype(self, dtype: Any) -> Any:
        return self if self.dtype == dtype else self.__record__(arithmetic.Astype, self, dtype=np.dtype(dtype))

    # Arithmetic ------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return self._binary(arithmetic.Add, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._binary(arithmetic.Sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self.__record__(arithmetic.Sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return self._binary(arithmetic.Mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._binary(arithmetic.Div, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.__record__(arithmetic.Div, other, self)

    def __pow__(self, other: Any) -> Any:
        return self._binary(arithmetic.Pow, other)

    def __rpow__(self, other: Any) -> Any:
        return self.__record__(arithmetic.Pow, other, self)

    def __matmul__(self, other: Any) -> Any:
        return self._binary(linalg.MatMul, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.__record__(linalg.MatMul, other, self)

    def __neg__(self) -> Any:
        return self._unary(arithmetic.Neg)

    def __abs__(self) -> Any:
        return self._unary(arithmetic.Abs)

    def neg(self) -> Any:
        return -self

    def abs(self) -> Any:
        return self._unary(arithmetic.Abs)

    def exp(self) -> Any:
        return self._unary(arithmetic.Exp)

    def log(self) -> Any:
        return self._unary(arithmetic.Log)

    def sqrt(self) -> Any:
        return self._unary(arithmetic.Sqrt)

    def tanh(self) -> Any:
        return self._unary(activation.Tanh)

    def sigmoid(self) -> Any:
        return self._unary(activation.Sigmoid)

    def relu(self) -> Any:
        return self._unary(activation.Relu)

    def round(self, decimals: int = 0) -> Any:
        return self.__record__(arithmetic.Round, self, decimals=decimals)

    def clip(self, low: float | None = None, high: float | None = None) -> Any:
        return self.__record__(arithmetic.Clip, self, low=low, high=high)

    # Comparisons: Tensors of bool, without a gradient ------------------------------------------------

    def __eq__(self, other: Any) -> Any:  # type: ignore[override]
        return self._constant(operator.eq, other)

    def __ne__(self, other: Any) -> Any:  # type: ignore[override]
        return self._constant(operator.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self._constant(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._constant(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._constant(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._constant(operator.ge, other)

    def __and__(self, other: Any) -> Any:
        return self._constant(operator.and_, other)

    def __or__(self, other: Any) -> Any:
        return self._constant(operator.or_, other)

    def __invert__(self) -> Any:
        return self._constant(operator.invert)

    __rand__, __ror__ = __and__, __or__
    __hash__ = object.__hash__

    # Reductions ------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.__record__(reduction.Sum, self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.__record__(reduction.Mean, self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.__record__(reduction.Max, self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.__record__(reduction.Min, self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.__record__(reduction.Prod, self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None) -> Any:
        return self.__array_namespace__().cumsum(self, axis)

    def cumprod(self, axis: int | None = None) -> Any:
        return self.__array_namespace__().cumprod(self, axis)

    def var(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
        return self.__array_namespace__().var(self, axis, ddof, keepdims)

    def std(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
        return self.__array_namespace__().std(self, axis, ddof, keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Any:
        return self.__array_namespace__().argmax(self, axis, keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Any:
        return self.__array_namespace__().argmin(self, axis, keepdims)

    def argsort(self, axis: int = -1) -> Any:
        return self.__array_namespace__().argsort(self, axis)

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.__array_namespace__().any(self, axis, keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.__array_namespace__().all(self, axis, keepdims)

    # Shape and places ------------------------------------------------------------------------------

    def reshape(self, *shape_: Any) -> Any:
        return self.__record__(shape.Reshape, self, shape=shape_of(shape_))

    def transpose(self, *axes: Any) -> Any:
        """Axes in the given order; reversed where none is given."""
        order = shape_of(axes) if axes else tuple(range(self.ndim))[::-1]
        if sorted(a % max(self.ndim, 1) for a in order) != list(range(self.ndim)):
            raise ValueError(f"transpose: {order} does not name each of {self.ndim} axes once")
        return self.__record__(shape.Transpose, self, axes=order)

    @property
    def T(self) -> Any:
        return self.transpose()

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return self.__record__(shape.Swapaxes, self, axis1=axis1, axis2=axis2)

    def squeeze(self, axis: Any = None) -> Any:
        """Without axes of length 1: all of them, or those named."""
        return self.reshape(self.data.squeeze(axis=axis).shape)

    def flatten(self) -> Any:
        """All entries in one row."""
        return self.reshape(-1)

    def repeat(self, repeats: Any, axis: int | None = None) -> Any:
        return self.__array_namespace__().repeat(self, repeats, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return self.__array_namespace__().diagonal(self, offset, axis1, axis2)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return self.__array_namespace__().trace(self, offset, axis1, axis2)

    def dot(self, other: Any) -> Any:
        return self.__array_namespace__().dot(self, other)

    def unsqueeze(self, axis: int) -> Any:
        """With an axis of length 1 at a place, counted in the result."""
        if not -self.ndim - 1 <= axis <= self.ndim:
            raise ValueError(f"unsqueeze: axis {axis} is not within the {self.ndim + 1} axes of the result")
        axis %= self.ndim + 1
        return self.reshape(self.shape[:axis] + (1,) + self.shape[axis:])

    def broadcast_to(self, *shape_: Any) -> Any:
        return self.__record__(shape.BroadcastTo, self, shape=shape_of(shape_))

    def unfold(self, axis: int, size: int, step: int = 1) -> Any:
        """The windows of `size` entries that begin at every `step`-th place of an axis, as views.

        The axis counts the windows then, and their entries lie along a new last axis. What is left behind the
        last whole window is in none.
        """
        length = self.shape[axis] if -self.ndim <= axis < self.ndim else -1
        if not 0 < size <= length or step < 1:
            raise ValueError(
                f"unfold: no windows of {size} at steps of {step} along axis {axis} of shape {self.shape}; "
                "size is to be from 1 to the axis' length, and step at least 1"
            )
        return self.__record__(shape.Unfold, self, axis=axis % self.ndim, size=size, step=step)

    def __getitem__(self, index: Any) -> Any:
        return self.__record__(indexing.GetItem, self, index=self._index(index))

    def _index(self, index: Any) -> Any:
        """An index with its Tensors and lists as arrays."""
        if type(index) is int or type(index) is slice:
            return index
        if isinstance(index, tuple):
            return tuple([self._index(part) for part in index])
        if isinstance(index, list):
            return to_device(np.asarray(index, dtype=None if index else np.intp), self.device)
        # copied, since the derivative reads it and its Tensor may be written to meanwhile
        return copied(index.data) if isinstance(index, Operators) else index

    def gather(self, axis: int, index: Any) -> Any:
        """out[i, j] = x[i, index[i, j]] for axis 1, and so for any axis: out has index's shape, as PyTorch's gather.

        index has as many axes as x, and is nowhere longer than x but along `axis`.
        """
        index = self._index(index)
        axes = getattr(index, "ndim", 0)
        if axes != self.ndim or not axes:
            raise ValueError(
                f"gather: index has {axes} axes, the array has {self.ndim}; they must agree and be one or more"
            )
        beside = tuple(slice(n if d != axis % self.ndim else None) for d, n in enumerate(index.shape))
        whole = any(part.stop not in (None, n) for part, n in zip(beside, self.shape))
        return self.__record__(indexing.TakeAlongAxis, self[beside] if whole else self, index=index, axis=axis)

    def index_fill(self, axis: int, index: Any, value: float) -> Any:
        """A copy with `value` at the places `index` of an axis."""
        return self.__record__(indexing.IndexFill, self, axis=axis, index=self._index(index), value=value)

    # Writes into the memory, see Tensor._write ------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        self._write(indexing.SetItem, value, index=self._index(index))

    def add_(self, other: Any) -> Any:
        return self._write(arithmetic.Add, other)

    def sub_(self, other: Any) -> Any:
        return self._write(arithmetic.Sub, other)

    def mul_(self, other: Any) -> Any:
        return self._write(arithmetic.Mul, other)

    def div_(self, other: Any) -> Any:
        return self._write(arithmetic.Div, other)

    def copy_(self, other: Any) -> Any:
        return self._write(indexing.SetItem, other, index=...)

    def fill_(self, value: float) -> Any:
        return self.copy_(value)

    def index_fill_(self, axis: int, index: Any, value: float) -> Any:
        return self._write(indexing.IndexFill, axis=axis, index=self._index(index), value=value)

    def masked_fill_(self, mask: Any, value: float) -> Any:
        return self._write(indexing.SetItem, value, index=self._index(mask))
