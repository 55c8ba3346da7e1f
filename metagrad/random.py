"""Random streams, one a device, and draws from a distribution. NumPy's global state is never touched."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from .cuda import CPU, Array, Device, array_module, device_of

_seed: int | None = None
_streams: dict[Device, Any] = {}


def manual_seed(seed: int) -> None:
    """Restart the random stream of every device from `seed`."""
    global _seed
    seed = operator.index(seed)
    if seed < 0:
        raise ValueError(f"a seed is a whole number from 0 on, not {seed}")
    _seed = seed
    _streams.clear()


def generator(device: Device = CPU) -> Any:
    """The device's Generator, from which every draw comes that is not handed one of its own."""
    if device not in _streams:
        with device.active():
            _streams[device] = device.library.random.default_rng(_seed)
    return _streams[device]


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Streams of their own, begun from `seed`; behind it the others go on where they were."""
    global _seed
    before = _seed, dict(_streams)
    manual_seed(seed)
    try:
        yield
    finally:
        _seed = before[0]
        _streams.clear()
        _streams.update(before[1])


def multinomial(weights: Array, n: int, replace: bool = False) -> Array:
    """n indices for each row of weights, drawn in proportion to them. weights (..., V) → (..., n).

    weights need not sum to 1; they are read, never written. Raises ValueError for a weight that is
    negative, infinite or NaN, a row that is all zero, and more draws than there are non-zero weights
    where replace is False.
    """
    xp = array_module(weights)
    if not weights.ndim or not weights.shape[-1] or n < 0:
        raise ValueError(f"multinomial: {n} draws from weights of shape {weights.shape}, which are none")
    rows = weights.reshape(-1, weights.shape[-1]).astype(np.float64)
    possible = (rows > 0).sum(axis=1)
    if not bool(xp.isfinite(rows).all()) or bool((rows < 0).any()):
        raise ValueError("multinomial: weights must be finite and not negative")
    if not bool((possible > 0).all()):
        raise ValueError(f"multinomial: all weights of row {int(possible.argmin())} are zero, nothing can be drawn")
    if not replace and bool((possible < n).any()):
        raise ValueError(
            f"multinomial: {n} draws without replacement from {int(possible.min())} non-zero weights; "
            "say replace=True, or draw fewer"
        )
    stream = generator(device_of(weights))
    if replace:
        # One search serves all rows: row b's cumulative shares lie between b and b + 1.
        row = xp.arange(len(rows))[:, None]
        ends = xp.cumsum(rows, axis=1)
        ends = ends / ends[:, -1:] + row
        draws = stream.random((len(rows), n)) + row
        # side="right" never picks a zero weight; rounding must not carry a draw past the last weight
        index = xp.searchsorted(ends.reshape(-1), draws.reshape(-1), side="right").reshape(draws.shape)
        last = rows.shape[1] - 1 - xp.argmax(rows[:, ::-1] > 0, axis=1)
        index = xp.minimum(index - row * rows.shape[1], last[:, None])
    else:
        # The n smallest of independent exponential times with rates `weights` are draws without replacement
        # (Efraimidis and Spirakis 2006).
        times = xp.log(stream.standard_exponential(rows.shape)) - xp.log(xp.where(rows > 0, rows, 1))
        index = xp.argsort(xp.where(rows > 0, times, np.inf), axis=1)[:, :n]
    return index.reshape(weights.shape[:-1] + (n,)).astype(np.int64)
