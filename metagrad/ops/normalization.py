"""Normalisation of layers and batches."""

from __future__ import annotations

from ..function import Function
from .reduction import widened


class Normalize(Function):
    """y = (x − mean x) / √(var x + ε) over some axes;  dx = (dy − mean dy − y mean(y dy)) / √(var x + ε).

    One rule for layer and batch normalisation: a composition takes a dozen passes forward and twice as many back.
    """

    saves_inputs = True
    saves_output = True

    def forward(self, x, axes, eps):
        self.axes, self.eps = axes, eps
        wide = widened(x)
        y = wide - wide.mean(axis=axes, keepdims=True)
        y *= self._scale(y)
        return y.astype(x.dtype, copy=False)

    def _scale(self, centred):
        """1 / √(var + ε) of entries whose mean is 0."""
        return ((centred * centred).mean(axis=self.axes, keepdims=True) + self.eps) ** -0.5

    def backward(self, grad, x, y):
        def mean(array):
            return array.mean(axis=self.axes, keepdims=True)

        scale = self._scale(x - mean(x))
        return (grad - mean(grad) - y * mean(grad * y)) * scale
