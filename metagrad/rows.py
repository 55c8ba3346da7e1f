"""Rows: the gradient of a table of which few rows were read.

An embedding table has a million rows, a batch reads a thousand. `Rows` keeps just those, and adds
up with other gradients; `optim` writes back only the rows that were read.
"""

from __future__ import annotations

from typing import Any

from .cuda import Array, array_module, device_of
from .scatter import add_rows, sum_rows


class Rows:
    """The (V, ...) array that is zero except for row index[k], which holds values[k]; repeats add up.

    index (n,) integers in range, values (n, ...), shape (V, ...). Immutable: operations give new Rows.
    A sum of Rows keeps its terms apart in `parts`, pairs (index, values), and moves no values.
    """

    __slots__ = ("parts", "shape")
    __array_ufunc__ = None  # so that `array + rows` is left to Rows.__radd__
    base = None  # as an array that owns its memory: what the engine asks of any gradient

    def __init__(self, index: Array, values: Array, shape: tuple[int, ...]) -> None:
        self.parts = [(index, values)]
        self.shape = shape

    def _with(self, parts: list[tuple[Array, Array]]) -> Rows:
        rows = Rows.__new__(Rows)
        rows.parts, rows.shape = parts, self.shape
        return rows

    @property
    def index(self) -> Array:
        """(n,)"""
        return _joined([index for index, _ in self.parts])

    @property
    def values(self) -> Array:
        """(n, ...)"""
        return _joined([values for _, values in self.parts])

    @property
    def dtype(self) -> Any:
        return self.parts[0][1].dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def astype(self, dtype: Any) -> Rows:
        return self._with([(index, values.astype(dtype)) for index, values in self.parts])

    def __add__(self, other: Any) -> Any:
        """Rows + Rows are more Rows; Rows + array is an array."""
        if isinstance(other, Rows):
            return self._with(self.parts + other.parts)
        with device_of(other).active():
            total = other.copy()
            self.add_to(total)
        return total

    __radd__ = __add__

    def __mul__(self, factor: float) -> Rows:
        return self._with([(index, values * factor) for index, values in self.parts])

    __rmul__ = __mul__

    def add_to(self, table: Array, scale: float = 1.0) -> None:
        """table += scale · self, in place."""
        for index, values in self.parts:
            add_rows(table, index, values, scale)

    def coalesce(self) -> Rows:
        """The same gradient with each row once, ascending. The sums repeat bit for bit."""
        return Rows(*sum_rows(self.parts), self.shape)

    def dense(self) -> Array:
        """The whole (V, ...) array."""
        values = self.parts[0][1]
        with device_of(values).active():
            table = array_module(values).zeros(self.shape, dtype=self.dtype)
            self.add_to(table)
        return table

    def __repr__(self) -> str:
        return f"Rows({len(self.index)} of {self.shape[0]}, shape={self.shape}, dtype={self.dtype})"


def _joined(arrays: list[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else array_module(arrays[0]).concatenate(arrays)
