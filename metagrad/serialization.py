"""save and load: nested dictionaries of arrays and plain values as one .npz file, without pickle.

Each array is a member of the archive, which NumPy's own `np.load` also reads; a JSON member says where
they belong and holds the rest. A file from anywhere can be loaded: nothing in it is ever run.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from typing import Any

import numpy as np

from .cuda import CPU, is_array, to_device
from .files import written_beside
from .tensor import Tensor

_STRUCTURE = "structure.json"


def save(state: Any, path: str | os.PathLike) -> None:
    """Write `state` to `path`: dicts, lists, tuples, arrays, Tensors, numbers, strings, None, in any nesting.

    It is written to a file beside `path` that takes its place when complete: a killed run leaves the
    old file. Tensors are saved as arrays, from a GPU too. Equal states make equal files.
    Raises TypeError for anything else, naming where, before a byte is written.
    """
    arrays: dict[str, np.ndarray] = {}
    structure = json.dumps(_describe(state, "", arrays))
    with written_beside(path) as beside, zipfile.ZipFile(beside, "x") as archive:
        archive.writestr(zipfile.ZipInfo(_STRUCTURE), structure)
        for name, array in arrays.items():
            # a ZipInfo has no time of day in it; zip64 is for arrays beyond 4 GiB
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load(path: str | os.PathLike) -> Any:
    """What `save` wrote: the same nesting, with NumPy arrays. Raises ValueError for any other file."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _rebuild(json.loads(archive.read(_STRUCTURE)), archive)
        except MemoryError:
            raise
        except Exception as error:  # zipfile, zlib, json and NumPy raise nearly anything on damaged bytes
            raise ValueError(
                f"{os.fspath(path)} is not a file that metagrad.save wrote, or it is damaged; "
                "other formats are not loaded, because some of them run code"
            ) from error


def is_archive(path: str | os.PathLike) -> bool:
    """Whether a file looks like one that `save` wrote."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _STRUCTURE in archive.namelist()
    except zipfile.BadZipFile:
        return False


def _describe(value: Any, place: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """`value` as JSON, each part as {kind: content}; arrays go to `arrays`, named after their place."""
    if isinstance(value, Tensor):
        value = value.data
    if is_array(value) or isinstance(value, np.generic):
        array = to_device(value, CPU) if is_array(value) else np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError(f"save: {_at(place)} is an array of objects, which only pickle could hold")
        name = _member_name(place, arrays)
        arrays[name] = array
        return {"array" if is_array(value) else "scalar": name}
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"save: {_at(place)} has the key {key!r}, keys are strings")
        return {"dict": {key: _describe(part, f"{place}/{key}", arrays) for key, part in value.items()}}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_describe(part, f"{place}/{i}", arrays) for i, part in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(
        f"save: {_at(place)} is a {type(value).__name__}; dicts, lists, tuples, arrays, numbers, strings and "
        "None are saved"
    )


def _at(place: str) -> str:
    return place[1:] or "the state"


def _member_name(place: str, taken: dict[str, np.ndarray]) -> str:
    """A name for an array in the archive: its place, less what zip cannot name, and not yet taken."""
    base = re.sub(r"[^\w.\-/]", "_", place[1:])[-200:] or "array"
    name, n = f"{base}.npy", 1
    while name in taken:
        n += 1
        name = f"{base}~{n}.npy"
    return name


def _rebuild(structure: dict[str, Any], archive: zipfile.ZipFile) -> Any:
    ((kind, content),) = structure.items()
    match kind:
        case "array" | "scalar":
            with archive.open(content) as member:
                array = np.lib.format.read_array(member, allow_pickle=False)
            return array if kind == "array" else array[()]
        case "dict":
            return {key: _rebuild(part, archive) for key, part in content.items()}
        case "list":
            return [_rebuild(part, archive) for part in content]
        case "tuple":
            return tuple(_rebuild(part, archive) for part in content)
        case "value":
            return content
    raise ValueError(f"unknown kind {kind!r}")
