"""debug_mode: find the operation that made a NaN or an infinity; tell where the time goes.

Watch is what the engine calls meanwhile: it meets arrays only, and knows a rule by its class name.
"""

from __future__ import annotations

import linecache
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from .cuda import array_module
from .mode import MODE, Change
from .rows import Rows

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _line_of_caller() -> str:
    """File and line of the innermost frame outside metagrad, with its text where it can be read."""
    frame = sys._getframe(1)
    while frame.f_back and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE + os.sep):
        frame = frame.f_back
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" + (f": {text}" if text else "")


def _is_finite(x: Any) -> bool:
    values = x.values if isinstance(x, Rows) else x.data if hasattr(x, "__record__") else x
    if getattr(values, "dtype", None) is None or values.dtype.kind not in "fc":
        return True
    return bool(array_module(values).isfinite(values).all())


def _describe(x: Any) -> str:
    dtype = getattr(x, "dtype", None)
    return repr(x) if dtype is None else f"{tuple(x.shape)} {dtype}"


class Watch:
    """Runs operations in place of the engine, and remembers count and seconds of each.

    outer: the watch of the debug_mode around this one, which counts what happens here as well.
    """

    def __init__(self) -> None:
        self.outer: Watch | None = None
        self.seconds: dict[tuple[str, str], float] = {}
        self.counts: dict[tuple[str, str], int] = {}

    def forward(self, node: Any, arrays: Sequence, params: dict) -> Any:
        """The result of the rule's forward, if it is finite."""
        node.line = _line_of_caller()
        return self._checked("forward", node, arrays, lambda: node.forward(*arrays, **params))

    def write(self, node: Any, target: Any, arrays: Sequence, params: dict) -> None:
        """The rule's write into `target`, if what then stands there is finite."""
        node.line = _line_of_caller()

        def written() -> Any:
            node.write(target, *arrays, **params)
            return target

        self._checked("forward", node, arrays, written)

    def backward(self, node: Any, grad: Any, saved: tuple) -> Any:
        """The rule's gradients, if they are finite. None stands for "no gradient" and is finite."""
        return self._checked("backward", node, (grad, *saved), lambda: node.backward(grad, *saved))

    def _checked(self, phase: str, node: Any, inputs: Sequence, call: Callable) -> Any:
        result = self._timed(phase, node, call)
        for part in result if type(result) is tuple else (result,):
            if not _is_finite(part):
                self._raise(phase, node, inputs)
        return result

    def _timed(self, phase: str, node: Any, call: Callable) -> Any:
        start = time.perf_counter()
        result = call()
        self._note((type(node).__name__, phase), time.perf_counter() - start)
        return result

    def _note(self, key: tuple[str, str], seconds: float) -> None:
        self.seconds[key] = self.seconds.get(key, 0.0) + seconds
        self.counts[key] = self.counts.get(key, 0) + 1
        if self.outer is not None:
            self.outer._note(key, seconds)

    def _raise(self, phase: str, node: Any, inputs: Sequence) -> None:
        line = getattr(node, "line", "a line before debug_mode began")
        raise FloatingPointError(
            f"{phase} of {type(node).__name__} made a value that is not finite from "
            f"({', '.join(map(_describe, inputs))}), called at {line}"
        )

    def table(self) -> str:
        """Operation, pass, count, milliseconds and their share, the costliest first; then the sum."""
        total = sum(self.seconds.values())
        rows = [f"{'operation':<24}{'pass':<10}{'count':>8}{'ms':>12}{'share':>8}"]
        costs = sorted(self.seconds.items(), key=lambda item: -item[1])
        for (name, phase), seconds in [*costs, (("all", "both"), total)]:
            count = self.counts.get((name, phase), sum(self.counts.values()))
            rows.append(f"{name:<24}{phase:<10}{count:>8}{seconds * 1e3:>12.3f}{seconds / (total or 1):>8.1%}")
        return "\n".join(rows)


class debug_mode(Change):
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
