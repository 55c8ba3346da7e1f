"""Modes of a thread: whether operations are recorded, and whether they are watched.

A mode is a context manager and a decorator, may be nested, and holds in its own thread only. The
engine reads one context variable per operation; None, the usual state, means "record, do not watch".
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple


class Mode(NamedTuple):
    recording: bool
    watch: Any  # see debug.Watch; None: unwatched
    changes: tuple[Change, ...]  # the modes entered and not left, in order of entry


MODE: ContextVar[Mode | None] = ContextVar("metagrad.mode", default=None)


def is_grad_enabled() -> bool:
    """Whether operations of this thread are recorded for backward."""
    mode = MODE.get()
    return mode is None or mode.recording


class Change:
    """Change one field of the mode from entry to exit. One object may be entered many times, in any threads."""

    def __init__(self, **field: Any) -> None:
        self._field = field

    def __enter__(self) -> Any:
        mode = MODE.get()
        _set((*mode.changes, self) if mode else (self,))
        return self

    def __exit__(self, *error: Any) -> None:
        # Whoever entered leaves, not whoever entered last: generators may end in any order.
        mode = MODE.get()
        changes = list(mode.changes) if mode else []
        for i in reversed(range(len(changes))):
            if changes[i] is self:
                del changes[i]
                break
        _set(tuple(changes))

    def __call__(self, function: Callable) -> Callable:
        """Decorate a function: its calls run in the mode."""
        pausing = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        if any(pauses(function) for pauses in pausing):
            raise TypeError(f"{function.__name__} returns before its body runs: use `with` inside it instead")

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return within


def _set(changes: tuple[Change, ...]) -> None:
    fields: dict[str, Any] = {"recording": True, "watch": None}
    for change in changes:
        fields.update(change._field)
    MODE.set(Mode(**fields, changes=changes) if changes else None)


class no_grad(Change):
    """Within it nothing is recorded: results need no gradient, and parameters may be written."""

    def __init__(self) -> None:
        super().__init__(recording=False)


class enable_grad(Change):
    """Within it operations are recorded, also inside a `no_grad`."""

    def __init__(self) -> None:
        super().__init__(recording=True)
