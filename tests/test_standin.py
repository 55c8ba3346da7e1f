"""The stand-in for CuPy: it computes as NumPy does and refuses what CuPy refuses.

Where the real package is installed, its names and signatures are compared too; these need no GPU.
"""

import copy
import inspect
import operator
import threading
import types

import numpy as np
import pytest

from . import standin

cupy = standin.cupy
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def x():
    return cupy.asarray(MATRIX)


@pytest.fixture(scope="module")
def real():
    package = pytest.importorskip("cupy", reason="the real CuPy is not installed")
    if package is standin.cupy:
        pytest.skip("the stand-in is installed in CuPy's place")
    return package


def same(ours, theirs):
    """Whether the stand-in's answer is NumPy's, in its own arrays where NumPy has arrays or scalars."""
    if isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, np.ndarray | np.generic):
        assert isinstance(ours, cupy.ndarray)
        return ours.dtype == theirs.dtype and np.array_equal(ours.get(), theirs, equal_nan=True)
    return type(ours) is type(theirs) and ours == theirs


# ── it computes ─────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "expression",
    [
        "x + x",
        "x * 2",
        "2 - x",
        "x / 3",
        "x // 2",
        "x % 2",
        "2 ** x",
        "x ** 2",
        "-x",
        "abs(x)",
        "x > 2",
        "x != x.T[0, 0]",
        "divmod(x, 2)",
        "x @ x.T",
        "np.float64(3) * x",
        "np.float32(3) < x",
        "(x > 1) & (x < 4) | ~(x == 0)",
        "xp.exp(x)",
        "xp.maximum(x, 1.5)",
        "xp.where(x > 1, x, 0.0)",
        "xp.einsum('ij,kj->ik', x, x, optimize=True)",
        "x.sum()",
        "x.sum(axis=0, keepdims=True)",
        "x.mean(axis=(0, 1))",
        "x.max()",
        "x.argmax(axis=1)",
        "x.var(ddof=1)",
        "(x > 2).any()",
        "x.cumsum(axis=1)",
        "x.clip(1, 2)",
        "x.clip(min=1)",
        "x.round(1)",
        "x.dot(x.T)",
        "x.prod()",
        "xp.concatenate([x, x], axis=1)",
        "xp.stack((x, x))",
        "xp.split(x, 3, axis=1)",
        "xp.tensordot(x, x, 2)",
        "x[0]",
        "x[1, 2]",
        "x[..., None, ::2]",
        "x[[1, 0]]",
        "x[:, [2, 0]]",
        "x[[1, 0], [2, 2]]",
        "x[x > 2]",
        "x[[]]",
        "x[xp.asarray([1, -1])]",
        "x[xp.asarray([True, False])]",
        "x[1][xp.asarray(2)]",
        "x[True]",
        "x.take(xp.asarray([0, 2]), axis=1)",
        "xp.take_along_axis(x, xp.argsort(-x, axis=1), axis=1)",
        "xp.searchsorted(x[1], x[0] + 2, side='right')",
        "xp.lexsort(x)",
        "xp.unique(x > 1, return_counts=True)",
        "xp.add.reduce(x, axis=1)",
        "xp.add.reduceat(x, [0, 2], axis=1)",
        "xp.multiply.outer(x, x)",
        "xp.linalg.norm(x)",
        "x.shape",
        "x.nbytes",
        "x.strides",
        "x.dtype",
        "x.ndim",
        "x[0, 1].item()",
        "x.tolist()",
        "x.T",
        "x.real",
        "xp.result_type(x, 1.0)",
        "xp.finfo(x.dtype).bits",
        "xp.zeros((2, 1), dtype=xp.int32)",
        "xp.pi",
        "xp.newaxis",
        "float(x[1, 1])",
        "int(x[1, 1])",
        "bool(x[1, 1])",
        "len(x)",
        "repr(x)",
        "f'{x[1, 1]:.2f}'",
        "[*x][1]",
        "x.astype(xp.float16)",
        "x.reshape(3, -1)",
        "x.transpose(1, 0)",
        "x.squeeze()",
        "x.flatten()",
    ],
)
def test_the_values_and_dtypes_are_numpys(expression, x):
    theirs = eval(expression, {"x": MATRIX.copy(), "xp": np, "np": np})
    assert same(eval(expression, {"x": x, "xp": cupy, "np": np}), theirs)


