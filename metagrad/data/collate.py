"""Collating: joining a list of items into one batch of arrays.

`default_collate` joins what has one shape; `pad_rows` makes one shape of rows that differ in length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

# Python numbers never widen in metagrad: a Python float is as good as a float32.
_NATURAL = {bool: np.bool_, int: np.int64, float: np.float32, complex: np.complex64}
_ADVICE = "give the DataLoader a collate_fn that joins them"


def default_collate(items: Sequence[Any]) -> Any:
    """One batch out of the B items of a list, by what the items are:

    numbers            an array (B,): int64, float32 and bool for Python's, their own dtype for NumPy's
    arrays of shape S  an array (B, *S); anything with `.numpy()` is read through it
    lists of numbers   rows of an array (B, n), nested lists too
    strings, bytes     a tuple of B, as they are
    tuples             a tuple of one collated column per field: [(1, "a"), (2, "b")] → (array([1, 2]),
                       ("a", "b")); a named tuple stays one; a list of anything but numbers is a tuple too
    dicts              a dict of one collated column per key

    Raises ValueError for shapes, lengths or keys that differ, naming the positions in the batch, and
    TypeError for items of several kinds or of one that it cannot join.
    """
    return _collate(list(items), "")


def pad_rows(rows: Sequence[Any], value: Any = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different lengths as one array (N, L), L the longest length, and its mask (N, L).

    rows: N lists or one-axis arrays of numbers; the array has their dtype.
    value: what fills the end of the shorter rows; it has to fit that dtype. The mask is True where an entry
        is real.
    """
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]  # (N, L)
    filled = [row for row in rows if len(row)]
    if all(isinstance(row, np.ndarray) for row in filled):
        flat = np.concatenate(filled) if filled else np.empty(0, dtype=np.int64)
    else:
        flat = default_collate(list(chain.from_iterable(filled)))
    if not isinstance(flat, np.ndarray) or flat.ndim != 1:
        raise TypeError("pad_rows takes lists of numbers or arrays of one axis, and these rows are neither")
    if np.result_type(flat, value) != flat.dtype:
        raise TypeError(f"rows of {flat.dtype} cannot be padded with the {type(value).__name__} {value!r}")
    padded = np.full(mask.shape, value, dtype=flat.dtype)
    padded[mask] = flat
    return padded, mask


def _collate(items: list[Any], where: str) -> Any:
    """`where` says in error messages which field the items are of: "" at the top, " of field 1" below."""
    if not items:
        raise ValueError("no items to collate: the sampler gave a batch without indices")
    items = [item.numpy() if hasattr(item, "numpy") else item for item in items]
    join = _join_for(type(items[0]))
    if any(_join_for(kind) is not join for kind in set(map(type, items))):
        other = next(i for i, item in enumerate(items) if _join_for(type(item)) is not join)
        raise TypeError(
            f"items 0 and {other}{where} have types {type(items[0]).__name__} and "
            f"{type(items[other]).__name__}, which do not join: return one kind each time, or {_ADVICE}"
        )
    return join(items, where)


def _join_for(kind: type) -> Callable[[list[Any], str], Any]:
    """The function that joins items of this type."""
    if kind in _NATURAL or issubclass(kind, (np.number, np.bool_)):
        return _numbers
    if issubclass(kind, (str, bytes)):
        return _strings
    if issubclass(kind, (np.ndarray, np.generic)):
        return _arrays
    if issubclass(kind, tuple):
        return _tuples
    if issubclass(kind, list):
        return _lists
    if issubclass(kind, Mapping):
        return _mappings
    return _refused


def _numbers(items: list[Any], where: str) -> np.ndarray:
    kinds = set(map(type, items))
    typed = [kind for kind in kinds if kind not in _NATURAL]
    if typed:  # NumPy's promotion, in which Python numbers are weak
        dtype = np.result_type(*(kind(0) for kind in kinds))
    else:
        dtype = np.dtype(next(_NATURAL[kind] for kind in (complex, float, int, bool) if kind in kinds))
    try:
        return np.array(items, dtype=dtype)
    except OverflowError as error:
        raise ValueError(f"an item{where} is too large for {dtype}: {error}") from None


def _strings(items: list[Any], where: str) -> tuple[Any, ...]:
    return tuple(items)


def _arrays(items: list[Any], where: str) -> np.ndarray:
    _check_alike([np.shape(item) for item in items], "shapes", where, f"pad them, or {_ADVICE}")
    stacked = np.stack(items)
    if stacked.dtype == object:
        raise TypeError(f"the arrays{where} hold Python objects, which do not make a batch: {_ADVICE}")
    return stacked


def _tuples(items: list[Any], where: str) -> tuple[Any, ...]:
    lengths = [len(item) for item in items]
    _check_alike(lengths, "lengths", where, f"return as many fields each time, or {_ADVICE}")
    fields = enumerate(zip(*items, strict=True))
    columns = [_collate(list(column), f" of field {number}{where}") for number, column in fields]
    kind = type(items[0])
    return kind(*columns) if hasattr(kind, "_fields") else tuple(columns)


def _lists(items: list[Any], where: str) -> Any:
    if not all(map(_is_row, items)):
        return _tuples(items, where)
    _check_alike([(len(item),) for item in items], "shapes", where, f"pad them (pad_rows), or {_ADVICE}")
    numbers = list(chain.from_iterable(items))
    if not numbers:
        return np.empty((len(items), 0), dtype=np.float32)
    # One flat list, so that a row of ints beside a row of floats gets the dtype of numbers side by side.
    flat = _collate(numbers, f" of the lists{where}")
    return flat.reshape(len(items), -1, *flat.shape[1:])


def _is_row(item: list[Any]) -> bool:
    """Whether a list holds numbers only, perhaps in lists again."""
    return all(_is_row(part) if type(part) is list else _join_for(type(part)) is _numbers for part in item)


def _mappings(items: list[Any], where: str) -> dict[Any, Any]:
    keys = [sorted(item, key=str) for item in items]
    _check_alike(keys, "keys", where, f"return the same keys each time, or {_ADVICE}")
    return {key: _collate([item[key] for item in items], f" of key {key!r}{where}") for key in items[0]}


def _refused(items: list[Any], where: str) -> Any:
    raise TypeError(f"items{where} of type {type(items[0]).__name__} do not make a batch: {_ADVICE}")


def _check_alike(traits: list[Any], name: str, where: str, advice: str) -> None:
    for position, trait in enumerate(traits):
        if trait != traits[0]:
            raise ValueError(
                f"items 0 and {position}{where} have {name} {traits[0]} and {trait}, which do not join: {advice}"
            )
