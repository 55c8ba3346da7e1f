"""A stand-in for CuPy on host memory, so that the whole suite runs a second time without a GPU.

Put `standin.cupy` into `sys.modules["cupy"]` before metagrad first looks for CuPy; it pretends to have two
devices. What CuPy refuses is refused with an error of the same type: implicit conversion to NumPy, NumPy
arrays as operands, names and keywords that CuPy lacks. What CuPy accepts and metagrad must never do is
refused too: NumPy functions on an array (CuPy dispatches them), NumPy arrays as indices or values (CuPy
uploads them), arrays of another device than the current one (given peer access CuPy only warns), several
values assigned to one place (CuPy keeps any of them).

The facts were read in the sources and the wheel of CuPy 14.2.0; test_standin.py compares both where CuPy is
installed. Speed, streams and rounding are left to the tests marked gpu, and so are `put`, `x.flat` and
`x.data`.
"""

import functools
import threading
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

N_DEVICES = 2


def _words(text):
    return frozenset(text.split())


# What NumPy has and CuPy lacks: names, methods of an array, keywords and the functions that lack them.
LACKING = _words("""
    False_ True_ ScalarType asmatrix block bmat busday_count busday_offset busdaycalendar bytes_ character
    clongdouble complex256 datetime64 datetime_as_string datetime_data einsum_path errstate flexible
    float128 frompyfunc fromregex geomspace get_include getbufsize geterr geterrcall histogram_bin_edges
    info insert is_busday isnat little_endian longdouble matrix matvec memmap nanpercentile nanquantile
    ndenumerate nditer nested_iters object_ polyder polydiv polyint recarray record sctypeDict setbufsize
    seterr seterrcall show_runtime spacing str_ test timedelta64 typecodes unstack vecdot vecmat void""")
LACKING_IN_LINALG = _words("""
    diagonal matrix_norm multi_dot outer svdvals tensordot test trace vecdot vector_norm""")
LACKING_METHODS = _words("ctypes getfield resize setfield setflags to_device")
_REDUCTIONS = """
    all amax amin any max mean min nanmax nanmean nanmin nanprod nanstd nansum nanvar prod
    reduce std sum var"""
LACKING_KEYWORDS = {
    keyword: _words(functions)
    for keyword, functions in {
        "where": _REDUCTIONS,
        "initial": _REDUCTIONS,
        "correction": "nanstd nanvar std var",
        "mean": "nanstd nanvar std var",
        "min": "clip",
        "max": "clip",
        "mode": "take",
        "axis": "lexsort trim_zeros",
        "order": "argpartition argsort einsum partition sort",
        "kind": "argpartition isin partition",
        "stable": "argsort sort",
        "casting": "astype einsum",
        "subok": "astype broadcast_arrays broadcast_to copy",
        "out": "einsum",
        "keepdims": "count_nonzero",
        "shape": "reshape unravel_index",
        "sorted": "unique",
        "weights": "percentile quantile",
    }.items()
}
# The functions with a method .at, and the dtypes (NumPy's letters) it takes: those with an atomic operation.
ATOMIC = {
    "add": "ilqILQefd",
    "subtract": "iI",
    "maximum": "ilqILQfd",
    "minimum": "ilqILQfd",
    "bitwise_and": "ilqILQ",
    "bitwise_or": "ilqILQ",
    "bitwise_xor": "ilqILQ",
}
UFUNC_METHODS = {"reduce": ("add", "multiply"), "accumulate": ("add", "multiply"), "reduceat": ("add",)}
GENERATOR_METHODS = _words("""
    beta binomial chisquare dirichlet exponential f gamma geometric hypergeometric integers logseries
    poisson power random standard_exponential standard_gamma standard_normal uniform""")

CREATES = _words("array asarray asanyarray ascontiguousarray asfortranarray")
# Views, metadata, new arrays of the same shape, copies between memories: no kernel reads the array, so it may
# lie on another device than the current one.
RUNS_NO_KERNEL = _words("""
    reshape transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis squeeze expand_dims ravel
    view diagonal broadcast_to broadcast_arrays flip rot90 split array_split hsplit vsplit dsplit
    atleast_1d atleast_2d atleast_3d real imag zeros_like ones_like empty_like full_like copy tolist
    tobytes shape ndim size result_type can_cast may_share_memory shares_memory iscomplexobj isrealobj""")
