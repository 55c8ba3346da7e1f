"""Hooks of a module: functions called before and after its forward, and when the gradients of its outputs are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor


class Hooks:
    """The hooks of one module."""

    def __init__(self) -> None:
        self.before: list[Callable] = []
        self.after: list[Callable] = []
        self.backward: list[Callable] = []

    def call(self, module: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What forward returns, with the hooks around it."""
        for hook in tuple(self.before):
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        output = module.forward(*args, **kwargs)
        for hook in tuple(self.after):
            changed = hook(module, args, output)
            output = output if changed is None else changed
        for tensor in tensors_in(output) if self.backward else ():
            if tensor.requires_grad:
                for hook in tuple(self.backward):
                    tensor.register_hook(lambda gradient, hook=hook: hook(module, gradient))
        return output


def tensors_in(output: Any) -> list[Tensor]:
    """The Tensors in what a module returned: itself, or those in tuples, lists and dicts."""
    if isinstance(output, Tensor):
        return [output]
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, list | tuple) else ()
    return [tensor for part in parts for tensor in tensors_in(part)]
