"""NumPy's functions on Tensors, and memory shared with other libraries."""

import inspect

import numpy as np
import pytest

import metagrad
from metagrad import Tensor, interop
from metagrad import functional as F

A = np.array([[0.5, 1.5, -1.0], [2.0, 0.25, 3.0]])
SQUARE = np.array([[2.0, 0.5], [0.25, 1.0]])
B = np.array([1.0, 2.0, 4.0])


def leaf(values, device="cpu"):
    return Tensor(np.asarray(values, np.float64), device=device, requires_grad=True)


CALLS = [
    (np.exp, A), (np.arctan2, A, B), (np.negative, A), (np.power, A, 2), (np.absolute, A), (np.add, 1, A),
    (np.subtract, B, A), (np.true_divide, A, B), (np.matmul, SQUARE, SQUARE), (np.maximum, A, 0), (np.hypot, A, B),
    (np.sum, A), (np.sum, A, 0), (np.mean, A, {"axis": 1, "keepdims": True}), (np.std, A, {"ddof": 1}),
    (np.var, A, None, None, None, 1), (np.max, A, 1), (np.amax, A), (np.prod, A, {"axis": 0}), (np.median, A, 1),
    (np.cumsum, A, 1), (np.clip, A, 0, 1), (np.clip, A, {"a_min": 0.0, "a_max": 1.0}), (np.round, A, 1),
    (np.reshape, A, (3, 2)), (np.transpose, A), (np.transpose, A, (1, 0)), (np.swapaxes, A, 0, 1), (np.ravel, A),
    (np.moveaxis, A, 0, 1), (np.squeeze, A[:, :1]), (np.expand_dims, A, 1), (np.flip, A, 1), (np.roll, A, 2, 1),
    (np.repeat, A, 2, 0), (np.tile, A, (2, 1)), (np.tril, A, -1), (np.pad, A, 1), (np.broadcast_to, B, (2, 3)),
    (np.pad, A, ((0, 1), (2, 0)), "constant", {"constant_values": 3.0}), (np.diagonal, SQUARE), (np.trace, SQUARE),
    (np.concatenate, [A, A], 1), (np.stack, [A, A]), (np.where, A > 1, A, 0.0), (np.sort, A, 0), (np.dot, A, B),
    (np.take_along_axis, A, np.array([[0, 2], [1, 1]]), 1), (np.inner, A, B), (np.outer, B, B),
    (np.tensordot, A, A.T, 1), (np.einsum, "ij,j->i", A, B), (np.linalg.inv, SQUARE), (np.linalg.det, SQUARE),
    (np.linalg.solve, SQUARE, SQUARE[0]), (np.linalg.norm, A), (np.linalg.norm, A, 1, 1),
]  # fmt: skip


def made(value, wrap):
    """Arrays of floats as wrap makes them, also within a list."""
    if isinstance(value, list):
        return [made(part, wrap) for part in value]
    return wrap(value) if isinstance(value, np.ndarray) and value.dtype == np.float64 else value


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0].__name__)
def test_a_function_of_numpy_builds_the_graph(call, device):
    function, *args = call
    options = args.pop() if isinstance(args[-1], dict) else {}
    if device != "cpu" and any(isinstance(x, np.ndarray) and x.dtype != np.float64 for x in args):
        pytest.skip("an index or a condition on the host")
    out = function(*[made(x, lambda a: leaf(a, device)) for x in args], **options)
    assert isinstance(out, Tensor) and out.requires_grad and str(out.device) == device
    np.testing.assert_allclose(out.numpy(), function(*args, **options), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "**", "@", "<", "<=", "==", "!=", ">", ">="])
@pytest.mark.parametrize("left", [B, np.float64(3), np.float32(2), np.int64(2), np.array(2.0)])
def test_an_array_on_the_left_leaves_the_operator_to_the_tensor(left, operator):
    if operator == "@" and np.ndim(left) == 0:
        return
    x = leaf([0.5, 2.0, 4.0])  # noqa: F841, both expressions name it
    out = eval(f"left {operator} x")
    assert isinstance(out, Tensor)
    np.testing.assert_allclose(out.numpy(), eval(f"left {operator} x.numpy()"), rtol=1e-12)
    assert out.requires_grad == (operator in "+-*/**@")


def test_gradients_pass_through_numpys_functions():
    x = leaf(A)
    np.sum(np.concatenate([np.exp(x), 2 * x]) * np.float64(3)).backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * (np.exp(A) + 2), rtol=1e-12)


