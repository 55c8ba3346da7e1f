"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from metagrad import functional as F

from .activation import softmax
from .samples import Op, Sample, with_constants

LABELS = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
MASK = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 1.0]])


def _cross_entropy(x: np.ndarray, target: Any, reduction: str = "mean") -> np.ndarray:
    logs = np.log(softmax(x, axis=1))
    losses = -np.take_along_axis(logs, np.asarray(target)[:, None], axis=1)[:, 0]
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](losses)


def _bce(x, target, weight=1.0, pos_weight=1.0, reduction="mean"):
    target, p = np.asarray(target), 1 / (1 + np.exp(-x))
    losses = -(pos_weight * target * np.log(p) + (1 - target) * np.log(1 - p)) * weight
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](losses)


def _bce_samples() -> list[Sample]:
    options = [{}, {"reduction": "sum"}, {"reduction": "none"}, {"weight": MASK}, {"pos_weight": 2.5}, {"weight": MASK, "pos_weight": 0.5}]
    return [Sample(((2, 3),), {"target": LABELS, **option}) for option in options]


def _cross_entropy_samples() -> list[Sample]:
    plain = [Sample(((2, 3),), {"target": np.array([2, 0]), "reduction": r}) for r in ("mean", "sum", "none")]
    return [*plain, Sample(((2, 3, 2),), {"target": np.array([[2, 0], [1, 1]]), "reduction": "mean"})]


LOSS = [
    Op("mse_loss", F.mse_loss, lambda x, y, reduction: {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction]((x - y) ** 2),
       [Sample(((2, 3), (2, 3)), {"reduction": r}) for r in ("mean", "sum", "none")]),
    Op("cross_entropy", with_constants(F.cross_entropy), _cross_entropy, _cross_entropy_samples()),
    Op("binary_cross_entropy_with_logits of one target", F.binary_cross_entropy_with_logits,
       lambda x, target, reduction: _bce(x, np.full(x.shape, target), reduction=reduction),
       [Sample(((2, 3),), {"target": t, "reduction": r}) for t in (0, 1) for r in ("mean", "none")]),
    Op("binary_cross_entropy_with_logits", with_constants(F.binary_cross_entropy_with_logits), _bce, _bce_samples()),
]  # fmt: skip