@pytest.mark.parametrize(
    "expression",
    [
        "x.sum()",
        "x[0, 1]",
        "xp.allclose(x, x)",
        "xp.count_nonzero(x)",
        "xp.exp(1.0)",
    ],
)
def test_one_element_is_an_array_without_axes(expression, x):
    answer = eval(expression, {"x": x, "xp": cupy})
    assert isinstance(answer, cupy.ndarray)
    assert answer.shape == ()


@pytest.mark.parametrize(
    "view",
    [
        "x[1:]",
        "x[0, 1]",
        "x.T",
        "x.reshape(-1)",
        "x.ravel()",
        "x[None].swapaxes(0, 1)[0]",
        "xp.broadcast_to(x, (4, 2, 3))",
    ],
)
def test_a_view_shares_memory_and_knows_its_base(view, x):
    view = eval(view, {"x": x, "xp": cupy})
    assert view.base is x
    assert not view.flags.owndata
    x += 1
    assert set(view.get().ravel()) <= set(x.get().ravel())


def test_an_element_is_a_view_that_in_place_operators_write_through(x):
    element = x[1, 2]
    element += 10
    assert x[1, 2].item() == 15


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow"])
def test_in_place_operators_keep_the_array(name, x):
    before, y = x, MATRIX.copy()
    x = getattr(operator, f"i{name}")(x, 2)
    assert x is before
    assert same(x, getattr(operator, f"i{name}")(y, 2))


def test_out_is_written_and_returned(x):
    out = cupy.empty((2, 3), dtype=np.float32)
    assert cupy.exp(x, out=out) is out
    assert cupy.matmul(x, x.T, out=out[:, :2]).base is out
    np.testing.assert_array_equal(out.get()[:, :2], MATRIX @ MATRIX.T)


def test_uploads_and_downloads_copy(x):
    host = MATRIX.copy()
    device = cupy.asarray(host)
    host[:] = 0
    assert same(device, MATRIX)
    device.get()[:] = 0
    assert same(device, MATRIX)
    assert cupy.asnumpy(device, out=host) is host
    assert cupy.asarray(device) is device
    assert cupy.array(device) is not device
    assert same(cupy.asarray([device, device]), np.stack([MATRIX, MATRIX]))


def test_no_function_warns_as_no_kernel_does(x, recwarn):
    assert np.isinf(cupy.log(x * 0).get()).all()
    x[...] = 1 / (x * 0)
    assert not recwarn.list


def test_the_other_operand_does_the_work_if_it_asks_for_it(x):
    class Tensor:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "reflected"

    class Ranked:
        __array_priority__ = 101
        __rmatmul__ = Tensor.__radd__

    assert x + Tensor() == "reflected"
    assert x @ Ranked() == "reflected"
    with pytest.raises(TypeError, match="Unsupported type"):
        x += Tensor()


