"""F: every differentiable function by its usual name; arrays by NumPy's names, networks by PyTorch's.

Takes Tensors, arrays and numbers; returns Tensors. It is also the namespace of Tensors: a rule that asks
`array_module(x)` for a function finds it here when x is a Tensor, so its derivative can be derived again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .cuda import array_module, copied, device_of, is_array, to_device
from .mode import is_grad_enabled
from .ops import activation, arithmetic, indexing, linalg, reduction, shape
from .ops import loss as losses
from .tensor import NUMBERS, Tensor, record

# Elementwise ----------------------------------------------------------------------------------------


def exp(x: Any) -> Tensor:
    return record(arithmetic.Exp, x)


def expm1(x: Any) -> Tensor:
    return record(arithmetic.Expm1, x)


def log(x: Any) -> Tensor:
    return record(arithmetic.Log, x)


def log1p(x: Any) -> Tensor:
    return record(arithmetic.Log1p, x)


def sqrt(x: Any) -> Tensor:
    return record(arithmetic.Sqrt, x)


def sign(x: Any) -> Tensor:
    return record(arithmetic.Sign, x)


def abs(x: Any) -> Tensor:
    return record(arithmetic.Abs, x)


def tanh(x: Any) -> Tensor:
    return record(activation.Tanh, x)


def maximum(x: Any, y: Any) -> Tensor:
    """The larger of two, entry by entry; equal ones share the gradient."""
    return record(arithmetic.Maximum, *_array_first(x, y))


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of two, entry by entry; equal ones share the gradient."""
    return record(arithmetic.Minimum, *_array_first(x, y))


def clip(x: Any, low: float | None = None, high: float | None = None) -> Tensor:
    """x kept within [low, high], numbers; None leaves a side open."""
    return record(arithmetic.Clip, x, low=low, high=high)


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """x where the condition holds, y elsewhere."""
    return record(arithmetic.Where, x, y, condition=_constant(condition, x, y))


# Reductions -----------------------------------------------------------------------------------------


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Sum, x, axis=axis, keepdims=keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Mean, x, axis=axis, keepdims=keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Max, x, axis=axis, keepdims=keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return record(reduction.Min, x, axis=axis, keepdims=keepdims)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log Σ e^x, without overflow."""
    return record(reduction.LogSumExp, x, axis=axis, keepdims=keepdims)


# Shape and places -----------------------------------------------------------------------------------


def broadcast_to(x: Any, shape_: tuple[int, ...]) -> Tensor:
    return record(shape.BroadcastTo, x, shape=shape_)


def concatenate(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """The Tensors one after the other along an axis that they have."""
    return record(shape.Concatenate, *_some(xs, "concatenate"), axis=axis)


def stack(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """The Tensors, of one shape, one after the other along a new axis."""
    return record(shape.Stack, *_some(xs, "stack"), axis=axis)


def take_along_axis(x: Any, index: Any, axis: int) -> Tensor:
    """out[i, j] = x[i, index[i, j]] for axis 1, and so for any axis; index has as many axes as x."""
    return record(indexing.TakeAlongAxis, x, index=_constant(index, x), axis=axis)


def embedding(weight: Any, ids: Any, padding_idx: int | None = None, sparse: bool = True) -> Tensor:
    """Rows of a table. weight (V, d), ids (...) integers → (..., d).

    Row padding_idx gets no gradient. With sparse, the table's gradient is Rows of what was read.
    Raises IndexError for an id outside 0 … V−1 and TypeError for ids that are not integers.
    """
    weight = _tensor(weight)
    ids = _constant(ids, weight)
    if padding_idx is not None:
        if not -len(weight) <= padding_idx < len(weight):
            raise ValueError(f"embedding: padding_idx {padding_idx} is not a row of a table of {len(weight)}")
        padding_idx %= len(weight)
    return record(indexing.Embedding, weight, ids=ids, padding_idx=padding_idx, sparse=sparse)


def index_fill(x: Any, axis: int, index: Any, value: float) -> Tensor:
    """A copy of x with `value` at the places `index` of an axis."""
    return record(indexing.IndexFill, x, axis=axis, index=_constant(index, x), value=value)


def zeros_like(x: Any) -> Tensor:
    return Tensor.zeros_like(x)


# Products -------------------------------------------------------------------------------------------


def matmul(x: Any, y: Any) -> Tensor:
    """The product of vectors, matrices, or stacks of matrices."""
    return record(linalg.MatMul, x, y)


def einsum(subscripts: str, *operands: Any, optimize: Any = True) -> Tensor:
    """Einstein's sum, as numpy.einsum: einsum("be,bce->bc", target, context)."""
    if not operands:
        raise ValueError(f"einsum: {subscripts!r} names {subscripts.count(',') + 1} operands, 0 were given")
    return record(linalg.Einsum, *map(_tensor, operands), subscripts=subscripts)


def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    """x Wᵀ + b. x (..., n), weight (m, n), bias (m,) → (..., m)."""
    out = record(linalg.MatMul, x, weight.T)
    return out if bias is None else out + bias


# Activations ----------------------------------------------------------------------------------------


def sigmoid(x: Any) -> Tensor:
    """1 / (1 + e^−x)."""
    return record(activation.Sigmoid, x)


