"""The DataLoader: epochs of batches from a dataset, and a thread that makes them ahead of time.

Which items, in which order, is the sampler's choice (sampler.py); how items join is collate.py's.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sized
from queue import SimpleQueue
from typing import Any

import numpy as np

from .collate import default_collate
from .sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    check_rereadable,
    index_array,
    whole_number,
)


class DataLoader:
    """Iterating over it gives one epoch of batches; each `iter()` is an epoch of its own, nested or not.

    dataset: anything with `__getitem__`, and `__len__` unless a sampler is given.
    batch_size, drop_last: items a batch; whether a shorter last batch is left out.
    shuffle: a new random order each epoch.
    sampler: an iterable of indices instead of shuffle.
    batch_sampler: an iterable of lists of indices instead of batch_size, shuffle, sampler and drop_last.
    collate_fn: makes the batch. It receives the list of items [dataset[i], …]; or, where the dataset offers
        `__getitems__`, exactly what that returned (for a TensorDataset the tuple of arrays (B, …)). Unless
        given, items go through `default_collate`, and the result of `__getitems__` is the batch.
    generator: a numpy Generator or an int seed for shuffle; None takes fresh entropy. The loader draws
        exactly one permutation from it at each `iter()`, in the caller's thread, and nothing else: to repeat
        an epoch, save `generator.bit_generator.state` before it and set it again.
    prefetch: how many batches a background thread makes ahead; 0 makes each when it is asked for. It pays
        where making a batch takes well over 0.1 ms.

    Prefetching changes no batch. Dataset, collate_fn and samplers of your own then run in the thread, one
    batch after another. If one of them draws random numbers, give it a generator of its own: it draws the
    same with and without the thread, except that a loop left early has had up to `prefetch` more batches
    made. A mode of the loop's thread, such as no_grad, does not hold in the other. The thread ends with the
    epoch, or, once its iterator is dropped, after the batch it is at. An exception in it is raised in the
    loop, at the batch where it happened.

    Raises TypeError or ValueError for arguments of a wrong kind or that contradict each other.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        collate_fn: Callable[[Any], Any] | None = None,
        drop_last: bool = False,
        generator: np.random.Generator | int | None = None,
        prefetch: int = 0,
    ) -> None:
        self._reads_batches = callable(getattr(dataset, "__getitems__", None))
        if not (self._reads_batches or hasattr(dataset, "__getitem__")):
            raise TypeError(
                f"dataset must have __getitem__, and a {type(dataset).__name__} has none: use a list, an "
                "array or a Dataset"
            )
        if collate_fn is not None and not callable(collate_fn):
            raise TypeError(f"collate_fn must be a function of the items, not a {type(collate_fn).__name__}")
        self.dataset = dataset
        self.collate_fn = collate_fn
        self.prefetch = whole_number(prefetch, "prefetch", least=0)
        self.batch_sampler: Iterable[Any]
        if batch_sampler is None:
            sampler = _choose_sampler(dataset, shuffle, sampler, generator)
            self.batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        else:
            given = {
                "batch_size": batch_size != 1,
                "shuffle": shuffle,
                "sampler": sampler is not None,
                "drop_last": drop_last,
                "generator": generator is not None,
            }
            if any(given.values()):
                clash = ", ".join(name for name, is_given in given.items() if is_given)
                raise ValueError(f"batch_sampler already decides every batch, so leave out {clash}")
            check_rereadable(batch_sampler, "batch_sampler")
            self.batch_sampler = batch_sampler

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        if not isinstance(self.batch_sampler, Sized):
            raise TypeError(
                "the number of batches is unknown: the batch_sampler, a "
                f"{type(self.batch_sampler).__name__}, has no __len__"
            )
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        # The epoch's order is drawn here, before any thread starts: so prefetch cannot change it.
        batches = self._batches(iter(self.batch_sampler))
        return Prefetched(batches, self.prefetch) if self.prefetch else batches

    def _batches(self, batch_indices: Iterator[Any]) -> Iterator[Any]:
        for indices in batch_indices:
            yield self._read(indices)

    def _read(self, indices: Any) -> Any:
        if self._reads_batches:
            batch = self.dataset.__getitems__(index_array(indices))
            return batch if self.collate_fn is None else self.collate_fn(batch)
        if isinstance(indices, np.ndarray):
            indices = indices.tolist()  # a list or a dict wants Python's ints
        collate = default_collate if self.collate_fn is None else self.collate_fn
        return collate([self.dataset[index] for index in indices])


def _choose_sampler(dataset: Any, shuffle: bool, sampler: Any, generator: Any) -> Iterable[Any]:
    if sampler is None:
        return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
    if shuffle:
        raise ValueError("shuffle and sampler both decide the order: pass one of them")
    if generator is not None:
        raise ValueError("generator serves shuffle=True only: give it to the sampler itself")
    return sampler


class Prefetched:
    """The iterator of an epoch whose batches a thread makes, at most `depth` ahead of the one in use."""

    def __init__(self, batches: Iterator[Any], depth: int) -> None:
        self._worker = _Worker(batches)
        # The worker knows nothing of this object, so dropping the iterator, wherever it is, stops the thread.
        self._stop = weakref.finalize(self, self._worker.stop)
        for _ in range(depth):
            self._worker.permits.put(True)
        self._worker.start()

    def __iter__(self) -> Prefetched:
        return self

    def __next__(self) -> Any:
        if not self._stop.alive:
            raise StopIteration
        outcome, value = self._worker.results.get()
        if outcome == "batch":
            self._worker.permits.put(True)
            return value
        self._stop()
        if outcome == "end":
            raise StopIteration
        try:
            raise value
        finally:
            del value  # else the exception and this frame would hold each other


class _Worker(threading.Thread):
    """Makes one batch for each permit. A daemon: it never holds up the interpreter's exit.

    SimpleQueue, unlike a Condition, may be written by a finalizer that interrupts this very thread.
    """

    def __init__(self, batches: Iterator[Any]) -> None:
        super().__init__(name="metagrad-prefetch", daemon=True)
        self.batches = batches
        self.permits: SimpleQueue[bool] = SimpleQueue()
        self.results: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self.stopped = False

    def run(self) -> None:
        while self.permits.get() and not self.stopped:
            try:
                self.results.put(("batch", next(self.batches)))
            except StopIteration:
                self.results.put(("end", None))
                return
            except BaseException as error:  # the consumer's to handle, whatever it is
                self.results.put(("error", error))
                return

    def stop(self) -> None:
        self.stopped = True  # permits given earlier count no more
        self.permits.put(False)
