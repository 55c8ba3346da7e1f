"""Devices: which library holds an array, how arrays move, and where the libraries differ.

The only file that names CuPy, and it imports it only when someone asks for a GPU.
Everything above calls `array_module(x)` and writes plain array code.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

Array = Any  # a numpy.ndarray or a cupy.ndarray: one file for both, so one name for both

# The library of each array type met so far. One dictionary look-up serves the hot path.
_libraries: dict[type, ModuleType] = {np.ndarray: np}


@dataclass(frozen=True)
class Device:
    """`Device("cpu")` or `Device("cuda", 0)`; prints as `cpu` or `cuda:0`."""

    kind: str
    index: int = 0

    def __str__(self) -> str:
        return "cpu" if self.kind == "cpu" else f"{self.kind}:{self.index}"

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"

    @property
    def library(self) -> ModuleType:
        """The array library that works on this device."""
        return np if self.kind == "cpu" else _cupy()

    def active(self) -> contextlib.AbstractContextManager:
        """A context in which `library` makes arrays and runs kernels on this device.

        CuPy works on its current device wherever the operands lie, so every operation on a GPU is within one.
        """
        return contextlib.nullcontext() if self.kind == "cpu" else _cupy().cuda.Device(self.index)


CPU = Device("cpu")


def _cupy() -> ModuleType:
    """CuPy, imported at the first call. Raises one sentence where it is not installed."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise RuntimeError(
            "a cuda device needs CuPy, which is not installed here: "
            "`pip install metagrad[cuda12]` (or [cuda13], by your driver), or use the device 'cpu'"
        ) from error
    _libraries[cupy.ndarray] = cupy
    return cupy


def device_count() -> int:
    """How many GPUs can be used: 0 without CuPy, without a driver, and without a GPU."""
    try:
        return int(_cupy().cuda.runtime.getDeviceCount())
    except Exception:  # CuPy raises its own error types where a driver or a library is missing
        return 0


def is_available() -> bool:
    """Whether a GPU can be used."""
    return device_count() > 0


def get_device(device: str | int | Device) -> Device:
    """The device of a name: "cpu", "cuda" (the first GPU), "cuda:1", or a GPU's number.

    Raises ValueError for a name that means nothing and RuntimeError for a GPU that is not there.
    """
    if isinstance(device, Device):
        kind, index = device.kind, device.index
    elif isinstance(device, int):
        kind, index = "cuda", device
    else:
        kind, colon, number = str(device).partition(":")
        if kind not in ("cpu", "cuda") or (colon and not number.isdecimal()) or (kind == "cpu" and colon):
            raise ValueError(f"no device is called {device!r}: say 'cpu', 'cuda' or 'cuda:<number>'")
        index = int(number) if colon else 0
    if kind == "cpu":
        return CPU
    _cupy()
    count = device_count()
    if not 0 <= index < count:
        raise RuntimeError(
            f"no device 'cuda:{index}': this machine offers {count} GPU(s); "
            "cuda.is_available() tells beforehand, 'cpu' always works"
        )
    return Device("cuda", index)


def array_module(x: Any) -> Any:
    """The namespace of x's functions: numpy, cupy, or metagrad.functional for a Tensor."""
    return _libraries.get(type(x)) or _module_of_new_type(x)


def _module_of_new_type(x: Any) -> Any:
    if _is_cupy(x):
        return _libraries.setdefault(type(x), sys.modules["cupy"])
    if isinstance(x, np.generic | np.ndarray | int | float | complex | list | tuple):
        return np
    return x.__array_namespace__()


def is_array(x: Any) -> bool:
    """Whether x is an array of a library that Tensors can hold."""
    return type(x) is np.ndarray or isinstance(x, np.ndarray) or _is_cupy(x)


def _is_cupy(x: Any) -> bool:
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(x, cupy.ndarray)


def device_of(x: Array) -> Device:
    """The device that holds the array x."""
    return Device("cuda", x.device.id) if _is_cupy(x) else CPU


def to_device(x: Array, device: Device) -> Array:
    """The array x on `device`: itself if it is there already, a copy otherwise."""
    source = device_of(x)
    if source == device:
        return x
    if device == CPU:
        return device.library.asarray(x.get())
    with device.active():
        return device.library.asarray(x)


def copied(x: Array) -> Array:
    """A copy of the array x where x is; CuPy's own copy lands on the current GPU."""
    with device_of(x).active():
        return x.copy()


def make_current(x: Any) -> None:
    """Make the GPU that holds x CuPy's current device; nothing is done for what is not on a GPU."""
    if _is_cupy(x):
        x.device.use()


@contextlib.contextmanager
def current_device_kept() -> Iterator[None]:
    """A block after which CuPy's current device is what it was before."""
    cupy = sys.modules.get("cupy")
    try:
        before = cupy and cupy.cuda.Device()
    except Exception:  # CuPy is there, a GPU is not: there is no current device
        before = None
    try:
        yield
    finally:
        if before is not None:
            before.use()
