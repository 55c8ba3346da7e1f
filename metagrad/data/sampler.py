"""Samplers: the order in which a DataLoader reads its dataset.

A sampler is any object whose `__iter__` begins a new epoch of indices; a list will do. Those of this file
draw an epoch as one array, at the moment `iter()` is called: a batch of indices is then a slice, not a loop.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sized
from itertools import chain, islice
from typing import Any

import numpy as np


class _ArraySampler:
    """A sampler whose epoch is one array of indices, which `_order` draws."""

    def _order(self) -> np.ndarray:
        raise NotImplementedError

    def chunks(self, size: int) -> Iterator[np.ndarray]:
        """A new epoch in int64 arrays (size,), the last maybe shorter. Drawn now, not at first use."""
        order = self._order()
        starts = range(0, len(order), size)
        return (order[start : start + size].astype(np.int64, copy=False) for start in starts)

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(chunk.tolist() for chunk in self.chunks(4096))


class SequentialSampler(_ArraySampler):
    """0, 1, … n − 1. `source` is n itself or anything with a length."""

    def __init__(self, source: int | Sized) -> None:
        self.source = source
        length_of(source)  # a missing __len__ is reported here, not in the first epoch

    def chunks(self, size: int) -> Iterator[np.ndarray]:
        # Without the array of all indices: a corpus of 10⁹ items is read in order at no cost.
        n = length_of(self.source)
        return (np.arange(start, min(start + size, n)) for start in range(0, n, size))

    def __len__(self) -> int:
        return length_of(self.source)


class RandomSampler(_ArraySampler):
    """A new random order each epoch: one `generator.permutation(n)`, or draws with replacement.

    source: n itself, or anything with a length.
    num_samples: indices an epoch, n unless given; without replacement at most n.
    generator: a numpy Generator, which is drawn from and not copied; an int seed; None for fresh entropy.
    """

    def __init__(
        self,
        source: int | Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: np.random.Generator | int | None = None,
    ) -> None:
        self.source = source
        self.replacement = replacement
        self.num_samples = None if num_samples is None else whole_number(num_samples, "num_samples", least=1)
        self.generator = as_generator(generator)
        available = length_of(source)
        if not replacement and self.num_samples is not None and self.num_samples > available:
            raise ValueError(
                f"RandomSampler cannot take {num_samples} samples from {available} items without "
                "replacement: pass replacement=True or fewer samples"
            )

    def _order(self) -> np.ndarray:
        n = length_of(self.source)
        if self.replacement and len(self):
            if n == 0:
                raise ValueError(f"RandomSampler cannot take {self.num_samples} samples from 0 items")
            return self.generator.integers(n, size=len(self))
        # What generator.permutation(n) does, but in 4 bytes an item where they are enough.
        order = np.arange(n, dtype=np.int32 if n <= np.iinfo(np.int32).max else np.int64)
        self.generator.shuffle(order)
        return order[: self.num_samples]

    def __len__(self) -> int:
        return length_of(self.source) if self.num_samples is None else self.num_samples


class SubsetRandomSampler(_ArraySampler):
    """The given indices, in a new random order each epoch. `generator` as in RandomSampler."""

    def __init__(self, indices: Any, generator: np.random.Generator | int | None = None) -> None:
        self.indices = index_array(indices)
        self.generator = as_generator(generator)

    def _order(self) -> np.ndarray:
        return self.generator.permutation(self.indices)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_ArraySampler):
    """`num_samples` indices an epoch; index i is drawn with probability weights[i] / Σ weights.

    weights: (n,) of finite numbers ≥ 0, not all of them 0.
    Without replacement each draw is from the items left, in proportion to their weights (Efraimidis and
    Spirakis, 2006: the smallest of Exp(1)/weight), and at most as many as have a weight above 0.
    `generator` as in RandomSampler.
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: np.random.Generator | int | None = None,
    ) -> None:
        weights = _checked_weights(weights)
        self.num_samples = whole_number(num_samples, "num_samples", least=1)
        self.replacement = replacement
        self.generator = as_generator(generator)
        self._support = np.flatnonzero(weights)
        if not replacement and self.num_samples > len(self._support):
            raise ValueError(
                f"WeightedRandomSampler cannot take {num_samples} samples without replacement: only "
                f"{len(self._support)} weights are above 0"
            )
        positive = weights[self._support]
        if replacement:
            table = np.cumsum(positive / positive.max())  # divided first, so that no sum overflows
            self._table = table / table[-1]
        else:
            self._table = np.log(positive)

    def _order(self) -> np.ndarray:
        if self.replacement:
            uniform = self.generator.random(self.num_samples)
            return self._support[np.searchsorted(self._table, uniform, side="right")]
        keys = np.log(self.generator.standard_exponential(len(self._support))) - self._table
        return self._support[np.argsort(keys, kind="stable")[: self.num_samples]]

    def __len__(self) -> int:
        return self.num_samples


