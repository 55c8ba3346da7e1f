"""Handles of hooks: functions of the user that the engine or a module calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Handle:
    """What registering a hook returns. `remove()` takes the hook away; so does the end of a `with` block."""

    def __init__(self, hooks: list[Callable], hook: Callable) -> None:
        if not callable(hook):
            raise TypeError(f"a hook is a function, not {hook!r}")
        self._hooks = hooks
        self._hook = hook
        hooks.append(hook)

    def remove(self) -> None:
        self._hooks[:] = [hook for hook in self._hooks if hook is not self._hook]

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()
