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

from .debug import Watch


class Mode(NamedTuple):
    recording: bool
    watch: Watch | None
    changes: tuple[_Change, ...]  # the modes entered and not left, in order of entry


MODE: ContextVar[Mode | None] = ContextVar("metagrad.mode", default=None)


def is_grad_enabled() -> bool:
    """Whether operations of this thread are recorded for backward."""
    mode = MODE.get()
    return mode is None or mode.recording


class _Change:
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


def _set(changes: tuple[_Change, ...]) -> None:
    fields: dict[str, Any] = {"recording": True, "watch": None}
    for change in changes:
        fields.update(change._field)
    MODE.set(Mode(**fields, changes=changes) if changes else None)


class no_grad(_Change):
    """Within it nothing is recorded: results need no gradient, and parameters may be written."""

    def __init__(self) -> None:
        super().__init__(recording=False)


class enable_grad(_Change):
    """Within it operations are recorded, also inside a `no_grad`."""

    def __init__(self) -> None:
        super().__init__(recording=True)


class debug_mode(_Change):
    """Find the operation that made a NaN or an infinity; tell where the time goes.

    >>> with debug_mode() as watch:
    ...     loss = model(batch)
    ...     loss.backward()

    The first operation, forward or backward, whose result is not finite raises FloatingPointError
    with its name, the shapes and dtypes of its inputs and the line of the caller that asked for it.
    At the end a table of time and count per operation is printed; with `debug_mode(table=False)` it is
    not, and `watch.table()` gives it as text.
    """

    def __init__(self, table: bool = True) -> None:
        self.watch = Watch()
        self._print_table = table
        super().__init__(watch=self.watch)

    def __enter__(self) -> Watch:
        around = MODE.get()
        if around is not None and around.watch is not self.watch:
            self.watch.outer = around.watch
        super().__enter__()
        return self.watch

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self._print_table and error[0] is None:
            print(self.watch.table())