# ── it refuses ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "expression",
    [
        "np.asarray(x)",
        "np.array(x)",
        "np.array([x, x])",
        "np.exp(x)",
        "np.concatenate([x])",
        "np.sum(x)",
        "np.add.at(a, x, 1)",
        "np.maximum(x, 0)",
        "np.shape(x)",
        "np.testing.assert_allclose(x, x)",
        "x + a",
        "a + x",
        "x @ a.T",
        "x == a",
        "x + a[0, 0, None]",
        "x + [1]",
        "[1] + x",
        "x + None",
        "x < object()",
        "x[i]",
        "x[:, i]",
        "x[a > 0]",
        "a[x > 0]",
        "a[xp.asarray(i)]",
        "operator.iadd(x, a)",
        "operator.iadd(a, x)",
        "operator.setitem(x, xp.asarray(i), a)",
        "operator.setitem(x, i, 0)",
        "operator.setitem(a, 0, x[0])",
        "xp.exp(a)",
        "xp.exp([1])",
        "xp.exp(x, out=a)",
        "xp.exp(x, where=x > 0)",
        "xp.where(x > 0, a, 0)",
        "xp.sum(a)",
        "xp.take(x, i)",
        "xp.concatenate([x, a])",
        "x.dot(a.T)",
        "xp.add.at(x, i, 1)",
        "xp.add.at(x > 0, xp.asarray(i), 1)",
        "range(x.argmax())",
        "[0, 1][x.argmax()]",
        "hash(x)",
        "hash(x.device)",
        "x.item(0)",
        "len(x[0, 0])",
        "[*x[0, 0]]",
        "xp.clip(x, min=0)",
        "xp.sum(x, where=x > 0)",
        "x.max(initial=0)",
        "x.take(xp.asarray(i), mode='clip')",
        "xp.zeros(3, like=x)",
        "xp.zeros(3, device=0)",
        "xp.take_along_axis(x, x.argmax(axis=1, keepdims=True))",
        "xp.random.default_rng(0).integers(xp.asarray(i))",
    ],
)
def test_type_errors(expression, x):
    with pytest.raises(TypeError):
        eval(
            expression, {"x": x, "a": MATRIX.copy(), "i": np.array([0, 1]), "xp": cupy, "np": np, "operator": operator}
        )


def test_a_numpy_function_is_named_when_it_is_refused(x):
    with pytest.raises(TypeError, match=r"numpy\.exp"):
        np.exp(x)
    with pytest.raises(TypeError, match=r"numpy\.concatenate"):
        np.concatenate([x])
    with pytest.raises(TypeError, match=r"cupy\.add: Unsupported type <class 'numpy.ndarray'>"):
        x + MATRIX
    with pytest.raises(TypeError, match=r"numpy\.add .*Unsupported type <class 'numpy.ndarray'>"):
        MATRIX + x


@pytest.mark.parametrize(
    "expression",
    [
        "xp.errstate",
        "xp.insert",
        "xp.vecdot",
        "xp.random.seed",
        "xp.random.default_rng(0).permutation",
        "xp.random.default_rng(0).normal",
        "x.setflags",
        "x.flags.writeable",
        "x.__array_interface__",
        "x.__index__",
        "x.data",
        "xp.sum([1])",
        "xp.lexsort((x, x))",
        "xp.where(True, x, x)",
        "xp.exp.nonsense",
    ],
)
def test_attribute_errors(expression, x):
    with pytest.raises(AttributeError):
        eval(expression, {"x": x, "xp": cupy})


@pytest.mark.parametrize(
    "expression",
    [
        "xp.maximum.reduce(x)",
        "xp.multiply.at(x, 0, 1)",
        "xp.maximum.reduceat(x, [0])",
    ],
)
def test_methods_that_cupys_functions_lack(expression, x):
    with pytest.raises(NotImplementedError):
        eval(expression, {"x": x, "xp": cupy})


@pytest.mark.parametrize(
    "expression",
    [
        "xp.asarray(['a'])",
        "xp.asarray(np.array([None]))",
        "x.sort(kind='quicksort')",
        "xp.asarray(np.zeros(1, 'M8[s]'))",
        "bool(x)",
        "x.__setitem__(0, [1, 2, 3])",
        "x.__setitem__(..., np.ones((2, 3)))",
    ],
)
def test_value_errors(expression, x):
    with pytest.raises(ValueError):
        eval(expression, {"x": x, "xp": cupy, "np": np})


