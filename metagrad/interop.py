"""Tensors among other libraries' arrays: NumPy's functions on Tensors, and memory shared by DLPack.

np.exp(t), np.sum(t, axis=0), np.concatenate([t, u]), array * t: NumPy hands such calls over (its protocols
`__array_ufunc__`, NEP 13, and `__array_function__`, NEP 18), and the function of `functional` of that name takes them.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from . import functional as F
from .cuda import CPU, get_device
from .tensor import Tensor, operand


def array_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, options: dict[str, Any]) -> Any:
    """What ufunc(*inputs, **options) is, or ufunc.method(...), where one of the inputs is a Tensor."""
    name = f"np.{ufunc.__name__}"
    if "out" in options:
        raise TypeError(
            f"{name}: a Tensor cannot be written into the memory of an array, its graph would be lost: "
            "write x = x + t instead of x += t, or use the function without out="
        )
    if method != "__call__":
        raise TypeError(f"{name}.{method} has no equivalent for Tensors; say t.detach().numpy() if no graph is needed")
    for option in options:
        raise TypeError(f"{name} takes no {option}= beside a Tensor")
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    # as Tensors: with an array on the left, Python's operators would ask NumPy again
    return _equivalent(ufunc)(*(operand(x, tensors[0].device) for x in inputs))


def array_function(function: Callable, args: tuple, options: dict[str, Any]) -> Any:
    """What function(*args, **options) of NumPy is, where an argument is a Tensor or holds one."""
    ours = _equivalent(function)
    try:
        given = inspect.signature(function).bind(*args, **options)
    except ValueError:  # written in C, and its signature not told: those have our order of arguments
        return ours(*args, **options)
    names, places, values = inspect.signature(ours).parameters, [], {}
    for name, value in given.arguments.items():
        theirs = given.signature.parameters[name]
        if theirs.kind is theirs.VAR_POSITIONAL:
            places.extend(value)
        elif theirs.kind is theirs.VAR_KEYWORD:
            values.update(value)
        elif value is theirs.default:
            continue
        elif _RENAMED.get(name, name) in names:
            values[_RENAMED.get(name, name)] = value
        elif theirs.default is theirs.empty:
            places.append(value)
        else:
            raise TypeError(f"np.{function.__name__} takes no {name}= beside a Tensor")
    return ours(*places, **values)


def from_dlpack(x: Any) -> Tensor:
    """A Tensor on the memory of another library's array (PyTorch, CuPy, JAX, …), which is not copied.

    Both see what either writes; the version guard knows only what is written through Tensors. NumPy before 2.1
    takes such memory as read-only.
    """
    if not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack takes an array with __dlpack__, not a {type(x).__name__}")
    kind, index = x.__dlpack_device__()
    device = get_device(f"cuda:{index}") if kind == _CUDA else CPU
    with device.active():
        return Tensor(device.library.from_dlpack(x))


_CUDA = 2  # kDLCUDA of dlpack.h; the other kinds that NumPy refuses it names itself


def _equivalent(function: Callable) -> Callable:
    ours = _equivalents().get(function)
    if ours is None:
        module = (getattr(function, "__module__", None) or "numpy").replace("numpy", "np", 1)
        raise TypeError(
            f"{module}.{function.__name__} has no equivalent for Tensors; "
            "say t.detach().numpy() if no graph is needed, or write it with functions of metagrad.functional"
        )
    return ours


@functools.cache
def _equivalents() -> dict[Callable, Callable]:
    """Our function for each of NumPy's: those of the same name, and Python's operators for what they are in NumPy."""
    named = {name: f for name, f in vars(F).items() if inspect.isfunction(f)}
    same = {getattr(np, name): f for name, f in named.items() if hasattr(np, name)}
    algebra = {getattr(np.linalg, name): named[name] for name in ("cholesky", "det", "inv", "slogdet", "solve")}
    return same | algebra | _OPERATORS | {np.linalg.norm: _norm, np.amax: F.max, np.amin: F.min}


_OPERATORS: dict[Callable, Callable] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.divide: operator.truediv,
    np.power: operator.pow, np.negative: operator.neg, np.positive: lambda x: x, np.equal: operator.eq,
    np.not_equal: operator.ne, np.less: operator.lt, np.less_equal: operator.le, np.greater: operator.gt,
    np.greater_equal: operator.ge, np.bitwise_and: operator.and_, np.bitwise_or: operator.or_,
    np.invert: operator.invert, np.shape: lambda a: a.shape, np.ndim: lambda a: a.ndim, np.size: lambda a: a.size,
}  # fmt: skip

# NumPy's names of what ours call otherwise
_RENAMED = {"a_min": "low", "a_max": "high", "min": "low", "max": "high"}


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """np.linalg.norm: of a matrix, ord names another norm than that of its entries, which is all there is here."""
    axes = np.ndim(x) if axis is None else np.size(axis)
    if axes > 1 and ord is not None:
        raise TypeError("np.linalg.norm has no equivalent for Tensors where ord is one of matrices: give one axis")
    return F.norm(x, 2 if ord is None else ord, axis, keepdims)
