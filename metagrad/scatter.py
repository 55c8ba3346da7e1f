"""Taking rows of a table and adding rows into one: where NumPy and CuPy differ most, and where
training word vectors spends half of its time."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda import Array, array_module


def take_rows(table: Array, index: Array) -> Array:
    """table[index] along the first axis, for an index known to be in range.

    `mode="clip"` spares NumPy a second bounds check and a buffer; CuPy's take never checks.
    """
    if type(table) is np.ndarray:
        return np.take(table, index, axis=0, mode="clip")
    return table.take(index, axis=0)


def add_at(target: Array, index: Any, values: Array) -> None:
    """target[index] += values, where an index may occur many times, for any index NumPy knows."""
    if _is_array_of_integers(index):  # rows, for which there is a faster way that repeats on any device
        rows = index.reshape(-1) % max(len(target), 1)
        add_rows(target, rows, values.reshape(rows.shape + target.shape[1:]))
    else:
        array_module(target).add.at(target, index, values)


def _is_array_of_integers(index: Any) -> bool:
    return getattr(index, "dtype", np.dtype(bool)).kind in "iu" and index.ndim > 0


def add_rows(table: Array, index: Array, values: Array, scale: float = 1.0) -> None:
    """table[index[k]] += scale · values[k] for every k, in place and deterministically.

    table (V, ...), index (n,) with repeats, in range; values (n, ...).
    """
    if type(table) is not np.ndarray:
        unique, sums = sum_rows([(index, values)])
        table[unique] += sums if scale == 1.0 else sums * scale
        return
    width = table[:1].size
    if not table.flags.c_contiguous:
        np.add.at(table, index, values if scale == 1.0 else values * scale)
        return
    # np.add.at is several times faster on one flat axis than on rows, and twice as fast again on pairs
    # of floats seen as complex numbers: adding complex numbers adds both parts.
    pair = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}.get(table.dtype)
    pair = pair if width % 2 == 0 else None
    flat = table.reshape(-1).view(pair or table.dtype)
    width = width // 2 if pair else width
    within = np.arange(width)
    chunk = max(_CACHED // max(width, 1), 1)
    for start in range(0, len(index), chunk):
        part = values[start : start + chunk]
        part = np.ascontiguousarray(part if scale == 1.0 else part * scale, dtype=table.dtype)
        places = index[start : start + chunk].astype(np.intp)[:, None] * width + within
        np.add.at(flat, places.reshape(-1), part.reshape(-1).view(flat.dtype))


_CACHED = 1 << 15  # places worked out at a time: so many stay in the processor's cache, which halves the time


def sum_rows(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The distinct indices of all parts, ascending, and the sum of the values at each, deterministically.

    parts: pairs of index (n,) and values (n, ...).
    """
    xp = array_module(parts[0][0])
    index = xp.concatenate([index for index, _ in parts])
    if xp is not np:
        return _sum_sorted_rows(index, xp.concatenate([values for _, values in parts]))
    unique, place = np.unique(index, return_inverse=True)
    first = parts[0][1]
    sums = np.zeros((len(unique), *first.shape[1:]), dtype=first.dtype)
    done = 0
    for index, values in parts:
        add_rows(sums, place[done : done + len(index)], values)
        done += len(index)
    return unique, sums


def _sum_sorted_rows(index: Array, values: Array) -> tuple[Array, Array]:
    """sum_rows by a fixed order of additions, which atomic additions on a GPU do not promise.

    After a stable sort, equal entries are neighbours; in round k each row takes in the partial sum 2^k
    places further on, if that is still its own: log2(largest repeat) whole-array steps, no kernel of our own.
    """
    xp = array_module(index)
    order = xp.argsort(index, kind="stable")
    index, values = index[order], values[order]
    n = len(index)
    if not n:
        return index, values
    first = xp.ones(n, dtype=bool)
    first[1:] = index[1:] != index[:-1]
    starts = xp.flatnonzero(first)
    step, longest = 1, int(xp.diff(xp.append(starts, n)).max())
    while step < longest:
        same = index[step:] == index[:-step]
        same = same.reshape(same.shape + (1,) * (values.ndim - 1))
        further = xp.where(same, values[step:], 0)
        values = values.copy()
        values[:-step] += further
        step *= 2
    return index[starts], values[starts]
