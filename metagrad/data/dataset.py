"""Datasets: what a DataLoader reads, one item or one whole batch at a time.

The order of reading is the sampler's business (sampler.py), joining items into a batch is collate.py's.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Dataset:
    """A collection of items numbered 0 … len − 1. Subclass it and write `__getitem__` and `__len__`.

    A dataset may also offer `__getitems__(indices)`, which reads a whole batch at once: `indices` is an int64
    array (B,), and the result is the finished batch, in any form. The loader then yields it untouched; a
    loader with a collate_fn hands it to that function *in place of* the list of items.
    """

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no __getitem__: write `def __getitem__(self, index)` in it to return "
            "the item of that number"
        )

    def __len__(self) -> int:
        raise NotImplementedError(
            f"{type(self).__name__} has no __len__: write `def __len__(self)` in it to return the number of items"
        )


class TensorDataset(Dataset):
    """Arrays of one first length N, read row by row: item i is the tuple (a[i], b[i], …).

    Takes NumPy arrays (kept, not copied), anything with `.numpy()`, such as a Tensor on the CPU, and nested
    lists of numbers (Python floats become float32). Items and batches are plain NumPy values, without part in
    any gradient. An item is a view: writing into it writes into the dataset; a batch is a copy.

    `__getitems__` indexes each array once, so a DataLoader yields the tuple of arrays (B, …), and a
    collate_fn receives that tuple of columns, not a list of B items.

    Raises ValueError if the lengths differ or an array is ragged, TypeError if it holds Python objects.
    """

    def __init__(self, *arrays: Any) -> None:
        if not arrays:
            raise ValueError("TensorDataset needs at least one array")
        self.arrays = tuple(_as_array(values, position) for position, values in enumerate(arrays))
        lengths = [len(array) for array in self.arrays]
        if len(set(lengths)) > 1:
            raise ValueError(f"TensorDataset needs arrays of one first length, got lengths {lengths}")

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        """The tuple of each array's `index`: an int for one item, a slice for a run of them."""
        if isinstance(index, (int, np.integer)) and not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is outside a TensorDataset of {len(self)} items")
        return tuple(array[index] for array in self.arrays)

    def __getitems__(self, indices: np.ndarray) -> tuple[np.ndarray, ...]:
        """The batch of these items as one tuple of arrays (B, …)."""
        outside = (indices < -len(self)) | (indices >= len(self))
        if outside.any():
            raise IndexError(f"index {indices[outside][0]} is outside a TensorDataset of {len(self)} items")
        return tuple(_take_rows(array, indices) for array in self.arrays)

    def __len__(self) -> int:
        return len(self.arrays[0])


def _take_rows(array: np.ndarray, indices: np.ndarray) -> np.ndarray:
    # take is up to ten times as fast, but would first copy the whole of a strided array, such as a column.
    if array.flags.c_contiguous and array.flags.aligned:
        return array.take(indices, axis=0)
    return array[indices]


def _as_array(values: Any, position: int) -> np.ndarray:
    """One column of a TensorDataset as an array of at least one axis."""
    if hasattr(values, "numpy"):
        values = values.numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:  # NumPy refuses ragged nested lists
        raise ValueError(
            f"array {position} of the TensorDataset is ragged (its rows differ in length): pad it first, as "
            "metagrad.data.pad_rows does"
        ) from error
    if array.dtype == object:
        raise TypeError(
            f"array {position} of the TensorDataset holds Python objects, not numbers: make it an array of "
            "one dtype, or write a Dataset of your own"
        )
    if array.ndim == 0:
        raise ValueError(f"array {position} of the TensorDataset is one number: it needs an axis of items")
    if array.dtype == np.float64 and _are_python_numbers(values):
        return array.astype(np.float32)
    return array


def _are_python_numbers(values: Any) -> bool:
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    return type(values) in (int, float, list, tuple)  # the last two: an empty list
