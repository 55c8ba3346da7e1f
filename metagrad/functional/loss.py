"""Losses, by PyTorch's names and definitions.

reduction: "mean" over all entries (over their weights, where the loss has class weights), "sum", or "none".
Targets and weights are constants; Tensors of values and predictions that are compared both get gradients.
"""

from __future__ import annotations

from typing import Any

from ..cuda import Array, array_module, is_array
from ..ops.indexing import all_below
from ..ops.loss import BinaryCrossEntropy, CrossEntropy, LogisticLoss
from ..tensor import Tensor, record
from .activation import log_softmax, relu
from .arguments import as_tensor, constant, constant_like
from .arithmetic import abs, clip, maximum, where
from .indexing import take_along_axis
from .reduction import norm


def mse_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """(x − target)²."""
    error = _error("mse_loss", x, target)
    return _reduced(error * error, reduction)


def l1_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """|x − target|; gradient 0 where they are equal."""
    return _reduced(abs(_error("l1_loss", x, target)), reduction)


def huber_loss(x: Any, target: Any, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """e²/2 for an error e = x − target within ±delta, delta (|e| − delta/2) beyond."""
    if not delta > 0:
        raise ValueError(f"huber_loss: delta is above 0, not {delta}")
    error = _error("huber_loss", x, target)
    within = clip(error, -delta, delta)
    return _reduced(within * (error - within * 0.5), reduction)


def cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """−w[t] log softmax(x)[t]. x (N, C) logits, target t (N,) class numbers, or (N, C) probabilities of classes.

    More axes go behind: x (N, C, ...), target (N, ...) or (N, C, ...).
    weight (C,): of each class. Where a target is ignore_index, it counts 0 and sends no gradient.
    label_smoothing s: the target is (1 − s) of what it is and s/C of every class.
    The mean divides by the weights of the targets' classes, or by N for probabilities.
    Raises IndexError for a class number outside 0 … C−1.
    """
    x = as_tensor(x)
    target = constant(target, x)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing is from 0 to 1, not {label_smoothing}")
    if x.ndim > 1 and target.shape == x.shape and target.dtype.kind == "f":
        losses = _soft_cross_entropy(x, target.astype(x.dtype, copy=False), weight, label_smoothing)
        return _reduced(losses, reduction)
    target, weights = _targets("cross_entropy", x, target, weight, ignore_index)
    scale = _scale(reduction, target, weights)
    if not label_smoothing:
        return record(CrossEntropy, x, target=target, weight=weights, scale=scale)
    if is_array(weights):
        x = where((weights != 0)[:, None], x, 0.0)  # what is ignored may be NaN
    classes = array_module(target).arange(x.shape[1]).reshape((-1,) + (1,) * (x.ndim - 2))
    losses = _soft_cross_entropy(x, (target[:, None] == classes).astype(x.dtype), weight, label_smoothing)
    losses = where(weights != 0, losses, 0.0) if is_array(weights) else losses
    return losses if scale is None else losses.sum() * scale


def nll_loss(x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """−w[t] x[t] for log-probabilities x (N, C, ...): what cross_entropy is of log_softmax(x). Arguments as there."""
    x = as_tensor(x)
    target, weights = _targets("nll_loss", x, constant(target, x), weight, ignore_index)
    losses = -take_along_axis(x, target[:, None], axis=1).squeeze(axis=1) * weights
    losses = where(weights != 0, losses, 0.0) if is_array(weights) else losses
    scale = _scale(reduction, target, weights)
    return losses if scale is None else losses.sum() * scale


def binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """−[t log x + (1 − t) log(1 − x)] · weight for probabilities x and targets t; logarithms are at least −100.

    Rather from logits: binary_cross_entropy_with_logits rounds nothing away. Raises ValueError for x outside [0, 1].
    """
    x = as_tensor(x)
    t = constant_like(target, x)
    _check_alike("binary_cross_entropy", x, t)
    with x.device.active():
        if x.size and not (bool((x.data >= 0).all()) and bool((x.data <= 1).all())):
            raise ValueError(
                "binary_cross_entropy: values are probabilities from 0 to 1; "
                "logits are for binary_cross_entropy_with_logits"
            )
    losses = record(BinaryCrossEntropy, x, target=t)
    return _reduced(losses if weight is None else losses * constant_like(weight, x), reduction)


def binary_cross_entropy_with_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """−[p t log σ(x) + (1 − t) log σ(−x)] · weight for targets t, p = pos_weight or 1.

    target: x's shape, or one number for all; weight and pos_weight: shapes that broadcast to x's. Constants.

    An entry of weight 0 (a masked one) counts 0 and sends no gradient, also where x is NaN or infinite.
    """
    x = as_tensor(x)
    t, w = constant_like(target, x), 1.0 if weight is None else constant_like(weight, x)
    _check_alike("binary_cross_entropy_with_logits", x, t)
    if pos_weight is not None:
        # p t log(1 + e^−x) + (1 − t) log(1 + e^x) is the loss of weight p t + 1 − t and target p t / weight
        if is_array(w):
            t = array_module(x.data).where(w == 0, 0, t)  # a masked target may be NaN
        positive = constant_like(constant(pos_weight, x), x) * t
        both = positive + (1 - t)
        w, t = both * w, positive / array_module(both).where(both == 0, 1, both)
    return record(LogisticLoss, x, target=t, weight=w, scale=_scale(reduction, x))


def kl_div(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """t (log t − x) for log-probabilities x and probabilities t, 0 where t is 0.

    The divergence of whole distributions is "sum", divided by their number; "mean" divides by all entries.
    """
    x = as_tensor(x)
    t = constant_like(target, x)
    _check_alike("kl_div", x, t)
    xp = array_module(x.data)
    with x.device.active():
        entropy = xp.where(t > 0, t * xp.log(xp.where(t > 0, t, 1)), 0).astype(x.dtype)
    return _reduced(entropy - x * t, reduction)


def hinge_embedding_loss(x: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The distance x where the target is 1, max(0, margin − x) where it is −1."""
    x = as_tensor(x)
    return _reduced(where(_alike("hinge_embedding_loss", x, target), x, relu(margin - x)), reduction)


def cosine_similarity(x: Any, y: Any, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """x·y / (max(|x|, eps) max(|y|, eps)) along an axis."""
    x, y = as_tensor(x), as_tensor(y)
    lengths = maximum(norm(x, axis=axis), eps) * maximum(norm(y, axis=axis), eps)
    return (x * y).sum(axis=axis) / lengths


def cosine_embedding_loss(x: Any, y: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """1 − cos(x, y) where the target is 1, max(0, cos(x, y) − margin) where it is −1. x, y (N, d), target (N,)."""
    cosine = cosine_similarity(x, y)
    alike = _alike("cosine_embedding_loss", cosine, target)
    return _reduced(where(alike, 1 - cosine, relu(cosine - margin)), reduction)


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """max(0, |anchor − positive + eps| − |anchor − negative + eps| + margin). All (N, d)."""
    anchor = as_tensor(anchor)
    near, far = (norm(anchor - other + eps, axis=-1) for other in (positive, negative))
    return _reduced(relu(near - far + margin), reduction)


def _soft_cross_entropy(x: Tensor, target: Array, weight: Any, smoothing: float) -> Tensor:
    """−Σ_c w_c q_c log softmax(x)_c for probabilities q, smoothed. x, target (N, C, ...) → (N, ...)."""
    q = target * (1 - smoothing) + smoothing / x.shape[1]
    if weight is not None:
        q = q * _class_weights("cross_entropy", weight, x).reshape((-1,) + (1,) * (x.ndim - 2))
    return -(log_softmax(x, axis=1) * q).sum(axis=1)


def _targets(name: str, x: Tensor, target: Array, weight: Any, ignore_index: int) -> tuple[Array, Any]:
    """Class numbers that all exist, and the weight of each: a number, or an array with 0 where one is ignored."""
    if x.ndim < 2 or target.shape != x.shape[:1] + x.shape[2:] or target.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: values (N, C, ...) need integer targets (N, ...); got {x.shape} and {target.dtype} {target.shape}"
        )
    classes = x.shape[1]
    weights = None if weight is None else _class_weights(name, weight, x)
    with x.device.active():  # reductions run on the current device
        if not 0 <= ignore_index < classes and all_below(target, classes):
            return target, 1.0 if weights is None else weights[target]
        real = target != ignore_index
        bad = real & ((target < 0) | (target >= classes))
        if bool(bad.any()):
            place = tuple(int(axis[0]) for axis in bad.nonzero())
            raise IndexError(
                f"{name}: target {int(target[place])} at {place} is not one of the classes 0 to {classes - 1}"
            )
        target = array_module(target).where(real, target, 0)
        return target, real.astype(x.dtype) if weights is None else weights[target] * real


def _class_weights(name: str, weight: Any, x: Tensor) -> Array:
    weights = constant(weight, x).astype(x.dtype, copy=False)
    if weights.shape != x.shape[1:2]:
        raise ValueError(f"{name}: one weight for each of {x.shape[1]} classes, not weights of shape {weights.shape}")
    return weights


def _alike(name: str, x: Tensor, target: Any) -> Array:
    """Where pairs belong together: targets 1 as True, −1 as False."""
    target = constant(target, x)
    _check_alike(name, x, target)
    with x.device.active():
        if not bool((target * target == 1).all()):
            raise ValueError(f"{name}: targets are 1 or −1")
    return target > 0


def _error(name: str, x: Any, target: Any) -> Tensor:
    """x − target, of the same shape."""
    x = as_tensor(x)
    target = target if isinstance(target, Tensor) else constant_like(target, x)
    _check_alike(name, x, target)
    return x - target


def _check_alike(name: str, x: Tensor, target: Any) -> None:
    """One number is for all values; an array of targets has their shape."""
    if x.shape != getattr(target, "shape", x.shape):
        raise ValueError(f"{name}: values {x.shape} and targets {target.shape} differ")


def _scale(reduction: str, values: Any, weights: Any = None) -> float | None:
    """What a sum of losses is multiplied with: one over the number of values, or over their weights; None for none."""
    if reduction == "mean":
        return 1 / ((float(weights.sum()) if is_array(weights) else values.size) or 1)
    if reduction not in ("sum", "none"):
        raise ValueError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    return 1.0 if reduction == "sum" else None


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    scale = _scale(reduction, losses)
    return losses if scale is None else losses.mean() if reduction == "mean" else losses.sum()