def test_shape_ndim_and_size_are_numbers():
    assert np.shape(leaf(A)) == (2, 3) and np.ndim(leaf(A)) == 2 and np.size(leaf(A)) == 6


@pytest.mark.parametrize("call, message", [
    (lambda x: np.exp(x, where=np.array(True)), "np.exp takes no where= beside a Tensor"),
    (lambda x: np.add(x, 1, dtype=np.float32), "np.add takes no dtype="),
    (lambda x: np.add(A, x, out=A.copy()), "np.add: a Tensor cannot be written into the memory of an array"),
    (lambda x: np.sum(x, 0, np.float32), "np.sum takes no dtype="),
    (lambda x: np.sum(x, out=A), "np.sum takes no out="),
    (lambda x: np.std(x, mean=0.0), "np.std takes no mean=|unexpected keyword argument 'mean'"),
    (lambda x: np.add.reduce(x), "np.add.reduce has no equivalent for Tensors"),
    (lambda x: np.floor_divide(x, 2), "np.floor_divide has no equivalent for Tensors"),
    (lambda x: np.vander(x[0]), "np.vander has no equivalent for Tensors; say t.detach"),
    (lambda x: np.fft.fft(x), "np.fft.fft has no equivalent"),
    (lambda x: np.linalg.trace(x), "np.linalg.trace has no equivalent|no attribute"),
    (lambda x: np.linalg.norm(x, 2), "np.linalg.norm has no equivalent .* give one axis"),
    (lambda x: np.zeros_like(x, dtype=int), "np.zeros_like takes no dtype="),
])  # fmt: skip
def test_what_has_no_equivalent_is_refused_by_name(call, message):
    with pytest.raises((TypeError, AttributeError), match=message) as caught:
        call(leaf(A))
    assert "\n" not in str(caught.value)


def test_adding_a_tensor_to_an_array_in_place_is_refused():
    array = A.copy()
    with pytest.raises(TypeError, match=r"write x = x \+ t instead of x \+= t"):
        array += leaf(A)
    np.testing.assert_array_equal(array, A)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_function_of_numpy_is_ours_or_refused_by_its_name():
    """No function of NumPy loses a graph in silence, none recurses, whichever it is."""
    modules = [np, np.linalg, np.fft]
    functions = {f for module in modules for name, f in vars(module).items()
                 if not name.startswith("_") and type(f).__name__ == "_ArrayFunctionDispatcher"}  # fmt: skip
    ufuncs = {f for f in vars(np).values() if isinstance(f, np.ufunc)}
    x, ours = leaf(SQUARE), 0
    for f in functions | ufuncs:
        try:
            if f in ufuncs:
                x.__array_ufunc__(f, "__call__", *[x] * f.nin)
            else:
                x.__array_function__(f, (Tensor,), (x,), {})
        except TypeError as error:
            known = f in interop._equivalents()  # then an argument is missing, or integers are needed
            assert known or f"{f.__name__} has no equivalent for Tensors" in str(error), f
        else:
            ours += 1
    assert len(functions) > 200 and len(ufuncs) > 80 and ours > 70


def test_functions_of_f_that_numpy_has_too_are_reached_by_its_name():
    named = {n for n, f in vars(F).items() if inspect.isfunction(f) and hasattr(np, n)}
    assert all(interop._equivalents()[getattr(np, name)] is getattr(F, name) for name in named) and len(named) > 80


# memory shared ----------------------------------------------------------------------------------------


def test_dlpack_shares_memory_with_numpy_both_ways():
    x = Tensor(A.copy())
    there, back = np.from_dlpack(x), metagrad.from_dlpack(x.data)
    x[0, 0] = 7.0
    assert there[0, 0] == back.numpy()[0, 0] == 7


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_dlpack_shares_memory_with_pytorch_both_ways(dtype):
    torch = pytest.importorskip("torch")
    x = Tensor(np.ones((2, 3), dtype))
    there = torch.from_dlpack(x)
    there[0, 1] = 0
    assert x.tolist()[0] == [1, 0, 1] and there.data_ptr() == x.data.ctypes.data
    back = metagrad.from_dlpack(torch.ones(3, 2, dtype=getattr(torch, dtype)).T)
    assert back.shape == (2, 3) and back.dtype == dtype
    back.mul_(True) if dtype == "bool" else back.mul_(2)


def test_dlpack_keeps_no_graph_and_says_so():
    with pytest.raises(BufferError, match=r"would lose this Tensor's graph: say x.detach\(\)"):
        np.from_dlpack(leaf(A))
    with pytest.raises(TypeError, match="an array with __dlpack__, not a list"):
        metagrad.from_dlpack([1.0])
