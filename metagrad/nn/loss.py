"""Losses as modules: functions of `functional` with their options fixed."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ..tensor import Tensor
from .module import Module


class MSELoss(Module):
    """The mean of (x − target)²; see F.mse_loss."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Any, target: Any) -> Tensor:
        return F.mse_loss(x, target, self.reduction)


class CrossEntropyLoss(Module):
    """−log softmax(x)[target]; see F.cross_entropy."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Any, target: Any) -> Tensor:
        return F.cross_entropy(x, target, self.reduction)


class BCEWithLogitsLoss(Module):
    """Binary cross-entropy of σ(x); see F.binary_cross_entropy_with_logits."""

    def __init__(self, weight: Any = None, pos_weight: Any = None, reduction: str = "mean") -> None:
        self.weight = weight
        self.pos_weight = pos_weight
        self.reduction = reduction

    def forward(self, x: Any, target: Any) -> Tensor:
        return F.binary_cross_entropy_with_logits(x, target, self.weight, self.pos_weight, self.reduction)
