"""Losses, by PyTorch's names; reduction: "mean", "sum" or "none"."""

from __future__ import annotations

from typing import Any

from ..cuda import array_module, is_array
from ..ops.loss import LogisticLoss
from ..tensor import Tensor, record
from .activation import log_softmax
from .arguments import as_tensor, constant, constant_like
from .indexing import take_along_axis


def mse_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """(x − target)². reduction: "mean" over all entries, "sum", or "none"."""
    x = as_tensor(x)
    target = target if isinstance(target, Tensor) else constant_like(target, x)
    if x.shape != getattr(target, "shape", x.shape):
        raise ValueError(f"mse_loss: values {x.shape} and targets {target.shape} differ")
    error = x - target
    return _reduced(error * error, reduction)


def cross_entropy(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """−log softmax(x)[target]. x (N, C) logits, target (N,) class numbers.

    More axes go behind: x (N, C, ...), target (N, ...). reduction: "mean" over all targets, "sum", "none".
    Raises IndexError for a target outside 0 … C−1.
    """
    x = as_tensor(x)
    target = constant(target, x)
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
    x = as_tensor(x)
    t, w = constant_like(target, x), 1.0 if weight is None else constant_like(weight, x)
    if is_array(t) and t.shape != x.shape:
        raise ValueError(f"binary_cross_entropy_with_logits: logits {x.shape} and targets {t.shape} differ")
    if pos_weight is not None:
        # p t log(1 + e^−x) + (1 − t) log(1 + e^x) is the loss of weight p t + 1 − t and target p t / weight
        if is_array(w):
            t = array_module(x.data).where(w == 0, 0, t)  # a masked target may be NaN
        positive = constant_like(constant(pos_weight, x), x) * t
        both = positive + (1 - t)
        w, t = both * w, positive / array_module(both).where(both == 0, 1, both)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(_REDUCTIONS.format(reduction))
    scale = {"mean": 1 / (x.size or 1), "sum": 1.0, "none": None}[reduction]
    return record(LogisticLoss, x, target=t, weight=w, scale=scale)


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(_REDUCTIONS.format(reduction))


_REDUCTIONS = "reduction is 'mean', 'sum' or 'none', not {!r}"
