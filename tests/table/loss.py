"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from metagrad import functional as F

from .activation import softmax
from .samples import Op, Sample, with_constants

LABELS = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
MASK = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 1.0]])


REDUCE = {"mean": np.mean, "sum": np.sum, "none": np.asarray}


def _nll(logs: np.ndarray, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> np.ndarray:
    """One prediction after the other."""
    target = np.asarray(target)
    losses, weights = np.zeros(target.shape), np.zeros(target.shape)
    for place in np.ndindex(target.shape):
        t = target[place]
        if t != ignore_index:
            weights[place] = 1.0 if weight is None else weight[t]
            losses[place] = -weights[place] * logs[(place[0], t) + place[1:]]
    return losses.sum() / (weights.sum() or 1) if reduction == "mean" else REDUCE[reduction](losses)


def _cross_entropy(x, target, label_smoothing=0.0, weight=None, ignore_index=-100, reduction="mean"):
    logs, target, classes = np.log(softmax(x, axis=1)), np.asarray(target), x.shape[1]
    w = np.reshape(np.ones(classes) if weight is None else weight, (-1,) + (1,) * (x.ndim - 2))
    spread = -(logs * w).sum(axis=1) * label_smoothing / classes
    if target.dtype.kind == "f":
        return REDUCE[reduction](-(logs * w * target).sum(axis=1) * (1 - label_smoothing) + spread)
    losses = _nll(logs, target, weight, ignore_index, "none") * (1 - label_smoothing) + np.where(target == ignore_index, 0, spread)
    if reduction != "mean":
        return REDUCE[reduction](losses)
    real = target != ignore_index
    return losses.sum() / ((np.ones(classes) if weight is None else weight)[np.where(real, target, 0)] * real).sum()


def _bce(x, target, weight=1.0, pos_weight=1.0, reduction="mean"):
    target, p = np.asarray(target), 1 / (1 + np.exp(-x))
    losses = -(pos_weight * target * np.log(p) + (1 - target) * np.log(1 - p)) * weight
    return REDUCE[reduction](losses)


def _bce_samples() -> list[Sample]:
    options = [{}, {"reduction": "sum"}, {"reduction": "none"}, {"weight": MASK}, {"pos_weight": 2.5}, {"weight": MASK, "pos_weight": 0.5}]
    return [Sample(((2, 3),), {"target": LABELS, **option}) for option in options]


CLASS_WEIGHTS = np.array([0.5, 2.0, 1.5])
WIDE = np.array([[2, 0], [1, 1]])  # targets of values (2, 3, 2)


def _class_samples() -> list[Sample]:
    options = [{}, {"weight": CLASS_WEIGHTS}, {"ignore_index": 1}, {"weight": CLASS_WEIGHTS, "ignore_index": 0}]
    plain = [Sample(((2, 3),), {"target": np.array([2, 0]), "reduction": r}) for r in REDUCE]
    return plain + [Sample(((2, 3, 2),), {"target": WIDE, "reduction": r, **o}) for o in options for r in REDUCE]


def _cross_entropy_samples() -> list[Sample]:
    smoothed = [Sample(s.shapes, {**s.constants, "label_smoothing": 0.3}) for s in _class_samples()]
    shares = {"target": np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])}
    soft = [Sample(((2, 3),), {**shares, "reduction": r, **o}) for r in REDUCE for o in ({}, {"weight": CLASS_WEIGHTS, "label_smoothing": 0.3})]
    return _class_samples() + smoothed + soft


def _cosine(x, y, axis=-1):
    return (x * y).sum(axis) / np.sqrt((x**2).sum(axis) * (y**2).sum(axis))


def _huber(x, y, delta, reduction):
    error = np.abs(x - y)
    return REDUCE[reduction](np.where(error < delta, error**2 / 2, delta * (error - delta / 2)))


def _triplet(anchor, positive, negative, margin=1.0, reduction="mean"):
    near, far = (np.sqrt(((anchor - other + 1e-6) ** 2).sum(-1)) for other in (positive, negative))
    return REDUCE[reduction](np.maximum(near - far + margin, 0))


SIGNS = np.array([[1, -1, 1], [-1, 1, -1]])
SHARES = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
BOTH = ((2, 3), (2, 3))


LOSS = [
    Op("mse_loss", F.mse_loss, lambda x, y, reduction: REDUCE[reduction]((x - y) ** 2), [Sample(BOTH, {"reduction": r}) for r in REDUCE]),
    Op("l1_loss", F.l1_loss, lambda x, y, reduction: REDUCE[reduction](np.abs(x - y)), [Sample(BOTH, {"reduction": r}) for r in REDUCE]),
    Op("huber_loss", F.huber_loss, _huber, [Sample(BOTH, {"delta": d, "reduction": r}) for d, r in ((0.7, "mean"), (0.2, "sum"), (5.0, "none"))]),
    Op("nll_loss", with_constants(F.nll_loss), _nll, _class_samples()),
    Op("cross_entropy", with_constants(F.cross_entropy), _cross_entropy, _cross_entropy_samples()),
    Op("binary_cross_entropy_with_logits of one target", F.binary_cross_entropy_with_logits,
       lambda x, target, reduction: _bce(x, np.full(x.shape, target), reduction=reduction),
       [Sample(((2, 3),), {"target": t, "reduction": r}) for t in (0, 1) for r in ("mean", "none")]),
    Op("binary_cross_entropy_with_logits", with_constants(F.binary_cross_entropy_with_logits), _bce, _bce_samples()),
    Op("binary_cross_entropy", with_constants(lambda x, **options: F.binary_cross_entropy(F.sigmoid(x), **options)), _bce,
       [s for s in _bce_samples() if "pos_weight" not in s.constants]),
    Op("kl_div", with_constants(F.kl_div),
       lambda x, target, reduction: REDUCE[reduction](target * (np.log(np.where(target, target, 1)) - x)),
       [Sample(((2, 3),), {"target": SHARES, "reduction": r}) for r in REDUCE]),
    Op("hinge_embedding_loss", with_constants(F.hinge_embedding_loss),
       lambda x, target, margin=1.0, reduction="mean": REDUCE[reduction](np.where(target > 0, x, np.maximum(margin - x, 0))),
       [Sample(((2, 3),), {"target": SIGNS, **o}) for o in ({}, {"margin": 0.2, "reduction": "none"}, {"reduction": "sum"})]),
    Op("cosine_similarity", F.cosine_similarity, _cosine,
       [Sample(BOTH), Sample(BOTH, {"axis": 0}), Sample(((2, 3), (3,))), Sample(((3,), (3,))), Sample(((0, 3), (0, 3)))]),
    Op("cosine_embedding_loss", with_constants(F.cosine_embedding_loss),
       lambda x, y, target, margin=0.0, reduction="mean": REDUCE[reduction](np.where(target > 0, 1 - _cosine(x, y), np.maximum(_cosine(x, y) - margin, 0))),
       [Sample(BOTH, {"target": np.array([1, -1]), **o}) for o in ({}, {"margin": -0.5, "reduction": "none"}, {"reduction": "sum"})]),
    Op("triplet_margin_loss", F.triplet_margin_loss, _triplet,
       [Sample(BOTH + ((2, 3),), o) for o in ({}, {"margin": 3.0, "reduction": "none"}, {"reduction": "sum"})]),
    Op("dropout", F.dropout, lambda x, p, training=True: x * (p == 0 or not training),
       [Sample(((2, 3),), o) for o in ({"p": 0.0}, {"p": 1.0}, {"p": 0.5, "training": False})]),
]  # fmt: skip