def _checked_weights(weights: Any) -> np.ndarray:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(f"weights must have one axis, got shape {weights.shape}")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(f"weights must be finite and not negative, but weights[{at}] is {weights[at]}")
    if not weights.any():
        raise ValueError(f"at least one of the {len(weights)} weights must be above 0")
    return weights


class BatchSampler:
    """Groups a sampler's indices into batches of `batch_size`; `drop_last` leaves out a shorter last one.

    Yields an int64 array a batch from the samplers of this file, a list from any other iterable.
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool = False) -> None:
        check_rereadable(sampler, "sampler")
        self.sampler = sampler
        self.batch_size = whole_number(batch_size, "batch_size", least=1)
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[Any]:
        # Not a generator function: the sampler has to draw now, not when the first batch is asked for.
        # A subclass with an `__iter__` of its own means that order, not the one of its base.
        if isinstance(self.sampler, _ArraySampler) and type(self.sampler).__iter__ is _ArraySampler.__iter__:
            batches: Iterator[Any] = self.sampler.chunks(self.batch_size)
        else:
            indices = iter(self.sampler)
            batches = iter(lambda: list(islice(indices, self.batch_size)), [])
        if not self.drop_last:
            return batches
        return (batch for batch in batches if len(batch) == self.batch_size)

    def __len__(self) -> int:
        if not isinstance(self.sampler, Sized):
            raise TypeError(
                f"the number of batches is unknown: the sampler, a {type(self.sampler).__name__}, has no __len__"
            )
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def as_generator(generator: np.random.Generator | int | None) -> np.random.Generator:
    """The Generator itself, one made from an int seed, or for None one with fresh entropy."""
    if isinstance(generator, np.random.Generator):
        return generator
    if generator is None:
        return np.random.default_rng()
    try:
        return np.random.default_rng(whole_number(generator, "generator", least=0))
    except TypeError:
        raise TypeError(
            "generator must be a numpy Generator (np.random.default_rng(…)), an int seed or None, not a "
            f"{type(generator).__name__}"
        ) from None


def whole_number(value: Any, name: str, least: int) -> int:
    """`value` as an int of at least `least`; a bool, a float or a string is a TypeError naming `name`."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a whole number, not the bool {value}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not the {type(value).__name__} {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def length_of(source: int | Sized) -> int:
    """`source` itself if it is a number, else its length."""
    if isinstance(source, Sized):
        return len(source)
    if isinstance(source, (int, np.integer)):
        return whole_number(source, "the number of items", least=0)
    raise TypeError(
        f"a {type(source).__name__} has no __len__, so its items cannot be numbered: write "
        "`def __len__(self)` in it, or give the DataLoader a sampler"
    )


def index_array(indices: Any) -> np.ndarray:
    """`indices` as an int64 array (B,)."""
    array = np.asarray(indices)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        advice = "; np.flatnonzero turns a mask into indices" if array.dtype == bool else ""
        raise TypeError(
            f"indices must be whole numbers along one axis, got dtype {array.dtype} and shape {array.shape}{advice}"
        )
    return array.astype(np.int64, copy=False)


def check_rereadable(sampler: Any, name: str) -> None:
    """Refuse what cannot be iterated, and an iterator, which would silently leave every later epoch empty."""
    if not isinstance(sampler, Iterable):
        raise TypeError(f"{name} must be something to iterate over, not a {type(sampler).__name__}")
    if isinstance(sampler, Iterator):
        raise TypeError(
            f"{name} is an iterator (a {type(sampler).__name__}), which has nothing left after one epoch: "
            "pass a list or an object whose __iter__ begins anew"
        )