# NumPy answers these with a Python number, CuPy with a 0-d array.
ANSWERS_ON_DEVICE = _words("allclose array_equal array_equiv count_nonzero")
# CuPy passes these on to a method of their first argument, which therefore must be an array.
NEEDS_ARRAY = (frozenset(dir(np.ndarray)) | _words("where lexsort")) - _words("real imag shape ndim size")
NOT_OFFERED = _words("data flat put")


# ── devices ─────────────────────────────────────────────────────────────────────────────────────────────
class CUDARuntimeError(RuntimeError):
    pass


class _Current(threading.local):
    """The current device of a thread, and those that its open `with` blocks replaced."""

    id = 0
    replaced: tuple[int, ...] = ()


_current = _Current()


class Device:
    """A device by its number; without a number the current one."""

    __slots__ = ("id",)

    def __init__(self, device=None):
        self.id = _current.id if device is None else int(device)

    def use(self):
        if not 0 <= self.id < N_DEVICES:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        _current.id = self.id
        return self

    def __enter__(self):
        replaced = (*_current.replaced, _current.id)
        self.use()
        _current.replaced = replaced
        return self

    def __exit__(self, *exception):
        *replaced, _current.id = _current.replaced
        _current.replaced = tuple(replaced)

    def __eq__(self, other):  # and so no hash, as in CuPy: the key to use is device.id
        return isinstance(other, Device) and self.id == other.id

    def __int__(self):
        return self.id

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    def synchronize(self):
        pass


def _check_devices(operands):
    for operand in operands:
        if operand.device != Device():
            raise ValueError(
                f"The device where the array resides ({operand.device.id}) is different from the current "
                f"device ({_current.id}). Peer access is unavailable between these devices."
            )


