"""Module: a function with parameters. Its attributes are its parts; nothing needs to be registered."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from ..cuda import CPU, Array, Device, copied, get_device, to_device
from ..hooks import Handle
from ..mode import no_grad
from ..rows import Rows
from ..tensor import Tensor
from .hooks import Hooks

Self = TypeVar("Self", bound="Module")
Part = TypeVar("Part", bound="State | Module")


class State(Tensor):
    """A Tensor that belongs to a module: a Parameter or a Buffer. It owns its memory: the array given is copied."""

    __slots__ = ()

    def __init__(self, data: Any, dtype: Any = None) -> None:
        super().__init__(copied(Tensor(data, dtype=dtype).data))

    def use_memory(self, array: Array) -> None:
        """Hold `array` itself from now on, in place of the memory so far: memory shared between processes, say.

        Another shape or dtype makes it another Tensor, whose gradients so far are forgotten.
        """
        needed = self.requires_grad
        self.requires_grad = False
        Tensor.__init__(self, array, requires_grad=needed)

    def move(self, device: Device, dtype: Any = None) -> None:
        """Change device and dtype in place: optimizers and ties that hold this Tensor keep it. Integers stay so."""
        dtype = dtype if self.dtype.kind in "fc" else None
        self.data = _moved(self.data, device, dtype)
        if self.node is not None:
            self.node.dtype = self.data.dtype
            if isinstance(self.grad, Rows):
                index = to_device(self.grad.index, device)
                self.grad = Rows(index, _moved(self.grad.values, device, dtype), self.shape)
            elif self.grad is not None:
                self.grad = Tensor(_moved(self.grad.data, device, dtype))


def _moved(array: Array, device: Device, dtype: Any) -> Array:
    array = to_device(array, device)
    if dtype is None:
        return array
    with device.active():
        return array.astype(dtype, copy=False)


class Parameter(State):
    """What a module learns.

    padding_idx: the row of a lookup table that `nn.init` leaves as it is.
    """

    __slots__ = ("padding_idx",)

    def __init__(
        self, data: Any, dtype: Any = None, requires_grad: bool = True, padding_idx: int | None = None
    ) -> None:
        super().__init__(data, dtype)
        self.requires_grad = requires_grad
        self.padding_idx = padding_idx

    def __reduce__(self) -> tuple:
        return (*super().__reduce__(), (None, {"padding_idx": self.padding_idx}))


class Buffer(State):
    """What a module remembers and does not learn: it is saved and moved, and no optimizer sees it."""

    __slots__ = ()


class Module:
    """The base of all modules: assign parameters and modules as attributes, write `forward`, call the module.

        class Model(nn.Module):
            def __init__(self):
                self.hidden = nn.Linear(4, 8)
                self.out = nn.Linear(8, 1)

            def forward(self, x):
                return self.out(self.hidden(x).tanh())

    Parameters come in the order of assignment. Lists, tuples and dicts of modules and parameters count as
    parts too: the first of `self.layers` is called "layers.0". What a module remembers and does not learn is a Buffer.
    """

    training: bool = True
    hooks: Hooks | None = None  # of the instance, once one is registered

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define forward(self, ...)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs) if self.hooks is None else self.hooks.call(self, args, kwargs)

    def children(self) -> Iterator[tuple[str, State | Module]]:
        """The parameters, buffers and modules that this module holds itself, with their names."""
        for name, value in vars(self).items():
            yield from _parts(name, value)

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module, called "", and all below it, each once, with dotted names."""
        yield "", self
        yield from self._each(Module)

    def modules(self) -> Iterator[Module]:
        return (module for _, module in self.named_modules())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters, each once, with dotted names; one that is held twice (tied) by its first name."""
        return self._each(Parameter)

    def parameters(self) -> Iterator[Parameter]:
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """All buffers, as named_parameters."""
        return self._each(Buffer)

    def buffers(self) -> Iterator[Buffer]:
        return (buffer for _, buffer in self.named_buffers())

    def _each(self, kind: type[Part]) -> Iterator[tuple[str, Part]]:
        """All parts of a kind below this module, each once, by its first name."""
        seen = {id(self)}
        for name, part in self._below("", (self,)):
            if isinstance(part, kind) and id(part) not in seen:
                seen.add(id(part))
                yield name, part

    def _below(self, prefix: str, above: tuple[Module, ...]) -> Iterator[tuple[str, State | Module]]:
        """All parameters, buffers and modules below this one, at every place where they are held.

        above: the modules on the way here; one of them held below itself ends the way.
        """
        for name, part in self.children():
            if isinstance(part, State):
                yield prefix + name, part
            elif part not in above:
                yield prefix + name, part
                yield from part._below(f"{prefix}{name}.", (*above, part))

    def train(self: Self, mode: bool = True) -> Self:
        """Set the training mode of this module and all below it."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: Self) -> Self:
        return self.train(False)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters():
            parameter.grad = None

    def requires_grad_(self: Self, needed: bool = True) -> Self:
        """Freeze (False) or thaw all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad = needed
        return self

    def to(self: Self, device: str | Device | None = None, dtype: Any = None) -> Self:
        """Move all parameters and buffers, in place: an optimizer made before still holds them, and ties survive."""
        if dtype is not None and np.dtype(dtype).kind not in "fc":
            raise TypeError(f"parameters are floats, {np.dtype(dtype)} could not learn")
        target = None if device is None else get_device(device)
        for _, part in self._each(State):
            part.move(target or part.device, dtype)
        return self

    @property
    def device(self) -> Device:
        """The device of the first parameter or buffer; the CPU where there is none."""
        return next((part.device for _, part in self._each(State)), CPU)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copies of the values of all parameters and buffers on the host, by dotted name, a tied one by each."""
        return {name: np.array(part.numpy()) for name, part in self._named().items()}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Copy values into the parameters and buffers, by name.

        Raises, before anything is changed: KeyError for missing or unknown names (unless not strict),
        ValueError for a wrong shape.
        """
        own = self._named()
        missing = [name for name in own if name not in state]
        unknown = [name for name in state if name not in own]
        if strict and (missing or unknown):
            raise KeyError(
                f"load_state_dict: missing {missing or 'nothing'}, unknown {unknown or 'nothing'}; "
                "strict=False loads what fits"
            )
        new = {name: Tensor(state[name]) for name in own if name in state}
        for name, values in new.items():
            if values.shape != own[name].shape:
                raise ValueError(f"load_state_dict: {name} has shape {own[name].shape}, the state gives {values.shape}")
        with no_grad():
            for name, values in new.items():
                own[name].copy_(values.to(own[name].device))

    def _named(self) -> dict[str, State]:
        """Every parameter and buffer by every name."""
        named: dict[str, State] = {}
        for name, part in self._below("", (self,)):
            if isinstance(part, State) and named.setdefault(name, part) is not part:
                raise ValueError(f"two parameters or buffers are both called {name!r}: rename an attribute or a key")
        return named

    def register_forward_pre_hook(self, hook: Callable[[Module, tuple], Any]) -> Handle:
        """Call hook(module, args) before forward; arguments that it returns (several: a tuple) take their place."""
        return Handle(self._own_hooks().before, hook)

    def register_forward_hook(self, hook: Callable[[Module, tuple, Any], Any]) -> Handle:
        """Call hook(module, args, output) after forward; an output that it returns takes the place of that."""
        return Handle(self._own_hooks().after, hook)

    def register_backward_hook(self, hook: Callable[[Module, Any], Any]) -> Handle:
        """Call hook(module, gradient) at backward, for each Tensor that forward returned.

        It is called when that gradient is complete; a gradient that it returns takes its place.
        """
        return Handle(self._own_hooks().backward, hook)

    def _own_hooks(self) -> Hooks:
        self.hooks = self.hooks or Hooks()
        return self.hooks

    def extra_repr(self) -> str:
        """What to print in the parentheses: the arguments that shaped this module."""
        return ""

    @reprlib.recursive_repr()
    def __repr__(self) -> str:
        lines = [f"({name}): {part!r}" for name, part in self.children() if isinstance(part, Module)]
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        body = "\n".join(lines).replace("\n", "\n  ")
        return f"{type(self).__name__}({self.extra_repr()}\n  {body}\n)"


def _parts(name: str, value: Any) -> Iterator[tuple[str, State | Module]]:
    if isinstance(value, State | Module):
        yield name, value
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            yield from _parts(f"{name}.{i}", part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _parts(f"{name}.{key}", part)
