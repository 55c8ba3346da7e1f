"""Modules that hold others: in a row that is run through, in a list, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence
from typing import Any

from .module import Module, State


class ModuleList(Module, MutableSequence):
    """A list of modules: with append, insert, extend, pop, slices and the rest of a Python list."""

    def __init__(self, parts: Iterable[Any] = ()) -> None:
        self.parts: list[Any] = []
        self.extend(parts)

    def children(self) -> Iterator[tuple[str, State | Module]]:
        return ((name.removeprefix("parts."), part) for name, part in super().children())

    def insert(self, index: int, part: Any) -> None:
        self.parts.insert(index, self._checked(part))

    def __getitem__(self, index: Any) -> Any:
        return type(self)._of(self.parts[index]) if isinstance(index, slice) else self.parts[self._place(index)]

    def __setitem__(self, index: Any, part: Any) -> None:
        if isinstance(index, slice):
            self.parts[index] = [self._checked(each) for each in part]
        else:
            self.parts[self._place(index)] = self._checked(part)

    def __delitem__(self, index: Any) -> None:
        del self.parts[index if isinstance(index, slice) else self._place(index)]

    def __len__(self) -> int:
        return len(self.parts)

    @classmethod
    def _of(cls, parts: list[Any]) -> Any:
        return cls(parts)

    def _place(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{type(self).__name__}: there is no part {index}, it has {len(self)}")
        return index

    def _checked(self, part: Any) -> Any:
        if not isinstance(part, Module):
            raise TypeError(f"{type(self).__name__} holds modules, not a {type(part).__name__}")
        return part


class Sequential(ModuleList):
    """Modules and functions one after the other: Sequential(Linear(4, 8), F.relu, Linear(8, 1)).

    A list as well: s[i] and s[i:j] give parts, append and insert add some.
    """

    def __init__(self, *parts: Callable[[Any], Any]) -> None:
        super().__init__(parts)

    @classmethod
    def _of(cls, parts: list[Any]) -> Sequential:
        return Sequential(*parts)

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _checked(self, part: Any) -> Any:
        if not callable(part):
            raise TypeError(f"Sequential: part {len(self)} is a {type(part).__name__}, no module or function")
        return part


class ModuleDict(Module, MutableMapping):
    """Modules by name: a dict with all its methods, in the order of insertion."""

    def __init__(self, parts: Any = ()) -> None:
        self.parts: dict[str, Module] = {}
        self.update(parts)

    def children(self) -> Iterator[tuple[str, State | Module]]:
        return ((name.removeprefix("parts."), part) for name, part in super().children())

    def __getitem__(self, name: str) -> Module:
        if name not in self.parts:
            raise KeyError(f"ModuleDict: there is no {name!r}; it has {', '.join(self.parts) or 'none'}")
        return self.parts[name]

    def __setitem__(self, name: str, part: Module) -> None:
        if not isinstance(name, str) or not name or not isinstance(part, Module):
            raise TypeError(f"ModuleDict holds modules by names, not {part!r} by {name!r}")
        self.parts[name] = part

    def __delitem__(self, name: str) -> None:
        del self.parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    __eq__ = object.__eq__  # a module is itself, not what it holds
    __hash__ = object.__hash__