# ── from CuPy's names to NumPy's functions ──────────────────────────────────────────────────────────────
def _operands(name, value) -> Iterator["ndarray"]:
    """The stand-in's arrays in an argument, however nested; an array of any other kind raises."""
    if isinstance(value, ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _operands(name, item)
    elif hasattr(type(value), "__array__") and not isinstance(value, np.generic):
        raise TypeError(f"cupy.{name}: Unsupported type {type(value)}")


def _unwrap(value):
    if isinstance(value, ndarray):
        return value._array
    return type(value)(map(_unwrap, value)) if type(value) in (list, tuple) else value


def _hold(array, parent=None):
    """The stand-in's array around a NumPy array: a view of its parent, or new on the current device."""
    if array.dtype.kind not in "biufc" or array.dtype.char in "gG":
        raise ValueError(f"Unsupported dtype {array.dtype}")
    held = object.__new__(ndarray)
    held._array = array
    held.base = None if parent is None else parent if parent.base is None else parent.base
    held.device = Device() if parent is None else parent.device
    return held


def _owner(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _wrap(result, operands):
    """NumPy's answer as CuPy gives it: the stand-in's arrays, and never a NumPy scalar."""
    if isinstance(result, list | tuple):
        items = [_wrap(item, operands) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not isinstance(result, np.ndarray):
        return result
    for operand in operands:
        if operand._array is result:
            return operand
    return _hold(result, next((x for x in operands if _owner(x._array) is _owner(result)), None))


def _call(name, function, /, *args, **kwargs):
    """Check the operands, let NumPy's function work on what they hold, wrap what it returns."""
    for keyword in kwargs:
        if keyword in ("device", "like") or name in LACKING_KEYWORDS.get(keyword, ()):
            raise TypeError(f"cupy.{name}() got an unexpected keyword argument {keyword!r}")
    if name in CREATES and not isinstance(args[0], ndarray):
        return _hold(np.array(function(*_unwrap(args), **kwargs), order="K"))  # the upload: the one way in
    operands = [*_operands(name, args), *_operands(name, [*kwargs.values()])]
    if name in CREATES:
        args = (args[0] if args[0].device == Device() else args[0].copy(), *args[1:])
    elif name in NEEDS_ARRAY and args and not isinstance(args[0], ndarray):
        raise AttributeError(f"cupy.{name} takes a cupy.ndarray first, not {type(args[0])}")
    elif name not in RUNS_NO_KERNEL:
        _check_devices(operands)
    if name == "take":
        kwargs["mode"] = "wrap"
    elif name in ("sort", "argsort"):
        if kwargs.get("kind") not in (None, "stable"):
            raise ValueError("kind can only be None or 'stable'")
        kwargs["kind"] = "stable"
    with np.errstate(all="ignore"):  # no kernel warns of an overflow or of a division by zero
        result = function(*_unwrap(args), **{keyword: _unwrap(value) for keyword, value in kwargs.items()})
    return _wrap(np.asarray(result) if name in ANSWERS_ON_DEVICE else result, operands)


class ufunc:
    """An elementwise function: its operands are arrays and Python's or NumPy's scalars, nothing else."""

    def __init__(self, function):
        self._function, self.__name__ = function, function.__name__

    def __call__(self, *args, **kwargs):
        if kwargs.keys() - {"out", "dtype", "casting"}:
            raise TypeError(f"cupy.{self.__name__}: Wrong arguments {kwargs}")
        for value in args[: self._function.nin]:
            if not isinstance(value, ndarray | np.generic | bool | int | float | complex):
                raise TypeError(f"cupy.{self.__name__}: Unsupported type {type(value)}")
        return _call(self.__name__, self._function, *args, **kwargs)

    def __getattr__(self, method):
        if method not in (*UFUNC_METHODS, "outer"):
            raise AttributeError(f"'cupy.ufunc' object has no attribute {method!r}")
        if self.__name__ not in UFUNC_METHODS.get(method, (self.__name__,)):
            raise NotImplementedError(f"`cupy_{self.__name__}.{method}` is not supported yet")
        return functools.partial(_call, method, getattr(self._function, method))

    def at(self, a, indices, b=None):
        if self.__name__ not in ATOMIC:
            raise NotImplementedError(f"`cupy_{self.__name__}.at` is not supported yet")
        if a.dtype.char not in ATOMIC[self.__name__]:
            raise TypeError(f"cupy.{self.__name__}.at does not support the data type {a.dtype}")
        _check_devices([a, *_operands(f"{self.__name__}.at", (indices, b))])
        self._function.at(a._array, a._index(indices)[0], np.asarray(_unwrap(b)).astype(a.dtype))


class _Library(types.ModuleType):
    """A module of NumPy under CuPy's name, less what CuPy lacks."""

    def __init__(self, name, source, lacking):
        super().__init__(name)
        self._source, self._lacking = source, lacking

    def __getattr__(self, name):
        value = getattr(self._source, name, None)
        if (
            name.startswith("_")
            or name in self._lacking | NOT_OFFERED
            or not hasattr(self._source, name)
            or isinstance(value, types.ModuleType)
        ):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if isinstance(value, np.ufunc):
            value = ufunc(value)
        elif callable(value) and not (isinstance(value, type) and issubclass(value, np.generic | np.dtype)):
            value = functools.partial(_call, name, value)
        setattr(self, name, value)
        return value


# ── arrays ──────────────────────────────────────────────────────────────────────────────────────────────
class ndarray:
    """An array that is not NumPy's. Methods come from NumPy by `__getattr__`, operators are set below."""

    __slots__ = ("_array", "base", "device", "__weakref__")
    __module__ = "cupy"
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape, dtype=float):
        self._array, self.base, self.device = np.empty(shape, dtype), None, Device()

    def __getattr__(self, name):
        if name.startswith("_") or name in LACKING_METHODS | NOT_OFFERED or not hasattr(np.ndarray, name):
            raise AttributeError(f"'cupy.ndarray' object has no attribute {name!r}")
        function = getattr(np.ndarray, name)
        if not callable(function):
            return _wrap(getattr(self._array, name), [self])
        label = "ndarray.clip" if name == "clip" else name  # unlike the function it takes min= and max=
        return functools.partial(_call, label, function, self)

    @property
    def flags(self):
        flags = self._array.flags
        return types.SimpleNamespace(
            c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, owndata=self.base is None
        )

    def get(self, stream=None, order="C", out=None, blocking=True):
        if out is None:
            return self._array.copy(order=order)
        np.copyto(out, self._array, casting="no")
        return out

    def item(self):
        return self._array.item()

    def fill(self, value):
        self[...] = value

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        with self.device:
            return self.copy()

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_function__(self, function, kinds, args, kwargs):
        raise TypeError(f"numpy.{function.__name__} was called on a cupy.ndarray; call its own library's")

    def __array_ufunc__(self, function, method, *inputs, **kwargs):
        name = function.__name__
        if any(_has_its_own_ufuncs(x) for x in inputs):
            return NotImplemented
        if name in COMPARISONS.values() and isinstance(inputs[0], np.ndarray) and inputs[0].ndim == 0:
            inputs = (inputs[0][()], *inputs[1:])  # what NumPy makes of the scalar in np.float32(2) < x
        if method == "__call__" and name in OPERATORS.values() and isinstance(inputs[0], np.generic):
            return getattr(cupy, name)(*inputs, **kwargs)  # np.float32(2) * x
        mixed = "".join(f": Unsupported type {type(x)}" for x in inputs if isinstance(x, np.ndarray))
        raise TypeError(f"numpy.{name} was called on a cupy.ndarray{mixed}; call its own library's")

    def _index(self, key):
        """NumPy's form of a key, and whether it is basic. Integers in arrays wrap around, others do not."""
        parts = [_unwrap(part) for part in (key if isinstance(key, tuple) else (key,))]
        hidden = self.ndim - sum(map(_axes_taken, parts))
        axis, basic = 0, True
        for i, part in enumerate(parts):
            if isinstance(part, list | tuple):
                part = np.asarray(part) if len(part) else np.empty(0, int)
            if isinstance(part, np.ndarray) and part.dtype.kind in "iu" and self.shape[axis : axis + 1] != (0,):
                part = part.astype(np.int64) % self.shape[axis]
            basic &= not isinstance(part, np.ndarray | bool | np.bool_)
            axis += hidden if part is Ellipsis else _axes_taken(part)
            parts[i] = part
        if basic and not any(part is Ellipsis for part in parts):
            parts.append(Ellipsis)  # so that a single element is a 0-d view
        return tuple(parts), basic

    def __getitem__(self, key):
        operands = [self, *_operands("ndarray.__getitem__", key)]
        index, basic = self._index(key)
        if not basic:
            _check_devices(operands)
        return _wrap(self._array[index], [self])

    def __setitem__(self, key, value):
        keys = [*_operands("ndarray.__setitem__", key)]
        index, basic = self._index(key)
        if basic and not isinstance(value, ndarray) and np.ndim(value) > 0:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        _check_devices([self, *keys, *_operands("ndarray.__setitem__", value)])
        if not basic and np.size(_unwrap(value)) > 1:
            places = np.arange(self.size).reshape(self.shape)[index]
            if np.unique(places).size < places.size:
                raise RuntimeError("several values for one place: which of them stays is undefined in CuPy")
        with np.errstate(all="ignore"):
            self._array[index] = _unwrap(value)

    def __iter__(self):
        return (self[i] for i in range(len(self)))


def _axes_taken(part):
    if part is None or part is Ellipsis or isinstance(part, bool | np.bool_):
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype.kind == "b" else 1


COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
OPERATORS = COMPARISONS | {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "matmul": "matmul",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "divmod": "divmod",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}


def _operator(function, reflected=False):
    def operator(self, other):
        if other is None and function in ("equal", "not_equal"):
            return cupy.full(self.shape, function == "not_equal")
        if not isinstance(other, ndarray):  # CuPy's rule for leaving the work to the other operand
            outranks = getattr(other, "__array_priority__", 0) > self.__array_priority__
            if getattr(other, "__array_ufunc__", None if outranks else ...) is None:
                return NotImplemented
            if not reflected and _has_its_own_ufuncs(other):  # NumPy asks both, see __array_ufunc__
                return getattr(np, function)(self, other)
        return getattr(cupy, function)(*((other, self) if reflected else (self, other)))

    return operator


def _has_its_own_ufuncs(x):
    """Whether x is of a third kind, neither of CuPy nor of NumPy, to which CuPy leaves a ufunc."""
    return not isinstance(x, ndarray | np.ndarray | np.generic) and getattr(x, "__array_ufunc__", None) is not None


def _in_place(function):
    return lambda self, other: getattr(cupy, function)(self, other, self)


def _unary(function):
    return lambda self: getattr(cupy, function)(self)


def _on_host(method):
    return lambda self, *args: getattr(self._array, method)(*args)


for _name, _function in OPERATORS.items():
    setattr(ndarray, f"__{_name}__", _operator(_function))
    if _name not in COMPARISONS:
        setattr(ndarray, f"__r{_name}__", _operator(_function, reflected=True))
        if _name not in ("matmul", "divmod"):  # CuPy has no __imatmul__
            setattr(ndarray, f"__i{_name}__", _in_place(_function))
for _name, _function in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
    setattr(ndarray, f"__{_name}__", _unary(_function))
for _name in ("bool", "int", "float", "complex", "len", "repr", "str", "format"):
    setattr(ndarray, f"__{_name}__", _on_host(f"__{_name}__"))


def _along_axis(a, indices, axis):
    grid: list[Any] = [_hold(part) for part in np.ogrid[tuple(map(slice, a.shape))]]
    grid[axis] = indices
    return tuple(grid)


# ── random streams, and the module itself ───────────────────────────────────────────────────────────────
class Generator:
    """Random numbers on the device of its birth; not the numbers of NumPy's generator with the same seed."""

    def __init__(self, seed):
        self._generator, self._device = np.random.Generator(np.random.Philox(seed)), Device()

    def __getattr__(self, name):
        if name not in GENERATOR_METHODS:
            raise AttributeError(f"'cupy.random.Generator' object has no attribute {name!r}")
        return functools.partial(self._draw, name)

    def _draw(self, name, *args, **kwargs):
        if Device() != self._device:
            raise RuntimeError("This Generator state is allocated in a different device")
        if name == "integers" and [*_operands(name, [*args, *kwargs.values()])]:
            raise TypeError("cupy.random.Generator.integers takes numbers as bounds, not arrays")
        result = _call(f"random.{name}", getattr(self._generator, name), *args, **kwargs)
        return result if isinstance(result, ndarray) else _hold(np.asarray(result))


def _as_strided(x, shape=None, strides=None):
    return _hold(np.lib.stride_tricks.as_strided(x._array, shape, strides), parent=x)


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    return a.get(order=order, out=out) if isinstance(a, ndarray) else np.asarray(a, order=order)


def _module(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    return module


_pool = types.SimpleNamespace(free_all_blocks=lambda: None, used_bytes=lambda: 0, total_bytes=lambda: 0)
cupy: Any = _Library("cupy", np, LACKING)
cupy.__dict__.update(
    __version__="14.2.0",
    ndarray=ndarray,
    ufunc=ufunc,
    asnumpy=asnumpy,
    is_available=lambda: True,
    get_array_module=lambda *args: cupy if any(isinstance(x, ndarray) for x in args) else np,
    get_default_memory_pool=lambda: _pool,
    iinfo=np.iinfo,
    finfo=np.finfo,
    take_along_axis=lambda a, indices, axis: a[_along_axis(a, indices, axis)],
    put_along_axis=lambda arr, indices, values, axis: arr.__setitem__(_along_axis(arr, indices, axis), values),
    lib=_module("cupy.lib", stride_tricks=_module("cupy.lib.stride_tricks", as_strided=_as_strided)),
    linalg=_Library("cupy.linalg", np.linalg, LACKING_IN_LINALG),
    random=_module(
        "cupy.random",
        Generator=Generator,
        default_rng=lambda seed=None: seed if isinstance(seed, Generator) else Generator(seed),
    ),
    cuda=_module(
        "cupy.cuda",
        Device=Device,
        is_available=lambda: True,
        get_device_id=lambda: _current.id,
        get_current_stream=lambda: types.SimpleNamespace(synchronize=lambda: None),
        runtime=_module(
            "cupy.cuda.runtime",
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=lambda: N_DEVICES,
            getDevice=lambda: _current.id,
        ),
    ),
)
