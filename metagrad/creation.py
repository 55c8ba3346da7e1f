"""Making Tensors: from what a user hands over, and by name (Tensor.zeros, Tensor.rand, …)."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import random
from .cuda import CPU, Array, device_of, get_device, is_array


def as_array(data: Any) -> Array:
    """The array of a Tensor, an array, a number or nested lists of numbers.

    Arrays keep their dtype. Python floats become float32 and integers int64, so that a number written
    in code widens nothing. Raises one sentence for what cannot be an array of numbers.
    """
    if hasattr(data, "__record__"):  # a Tensor
        return data.data
    if is_array(data):
        array = data
    elif isinstance(data, np.generic):
        array = np.asarray(data)
    else:
        if _holds_tensors(data):
            raise TypeError("a list of Tensors is joined by F.stack(list) or F.concatenate(list)")
        try:
            array = np.asarray(data)
        except ValueError as error:
            raise ValueError(f"rows of different lengths make no array: pad them first ({error})") from None
        if array.dtype == np.float64:
            array = array.astype(np.float32)
    if array.dtype.kind not in "fciub":
        raise TypeError(f"a Tensor holds numbers, not {array.dtype}: {str(data)[:60]!r}")
    return array


def _holds_tensors(data: Any) -> bool:
    return isinstance(data, list | tuple) and any(hasattr(x, "__record__") or _holds_tensors(x) for x in data)


def shape_of(args: tuple) -> tuple[int, ...]:
    """zeros(2, 3) and zeros((2, 3)) mean the same."""
    shape = args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args
    if not all(isinstance(n, int | np.integer) for n in shape):
        raise TypeError(f"a shape is made of integers, not {shape!r}")
    return tuple(shape)


class Constructors:
    """The constructors of Tensor. Common arguments:

    shape: integers, or one tuple of them. dtype: float32 unless said. device: "cpu", "cuda:0".
    requires_grad: collect the gradient.
    """

    __slots__ = ()

    @classmethod
    def _make(cls, name: str, *args: Any, device: Any = CPU, dtype: Any = np.float32, requires_grad: bool = False):
        """A Tensor of what the device's library makes under this name."""
        target = get_device(device)
        with target.active():
            array = getattr(target.library, name)(*args, dtype=dtype)
        return cls(array, requires_grad=requires_grad)  # type: ignore[call-arg]

    @classmethod
    def _draw(cls, name: str, shape: tuple, dtype: Any = np.float32, device: Any = CPU, requires_grad: bool = False):
        """A Tensor of draws from the device's random stream."""
        target = get_device(device)
        drawn = np.float32 if np.dtype(dtype) == np.float32 else np.float64
        with target.active():
            array = getattr(random.generator(target), name)(shape_of(shape), dtype=drawn).astype(dtype, copy=False)
        return cls(array, requires_grad=requires_grad)  # type: ignore[call-arg]

    @classmethod
    def zeros(cls, *shape: Any, **options: Any):
        return cls._make("zeros", shape_of(shape), **options)

    @classmethod
    def ones(cls, *shape: Any, **options: Any):
        return cls._make("ones", shape_of(shape), **options)

    @classmethod
    def full(cls, shape: Any, value: float, dtype: Any = None, **options: Any):
        """`value` everywhere, in the dtype of Tensor(value) unless said."""
        dtype = as_array(value).dtype if dtype is None else dtype
        return cls._make("full", shape_of((shape,)), value, dtype=dtype, **options)

    @classmethod
    def arange(cls, start: float, stop: float | None = None, step: float = 1, dtype: Any = None, **options: Any):
        """start, start + step, … below stop; 0, 1, … below start where that is given alone.

        Integers, unless one of the three is a float.
        """
        low, high = (0, start) if stop is None else (start, stop)
        if dtype is None:
            dtype = as_array([low, high, step]).dtype
        return cls._make("arange", low, high, step, dtype=dtype, **options)

    @classmethod
    def eye(cls, rows: int, columns: int | None = None, **options: Any):
        """1 on the diagonal, 0 elsewhere."""
        return cls._make("eye", rows, columns, **options)

    @classmethod
    def rand(cls, *shape: Any, **options: Any):
        """Uniform in [0, 1)."""
        return cls._draw("random", shape, **options)

    @classmethod
    def randn(cls, *shape: Any, **options: Any):
        """Standard normal."""
        return cls._draw("standard_normal", shape, **options)

    @classmethod
    def zeros_like(cls, x: Any):
        return cls._make("zeros", x.shape, dtype=x.dtype, device=x.device)

    @classmethod
    def ones_like(cls, x: Any):
        return cls._make("ones", x.shape, dtype=x.dtype, device=x.device)

    @classmethod
    def full_like(cls, x: Any, value: float):
        return cls._make("full", x.shape, value, dtype=x.dtype, device=x.device)

    @classmethod
    def rand_like(cls, x: Any):
        return cls._draw("random", x.shape, dtype=x.dtype, device=x.device)

    @classmethod
    def randn_like(cls, x: Any):
        return cls._draw("standard_normal", x.shape, dtype=x.dtype, device=x.device)

    @classmethod
    def multinomial(cls, dist: Any, n: int, replace: bool = False):
        """n indices drawn in proportion to dist: (V,) → (n,), or for each row of (B, V) → (B, n).

        dist need not sum to 1 and is only read. Raises ValueError for weights that are negative, not finite or
        all zero, and for more draws without replacement than there are weights above zero.
        """
        weights = as_array(dist)
        with device_of(weights).active():
            return cls(random.multinomial(weights, n, replace))  # type: ignore[call-arg]
