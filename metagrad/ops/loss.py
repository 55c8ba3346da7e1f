"""Losses that would take several passes over the scores as compositions, as one rule each."""

from __future__ import annotations

import numpy as np

from ..cuda import array_module
from ..function import Function
from .activation import Softmax
from .indexing import places_along
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


class CrossEntropy(Function):
    """w (log Σ_c e^x_c − x_t) along axis 1 for targets t; its sum times `scale`, or one by one (None).

    dx = w (softmax(x) − 1 at t).  target (N, ...): class numbers; weight: a number, or (N, ...). Constants.
    A target of weight 0 counts 0 and sends no gradient, also where x is not finite.
    """

    saves_inputs = True

    def forward(self, x, target, weight, scale):
        self.weight, self.scale = weight, 1.0 if scale is None else scale
        self.places = places_along(target[:, None], 1, x.shape)
        self.masked = None
        xp, wide = array_module(x), widened(x)
        with np.errstate(invalid="ignore"):  # ∞ − ∞ is masked, or stays NaN for all to see
            shifted = wide - wide.max(axis=1, keepdims=True)
            loss = (xp.log(xp.exp(shifted).sum(axis=1)) - shifted[self.places][:, 0]) * weight
        total = loss.sum()
        if getattr(weight, "ndim", 0) and not bool(xp.isfinite(total)):
            self.masked = weight == 0
            loss = xp.where(self.masked, 0, loss)
            total = loss.sum()
        return (loss if scale is None else total * scale).astype(x.dtype)

    def backward(self, grad, x):
        g = grad * self.scale * self.weight
        if g.ndim:
            g = g[:, None]
        dx = Softmax.apply(x, axis=1) * g
        dx[self.places] -= g
        return dx if self.masked is None else array_module(grad).where(self.masked[:, None], 0, dx)


class BinaryCrossEntropy(Function):
    """−t log x − (1 − t) log(1 − x) for probabilities x;  dx = (x − t) / (x (1 − x)).

    Each logarithm is at least −100 and the divisor at least 10⁻¹², so that a sure and wrong answer costs 100, as in
    PyTorch; composed, its gradient would be ∞ · 0.
    """

    saves_inputs = True

    def forward(self, x, target):
        self.target = target
        xp = array_module(x)
        with np.errstate(divide="ignore"):
            return -(target * xp.maximum(xp.log(x), -100) + (1 - target) * xp.maximum(xp.log1p(-x), -100))

    def backward(self, grad, x):
        return grad * (x - self.target) / array_module(grad).maximum(x * (1 - x), 1e-12)
