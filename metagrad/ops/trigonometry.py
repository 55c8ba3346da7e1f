"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from ..cuda import array_module
from ..function import Function


class Sin(Function):
    """sin x."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).sin(x)

    def backward(self, grad, x):
        return grad * array_module(grad).cos(x)


class Cos(Function):
    """cos x;  dy/dx = −sin x."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).cos(x)

    def backward(self, grad, x):
        return -grad * array_module(grad).sin(x)


class Tan(Function):
    """tan x;  dy/dx = 1 + y²."""

    saves_output = True

    def forward(self, x):
        return array_module(x).tan(x)

    def backward(self, grad, y):
        return grad + grad * y * y


class Arcsin(Function):
    """arcsin x;  dy/dx = 1/√(1 − x²)."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).arcsin(x)

    def backward(self, grad, x):
        return grad * ((1 - x) * (1 + x)) ** -0.5


class Arccos(Function):
    """arccos x;  dy/dx = −1/√(1 − x²)."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).arccos(x)

    def backward(self, grad, x):
        return -grad * ((1 - x) * (1 + x)) ** -0.5


class Arctan(Function):
    """arctan x;  dy/dx = 1/(1 + x²)."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).arctan(x)

    def backward(self, grad, x):
        return grad / (x * x + 1)


class Arctan2(Function):
    """The angle of the point (x, y);  ∂/∂y = x/(x² + y²), ∂/∂x = −y/(x² + y²), and 0 at the origin."""

    saves_inputs = True

    def forward(self, y, x):
        return array_module(y).arctan2(y, x)

    def backward(self, grad, y, x):
        square = x * x + y * y
        part = grad / array_module(grad).where(square == 0, 1, square)
        return part * x, -part * y


class Hypot(Function):
    """h = √(x² + y²), without overflow;  ∂/∂x = x/h, ∂/∂y = y/h, and 0 at 0."""

    saves_inputs = True
    saves_output = True

    def forward(self, x, y):
        return array_module(x).hypot(x, y)

    def backward(self, grad, x, y, h):
        part = grad / array_module(grad).where(h == 0, 1, h)
        return part * x, part * y


class Sinh(Function):
    """sinh x."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).sinh(x)

    def backward(self, grad, x):
        return grad * array_module(grad).cosh(x)


class Cosh(Function):
    """cosh x."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).cosh(x)

    def backward(self, grad, x):
        return grad * array_module(grad).sinh(x)


class Arcsinh(Function):
    """arcsinh x;  dy/dx = 1/√(x² + 1)."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).arcsinh(x)

    def backward(self, grad, x):
        return grad / array_module(grad).hypot(x, 1)


class Arccosh(Function):
    """arccosh x;  dy/dx = 1/√(x² − 1)."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).arccosh(x)

    def backward(self, grad, x):
        return grad * ((x - 1) * (x + 1)) ** -0.5


class Arctanh(Function):
    """arctanh x;  dy/dx = 1/(1 − x²)."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).arctanh(x)

    def backward(self, grad, x):
        return grad / ((1 - x) * (1 + x))
