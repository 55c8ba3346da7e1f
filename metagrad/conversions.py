"""Conversions: a Tensor as Python's numbers, as text, as an array of NumPy or of any other library."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .cuda import CPU, Array, device_of, to_device


class Conversions:
    """The methods of Tensor that others ask for its values by."""

    __slots__ = ()

    data: Array
    requires_grad: Any

    def __repr__(self) -> str:
        text = np.array2string(self.numpy(), separator=", ", prefix="Tensor(")
        details = [] if self.data.dtype in (np.float32, np.int64, np.bool_) else [f"dtype={self.data.dtype}"]
        details += [] if device_of(self.data) == CPU else [f"device={str(device_of(self.data))!r}"]
        details += ["requires_grad=True"] if self.requires_grad else []
        return f"Tensor({', '.join([text, *details])})"

    def __bool__(self) -> bool:
        if self.data.size != 1:
            raise ValueError(
                f"the truth of a Tensor of shape {self.data.shape} is ambiguous: compare one entry, or use .sum()"
            )
        return bool(self.data)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.data.dtype.kind not in "iu" or self.data.size != 1:
            kind = f"{self.data.dtype} {self.data.shape}"
            raise TypeError(f"only an integer Tensor with one entry is an index, not {kind}")
        return int(self.data)

    def item(self) -> Any:
        """The one entry as a Python number: add up `loss.item()`, not `loss`, which keeps its graph alive."""
        if self.data.size != 1:
            raise ValueError(f"item() needs a Tensor with one entry, this one has shape {self.data.shape}")
        return self.data.item()

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array: the memory itself on the CPU, a copy from a GPU."""
        return to_device(self.data, CPU)

    def tolist(self) -> Any:
        return self.data.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.requires_grad:
            raise TypeError("np.asarray would lose this Tensor's graph: say x.detach() or x.numpy() if that is meant")
        if device_of(self.data) != CPU:
            raise TypeError(f"np.asarray does not move data off {device_of(self.data)}: say x.numpy() or x.cpu()")
        return np.array(self.data, dtype=dtype, copy=copy)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        """metagrad.functional: what rules call when they run on Tensors."""
        return above("functional")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """np.exp(t), array * t: see interop.py."""
        return above("interop").array_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: tuple, options: dict[str, Any]) -> Any:
        """np.sum(t), np.concatenate([t, u]): see interop.py."""
        return above("interop").array_function(function, args, options)

    def __dlpack__(self, **options: Any) -> Any:
        """The memory itself for another library: torch.from_dlpack(t). The way back is metagrad.from_dlpack."""
        if self.requires_grad:
            raise BufferError("__dlpack__ would lose this Tensor's graph: say x.detach() if that is meant")
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()


def above(module: str) -> Any:
    """A module that stands above this one, so by name."""
    return sys.modules[f"{__package__}.{module}"]