# ── indices ─────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "read",
    [
        "x[i]",
        "x.take(i, axis=0)",
        "x[..., i, :]",
        "x[i.astype('u1')]",
    ],
)
def test_integers_in_arrays_wrap_around(read, x):
    rows = eval(read, {"x": x, "i": cupy.asarray([0, 3, 4]), "xp": cupy})
    assert same(rows, MATRIX[[0, 1, 0]])


def test_a_lone_integer_does_not_wrap_around(x):
    with pytest.raises(IndexError):
        x[2]


def test_scatter_add_sums_duplicates_and_wraps(x):
    cupy.add.at(x, cupy.asarray([0, 0, 3]), cupy.ones(3))
    assert same(x, MATRIX + np.float32([[2], [1]]))


@pytest.mark.parametrize("index", ["i", "(0, i)", "(slice(None), i)", "[1, 1]"])
def test_several_values_for_one_place_are_refused(index, x):
    index = eval(index, {"i": cupy.asarray([1, 1])})
    with pytest.raises(RuntimeError, match="undefined"):
        x[index] = cupy.arange(x[index].size).reshape(x[index].shape)
    x[index] = 7  # one value for all places is well defined
    assert set(x[index].get().ravel()) == {7}


def test_assignments_with_distinct_places(x):
    y = MATRIX.copy()
    for xp, array in ((cupy, x), (np, y)):
        array[xp.asarray([1, 0])] = xp.asarray([[1, 2, 3], [4, 5, 6]])
        array[array > 5] = -1
        array[0, 1:] = xp.asarray([8, 9])
        xp.put_along_axis(array, xp.asarray([[0], [2]]), xp.asarray([[5], [6]]), axis=1)
    assert same(x, y)


# ── devices ─────────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def on_one():
    with cupy.cuda.Device(1):
        return cupy.asarray(MATRIX)


def test_an_array_remembers_its_device(x, on_one):
    assert (x.device.id, on_one.device.id) == (0, 1)
    assert on_one.T.device == on_one[0].device == cupy.cuda.Device(1)
    assert copy.deepcopy(on_one).device.id == 1
    assert cupy.cuda.Device().id == 0


@pytest.mark.parametrize(
    "expression",
    [
        "x + y",
        "y + y",
        "y * 2",
        "xp.exp(y)",
        "y.sum()",
        "xp.concatenate([x, y])",
        "y[[0]]",
        "x[y > 1]",
        "xp.add.at(x, 0, y[0])",
        "x.__setitem__(0, y[0])",
        "y.__setitem__(0, 1)",
        "xp.exp(x, out=y)",
        "x.__iadd__(y)",
        "y.astype('f8')",
    ],
)
def test_a_kernel_refuses_memory_of_another_device_than_the_current_one(expression, x, on_one):
    with pytest.raises(ValueError, match=r"resides \(1\) is different from the current device \(0\)"):
        eval(expression, {"x": x, "y": on_one, "xp": cupy})


def test_copies_between_devices(on_one):
    for moved in (cupy.asarray(on_one), on_one.copy(), cupy.asarray(on_one, dtype=np.float64)):
        assert moved.device.id == 0
        np.testing.assert_array_equal(moved.get(), MATRIX)
    assert float(on_one[1, 1]) == 4
    with on_one.device:
        assert (on_one + 1).device.id == 1


def test_devices_nest_and_each_thread_has_its_own():
    seen = []
    with cupy.cuda.Device(1):
        with cupy.cuda.Device(0):
            assert cupy.cuda.get_device_id() == 0
        assert cupy.cuda.runtime.getDevice() == 1
        thread = threading.Thread(target=lambda: seen.append(cupy.cuda.Device().id))
        thread.start()
        thread.join()
    assert seen == [0]
    assert cupy.cuda.runtime.getDeviceCount() == 2
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError), cupy.cuda.Device(2):
        pass
    assert cupy.cuda.get_device_id() == 0


