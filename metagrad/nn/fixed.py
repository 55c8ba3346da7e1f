"""Modules that are a function of `functional` with its options fixed: activations and losses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from .module import Module


class Fixed(Module):
    """LeakyReLU(0.2)(x) is F.leaky_relu(x, 0.2), HuberLoss(delta=2.0)(x, target) is F.huber_loss(x, target, delta=2.0).

    The options are the function's own, in its order. Raises TypeError for one that it does not have.
    Such a class is made by `class ReLU(Fixed, function=F.relu)`, and documented as its function is.
    """

    function: Callable[..., Tensor]

    def __init_subclass__(cls, function: Callable[..., Tensor], **others: Any) -> None:
        super().__init_subclass__(**others)
        cls.function = staticmethod(function)
        cls.__doc__ = function.__doc__

    def __init__(self, *values: Any, **options: Any) -> None:
        parameters = inspect.signature(self.function).parameters.values()
        known = [p.name for p in parameters if p.default is not p.empty]
        unknown = [name for name in options if name not in known]
        if unknown or len(values) > len(known):
            what = f"no option {unknown[0]!r}" if unknown else f"no {len(values)} options"
            raise TypeError(f"{type(self).__name__} has {what}; it has {', '.join(known) or 'none'}")
        self.options = {**dict(zip(known, values)), **options}

    def forward(self, *inputs: Any) -> Tensor:
        return self.function(*inputs, **self.options)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())
