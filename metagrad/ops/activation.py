"""Smooth and piecewise nonlinearities, each stable for any finite input."""

from __future__ import annotations

import numpy as np

from ..cuda import array_module
from ..function import Function
from .reduction import widened


class Tanh(Function):
    """tanh x;  dy/dx = 1 − y²."""

    saves_output = True

    def forward(self, x):
        return array_module(x).tanh(x)

    def backward(self, grad, y):
        part = grad * y
        part *= y  # in place where these are arrays: a new one costs half of the operation
        return grad - part


class Sigmoid(Function):
    """σ(x) = 1 / (1 + e^−x);  dy/dx = y (1 − y)."""

    saves_output = True

    def forward(self, x):
        # e^−|x| cannot overflow: σ(x) = 1/(1 + e^−x) for x ≥ 0, e^x/(1 + e^x) for x < 0
        xp = array_module(x)
        e = xp.exp(-abs(x))
        return xp.where(x >= 0, 1, e) / (1 + e)

    def backward(self, grad, y):
        part = grad * y
        return part - part * y


class LogSigmoid(Function):
    """y = log σ(x) = min(x, 0) − log(1 + e^−|x|);  dy/dx = 1 − e^y."""

    saves_output = True

    def forward(self, x):
        xp = array_module(x)
        return xp.minimum(x, 0) - xp.log1p(xp.exp(-abs(x)))

    def backward(self, grad, y):
        return grad * -array_module(grad).expm1(y)


class Softplus(Function):
    """y = log(1 + e^x) = max(x, 0) + log(1 + e^−|x|);  dy/dx = σ(x) = 1 − e^−y."""

    saves_output = True

    def forward(self, x):
        xp = array_module(x)
        return xp.maximum(x, 0) + xp.log1p(xp.exp(-abs(x)))

    def backward(self, grad, y):
        return grad * -array_module(grad).expm1(-y)


class Relu(Function):
    """max(x, 0);  dy/dx is 0 at 0."""

    saves_output = True

    def forward(self, x):
        return array_module(x).maximum(x, 0)

    def backward(self, grad, y):
        return grad * (y > 0)


class Silu(Function):
    """x σ(x) (Elfwing et al. 2017);  dy/dx = σ + x σ (1 − σ). One rule, which saves x alone."""

    saves_inputs = True

    def forward(self, x):
        return x * Sigmoid.apply(x)

    def backward(self, grad, x):
        s = Sigmoid.apply(x)
        return grad * s * (x * (1 - s) + 1)


class Elu(Function):
    """x above 0, α (e^x − 1) below;  dy/dx = 1 above 0, y + α below and at it.

    As a composition with min(x, 0) it would share the gradient of 0 with the constant.
    """

    saves_output = True

    def forward(self, x, alpha):
        xp, self.alpha = array_module(x), alpha
        return xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0)) * alpha)

    def backward(self, grad, y):
        return array_module(grad).where(y > 0, grad, grad * (y + self.alpha))


class Softmax(Function):
    """y_i = e^x_i / Σ_j e^x_j along an axis;  dx = y (dy − Σ_j y_j dy_j)."""

    saves_output = True

    def forward(self, x, axis):
        self.axis = axis
        xp, wide = array_module(x), widened(x)
        e = xp.exp(wide - wide.max(axis=axis, keepdims=True))
        y = e / e.sum(axis=axis, keepdims=True)
        return y if wide is x else y.astype(x.dtype)

    def backward(self, grad, y):
        return y * (grad - (grad * y).sum(axis=self.axis, keepdims=True))


class LogSoftmax(Function):
    """y_i = x_i − log Σ_j e^x_j along an axis;  dx = dy − e^y Σ_j dy_j."""

    saves_output = True

    def forward(self, x, axis):
        self.axis = axis
        xp, wide = array_module(x), widened(x)
        wide = wide - wide.max(axis=axis, keepdims=True)
        y = wide - xp.log(xp.exp(wide).sum(axis=axis, keepdims=True))
        return y.astype(np.float16) if x.dtype == np.float16 else y

    def backward(self, grad, y):
        return grad - array_module(grad).exp(y) * grad.sum(axis=self.axis, keepdims=True)