# ── random streams ──────────────────────────────────────────────────────────────────────────────────────
def test_a_stream_repeats_and_is_not_numpys():
    draws = [cupy.random.default_rng(5).random(4, dtype=np.float32).get() for _ in range(2)]
    np.testing.assert_array_equal(*draws)
    assert not np.array_equal(draws[0], np.random.default_rng(5).random(4, dtype=np.float32))
    generator = cupy.random.default_rng(np.random.SeedSequence(5))
    assert cupy.random.default_rng(generator) is generator
    for number in (generator.random(), generator.integers(3), generator.standard_normal()):
        assert isinstance(number, cupy.ndarray)
    with cupy.cuda.Device(1), pytest.raises(RuntimeError, match="different device"):
        generator.random()


# ── the real package ────────────────────────────────────────────────────────────────────────────────────
def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.parametrize("library", ["", "linalg"])
def test_the_names_are_cupys(real, library):
    source, theirs, ours = (getattr(module, library) if library else module for module in (np, real, cupy))
    names = {name for name in public(source) if not isinstance(getattr(source, name), types.ModuleType)}
    assert {name for name in names if hasattr(ours, name)} == names & public(theirs) - standin.NOT_OFFERED
    assert {name for name in ours.__dict__ if name[0] != "_"} <= public(theirs)


def test_the_attributes_of_an_array_are_cupys(real, x):
    assert {name for name in public(np.ndarray) if hasattr(x, name)} == (
        public(np.ndarray) & public(real.ndarray) - standin.NOT_OFFERED
    )
    assert public(standin.ndarray) <= public(real.ndarray)
    theirs = set(dir(real.ndarray))
    special = {name for name in dir(np.ndarray) if name.startswith("__")} - set(dir(object))
    assert special & set(dir(standin.ndarray)) <= theirs
    assert special & theirs - set(dir(standin.ndarray)) <= {
        "__array_finalize__",
        "__buffer__",
        "__class_getitem__",
        "__delitem__",
        "__dlpack__",
        "__dlpack_device__",
    }
    assert real.ndarray.__hash__ is None
    assert real.ndarray.__array_priority__ == x.__array_priority__


def test_the_keywords_that_cupy_lacks(real):
    """The table holds exactly the keywords that NumPy's function has and CuPy's lacks, renamed ones apart."""
    renamed = {"a", "A", "ar", "ar1", "ar2", "arr", "array", "arrays", "ary", "count", "m", "obj", "object"}
    ignored = renamed | {"x", "device", "like", "encoding", "fix_imports", "max_header_size", "ndmax", "sparse"}

    def parameters(function):
        try:
            return inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return ()

    for name in public(np) & public(real) - {"show_config"}:
        ours, theirs = getattr(np, name), parameters(getattr(real, name))
        if isinstance(ours, type | np.ufunc) or not theirs or any(p.kind is p.VAR_KEYWORD for p in theirs):
            continue
        keywords = {p.name for p in parameters(ours) if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        missing = keywords - {p.name for p in theirs} - ignored
        assert missing == {key for key in keywords if name in standin.LACKING_KEYWORDS.get(key, ())}, name


def test_functions_generators_and_devices_are_cupys(real):
    scattering = {
        name for name in public(real) if isinstance(getattr(real, name), real.ufunc) and getattr(real, name)._scatter_op
    }
    assert scattering == set(standin.ATOMIC)
    assert public(real.random.Generator) & public(np.random.Generator) == standin.GENERATOR_METHODS
    assert public(standin.Device) <= public(real.cuda.Device)
    for module in ("cuda", "cuda.runtime", "random"):
        ours, theirs = cupy, real
        for part in module.split("."):
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        assert public(ours) <= public(theirs)
    assert issubclass(real.cuda.runtime.CUDARuntimeError, RuntimeError)
    assert real.cuda.Device.__hash__ is None


def test_cupy_without_a_gpu_imports_and_raises_when_it_is_asked_for_devices(real):
    if real.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(real.cuda.runtime.CUDARuntimeError):
        real.cuda.runtime.getDeviceCount()
