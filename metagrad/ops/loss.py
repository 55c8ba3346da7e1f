"""Losses that would take several passes over the scores as compositions, as one rule each."""

from __future__ import annotations

import numpy as np

from ..cuda import array_module
from ..function import Function
from .reduction import widened


class LogisticLoss(Function):
    """w (softplus(x) − t x): binary cross-entropy from logits x; its sum times `scale`, or entry by entry (None).

    For t = 1 that is w log(1 + e^−x), for t = 0 it is w log(1 + e^x).  dx = w (σ(x) − t), with
    σ(x) = ½ + ½ tanh(x/2). t and w are constants: numbers, or arrays that broadcast to x's shape.
    An entry of weight 0 counts 0 and sends no gradient, also where x is not finite.
    """

    saves_inputs = True

    def forward(self, x, target, weight, scale):
        self.target, self.weight, self.scale = target, weight, 1.0 if scale is None else scale
        self.masked = None
        xp = array_module(x)
        with np.errstate(invalid="ignore"):  # ∞ − ∞ and 0 ∞, which are masked, or stay NaN for all to see
            loss = self._terms(xp, x, target)
            loss *= weight
        total = widened(loss).sum()
        if not bool(xp.isfinite(total)):  # looked for after the fact: a NaN is rare
            self.masked = xp.asarray(weight) == 0
            loss = xp.where(self.masked, 0, loss)
            total = widened(loss).sum()
        return loss if scale is None else (total * scale).astype(loss.dtype)

    def _terms(self, xp, x, target):
        # softplus(x) = max(x, 0) + log(1 + e^−|x|). t x is subtracted from the first term: that is exactly 0
        # for a sure and right answer, so that its small loss is not rounded away.
        loss = xp.log1p(xp.exp(-abs(x)))
        if isinstance(target, int | float) and target in (0, 1):
            loss += xp.maximum(x if target == 0 else -x, 0)
        else:
            loss += xp.maximum(x, 0) - target * x
        return loss

    def backward(self, grad, x):
        xp = array_module(grad)
        dx = xp.tanh(x * 0.5) + (1 - 2 * self.target)  # twice σ(x) − t
        dx = dx * (self.weight * (grad * (self.scale * 0.5)))
        return dx if self.masked is None else xp.where(self.masked, 0, dx)