def logsigmoid(x: Any) -> Tensor:
    """log(1 / (1 + e^−x)), exact also where the sigmoid rounds to 0: −20 at x = −20."""
    return record(activation.LogSigmoid, x)


def relu(x: Any) -> Tensor:
    """max(x, 0), with derivative 0 at 0."""
    return record(activation.Relu, x)


def softplus(x: Any) -> Tensor:
    """log(1 + e^x), without overflow."""
    return record(activation.Softplus, x)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """e^x / Σ e^x along an axis."""
    return record(activation.Softmax, x, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """x − log Σ e^x along an axis."""
    return record(activation.LogSoftmax, x, axis=axis)


# Losses ---------------------------------------------------------------------------------------------


def mse_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """(x − target)². reduction: "mean" over all entries, "sum", or "none"."""
    x = _tensor(x)
    target = target if isinstance(target, Tensor) else _beside(target, x)
    if x.shape != getattr(target, "shape", x.shape):
        raise ValueError(f"mse_loss: values {x.shape} and targets {target.shape} differ")
    error = x - target
    return _reduced(error * error, reduction)


def cross_entropy(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """−log softmax(x)[target]. x (N, C) logits, target (N,) class numbers.

    More axes go behind: x (N, C, ...), target (N, ...). reduction: "mean" over all targets, "sum", "none".
    Raises IndexError for a target outside 0 … C−1.
    """
    x = _tensor(x)
    target = _constant(target, x)
    if x.ndim < 2 or target.shape != x.shape[:1] + x.shape[2:] or target.dtype.kind not in "iu":
        raise ValueError(
            f"cross_entropy: logits (N, C, ...) need integer targets (N, ...); got {x.shape} and "
            f"{target.dtype} {target.shape}"
        )
    if target.size:
        with x.device.active():  # reductions run on the current device
            low, high = int(target.min()), int(target.max())
        if low < 0 or high >= x.shape[1]:
            raise IndexError(
                f"cross_entropy: targets run from {low} to {high}, the logits have classes 0 to {x.shape[1] - 1}"
            )
    picked = take_along_axis(log_softmax(x, axis=1), target[:, None], axis=1)
    return _reduced(-picked.squeeze(axis=1), reduction)


def binary_cross_entropy_with_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """−[p t log σ(x) + (1 − t) log σ(−x)] · weight for targets t, p = pos_weight or 1.

    target: x's shape, or one number for all; weight and pos_weight: shapes that broadcast to x's. Constants.

    An entry of weight 0 (a masked one) counts 0 and sends no gradient, also where x is NaN or infinite.
    reduction: "mean" over all entries (weight 0 included), "sum", or "none".
    """
    x = _tensor(x)
    t, w = _beside(target, x), 1.0 if weight is None else _beside(weight, x)
    if is_array(t) and t.shape != x.shape:
        raise ValueError(f"binary_cross_entropy_with_logits: logits {x.shape} and targets {t.shape} differ")
    if pos_weight is not None:
        # p t log(1 + e^−x) + (1 − t) log(1 + e^x) is the loss of weight p t + 1 − t and target p t / weight
        if is_array(w):
            t = array_module(x.data).where(w == 0, 0, t)  # a masked target may be NaN
        positive = _beside(_constant(pos_weight, x), x) * t
        both = positive + (1 - t)
        w, t = both * w, positive / array_module(both).where(both == 0, 1, both)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(_REDUCTIONS.format(reduction))
    scale = {"mean": 1 / (x.size or 1), "sum": 1.0, "none": None}[reduction]
    return record(losses.LogisticLoss, x, target=t, weight=w, scale=scale)


# Arguments ------------------------------------------------------------------------------------------


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(_REDUCTIONS.format(reduction))


_REDUCTIONS = "reduction is 'mean', 'sum' or 'none', not {!r}"


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)


def _constant(value: Any, *beside: Any) -> Any:
    """The array of what takes part as a constant; numbers and lists go where the Tensors beside it are."""
    if isinstance(value, Tensor):
        if value.requires_grad and is_grad_enabled():
            raise RuntimeError("targets, weights and conditions are constants here: pass x.detach() if that is meant")
        value = copied(value.data)  # the derivative reads it, and its Tensor may be written to meanwhile
    if is_array(value):
        apart = [x.device for x in beside if isinstance(x, Tensor) and x.device != device_of(value)]
        if apart:
            raise RuntimeError(
                f"values are on {apart[0]}, the constants beside them on {device_of(value)}: "
                "bring them together with Tensor(constant).to(device)"
            )
        return value
    array = np.asarray(value)
    array = array if array.size else array.astype(np.intp)  # an empty list is one of indices
    for x in beside:
        if isinstance(x, Tensor):
            return to_device(array, x.device)
    return array


def _beside(value: Any, x: Tensor) -> Any:
    """A constant of a loss: a Python number as it is, else an array, of x's dtype so that it widens no float."""
    if type(value) in NUMBERS:
        return value
    array = _constant(value, x)
    return array.astype(x.dtype, copy=False) if x.dtype.kind == "f" else array


def _array_first(x: Any, y: Any) -> tuple[Any, Any]:
    return (y, x) if type(x) in NUMBERS else (x, y)


def _some(xs: Sequence[Any], name: str) -> Sequence[Any]:
    if not len(xs):
        raise ValueError(f"{name} needs at least one Tensor")
    return xs
