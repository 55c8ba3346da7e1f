"""Tensors as values: what they are made of, dtypes, numbers, kinks, extreme values, losses and messages.

Gradients as such are the table's (test_ops.py), the walk is test_graph.py's, writes are test_writes.py's.
"""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from metagrad import Tensor, manual_seed, no_grad
from metagrad import functional as F

from .table import rows


def leaf(values, device="cpu", dtype=np.float64):
    return Tensor(np.array(values, dtype), device=device, requires_grad=True)


def gradient(f, *values, device="cpu"):
    """Values and gradients of the sum of f at float64 points."""
    points = [leaf(value, device) for value in values]
    f(*points).sum().backward()
    found = [x.grad.numpy() for x in points]
    return found[0] if len(found) == 1 else found


# What a Tensor is made of ---------------------------------------------------------------------------


@pytest.mark.parametrize("data, dtype", [
    (1.0, np.float32), ([1.0, 2], np.float32), ([], np.float32), (1, np.int64), ([1, 2], np.int64), (True, np.bool_),
    (np.array([1.0]), np.float64), (np.array([1], np.int32), np.int32), (np.float64(1), np.float64),
    (np.float16(1), np.float16), (np.array(1.0, np.float32), np.float32), (range(3), np.int64),
])  # fmt: skip
def test_arrays_keep_their_dtype_and_python_numbers_are_narrow(data, dtype, device):
    x = Tensor(data, device=device)
    assert x.dtype == dtype
    assert x.shape == np.shape(data)
    np.testing.assert_array_equal(x.numpy(), np.asarray(data))


def test_dtype_is_heeded_for_arrays_too():
    assert Tensor(np.array([1, 2]), dtype=np.float32).dtype == np.float32
    assert Tensor([1, 2], dtype="float16").dtype == np.float16


def test_a_list_of_float64_arrays_keeps_their_digits():
    assert Tensor([np.array([1 / 3]), np.array([2 / 3])]).data[0, 0] == 1 / 3


def test_an_array_is_shared_and_not_copied():
    array = np.zeros(2, np.float32)
    assert Tensor(array).data is array
    assert Tensor(array).numpy() is array


@pytest.mark.parametrize("data, error, message", [
    (["a"], TypeError, "holds numbers, not <U1"), ("abc", TypeError, "holds numbers"),
    (None, TypeError, "holds numbers, not object"),
    ([1, None], TypeError, "holds numbers"), ({"a": 1}, TypeError, "holds numbers"),
    (b"ab", TypeError, "holds numbers"),
    ([[1, 2], [3]], ValueError, "rows of different lengths make no array: pad them first"),
    ([np.zeros(2), np.zeros(3)], ValueError, "pad them first"),
    ([Tensor([1.0]), Tensor([2.0])], TypeError, r"joined by F\.stack\(list\) or F\.concatenate\(list\)"),
    ((1.0, Tensor([2.0])), TypeError, r"F\.stack"), ([[Tensor(1.0), Tensor(2.0)]], TypeError, r"F\.stack"),
])  # fmt: skip
def test_what_is_not_an_array_of_numbers_is_refused_with_one_sentence(data, error, message):
    with pytest.raises(error, match=message):
        Tensor(data)


@pytest.mark.parametrize("data, name", [([1, 1, 1], "int64"), ([True], "bool"), ([1j], "complex128")])
def test_only_floats_have_gradients(data, name):
    with pytest.raises(TypeError, match=f"a Tensor of {name} has no gradient"):
        Tensor(data, requires_grad=True)
    with pytest.raises(TypeError, match=name):
        Tensor(data).requires_grad_()


@pytest.mark.parametrize("make, expected", [
    (lambda **k: Tensor.zeros(2, 3, **k), np.zeros((2, 3), np.float32)),
    (lambda **k: Tensor.zeros((2, 3), **k), np.zeros((2, 3), np.float32)),
    (lambda **k: Tensor.zeros(**k), np.zeros((), np.float32)),
    (lambda **k: Tensor.ones(np.int64(2), dtype=np.float64, **k), np.ones(2)),
    (lambda **k: Tensor.full((2,), 1.5, **k), np.full(2, 1.5, np.float32)),
    (lambda **k: Tensor.full(2, 7, **k), np.full(2, 7)),
    (lambda **k: Tensor.arange(3, **k), np.arange(3)),
    (lambda **k: Tensor.arange(1, 2, 0.25, **k), np.arange(1, 2, 0.25).astype(np.float32)),
    (lambda **k: Tensor.eye(2, 3, **k), np.eye(2, 3, dtype=np.float32)),
])  # fmt: skip
def test_constructors(make, expected, device):
    x = make(device=device)
    assert x.dtype == expected.dtype and str(x.device) == device and not x.requires_grad
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("name", ["zeros", "ones", "rand", "randn"])
def test_constructors_like_another_keep_shape_dtype_and_device(name, device):
    x = getattr(Tensor, f"{name}_like")(leaf([[1.0], [2.0]], device))
    assert (x.shape, x.dtype, str(x.device), x.requires_grad) == ((2, 1), np.float64, device, False)
    assert getattr(Tensor, name)(2, requires_grad=True, device=device).requires_grad
    np.testing.assert_array_equal(Tensor.full_like(x, 3).numpy(), [[3.0], [3.0]])


def test_draws_are_what_they_say(device):
    manual_seed(0)
    u, z = Tensor.rand(10_000, device=device).numpy(), Tensor.randn((100, 100), device=device).numpy()
    assert u.dtype == z.dtype == np.float32 and u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 0.5) < 0.02 and abs(z.mean()) < 0.05 and abs(z.std() - 1) < 0.05


@pytest.mark.parametrize("shape", [2.5, "ab", None])
def test_a_shape_that_is_none_is_named(shape):
    with pytest.raises(TypeError, match="shape"):
        Tensor.zeros(shape)


# Numbers out of it ----------------------------------------------------------------------------------


def test_one_entry_gives_python_numbers(device):
    x = Tensor([[2.5]], device=device)
    assert (x.item(), float(x), int(x), bool(x > 2)) == (2.5, 2.5, 2, True)
    assert type(x.item()) is float and type(x.tolist()) is list
    assert "abc"[Tensor(1, device=device)] == "b"


@pytest.mark.parametrize("call, error, message", [
    (lambda x: bool(x), ValueError, r"truth of a Tensor of shape \(2,\) is ambiguous"),
    (lambda x: x.item(), ValueError, r"item\(\) needs a Tensor with one entry, this one has shape \(2,\)"),
    (lambda x: float(x), ValueError, "one entry"),
    (lambda x: "abc"[x], TypeError, r"only an integer Tensor with one entry is an index"),
    (lambda x: "abc"[x[0]], TypeError, r"not float32 \(\)"),
    (lambda x: len(x[0]), TypeError, "len"),
    (lambda x: list(x[0]), TypeError, "without axes cannot be iterated"),
    (lambda x: x[2], IndexError, "index 2 is out of bounds for axis 0 with size 2"),
    (lambda x: x[0, 0], IndexError, "too many indices"),
    (lambda x: x[Tensor([1.0])], IndexError, "integer"),
    (lambda x: x.reshape(3), ValueError, r"cannot reshape array of size 2 into shape \(3,\)"),
    (lambda x: x.transpose(0, 0), ValueError, r"transpose: \(0, 0\) does not name each of 1 axes once"),
    (lambda x: x.unsqueeze(3), ValueError, "unsqueeze: axis 3"),
    (lambda x: x.sum(axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda x: x.gather(0, [2]), IndexError, "not within an axis of 2"),
    (lambda x: x.gather(1, [0]), ValueError, "axis 1"),
    (lambda x: x[0].gather(0, [0]), ValueError, "ax[ie]s"), (lambda x: x.gather(0, 1), ValueError, "index"),
    (lambda x: x.gather(0, [[0]]), ValueError, "index .* axes"),
    (lambda x: x.index_fill(1, [0], 0.0), ValueError, "axis 1"),
    (lambda x: F.stack([]), ValueError, "stack needs at least one Tensor"),
    (lambda x: F.concatenate([]), ValueError, "concatenate needs at least one Tensor"),
    (lambda x: F.mse_loss(x, x, "avg"), ValueError, "reduction is 'mean', 'sum' or 'none', not 'avg'"),
    (lambda x: x + None, TypeError, "holds numbers"),
    (lambda x: x + [1.0, 2.0, 3.0], ValueError, r"shapes \(2,\) \(3,\)"),
    (lambda x: F.exp("a"), TypeError, "holds numbers"),
])  # fmt: skip
def test_misuse_is_answered_with_one_sentence(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(Tensor([1.0, 2.0]))
    assert "\n" not in str(caught.value)


def test_iteration_gives_rows_that_carry_gradients(device):
    x = leaf([[1, 2], [3, 4]], device)
    assert len(x) == 2
    first, second = x
    (first * 2 + second).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 2], [1, 1]])
    assert 3.0 in Tensor([1.0, 3.0]) and 2.0 not in Tensor([1.0, 3.0])


def test_repr_shows_values_and_what_is_not_usual(device):
    where = "" if device == "cpu" else ", device='cuda:0'"
    assert repr(Tensor([1.0, 2.5], device=device)) == f"Tensor([1. , 2.5]{where})"
    assert repr(Tensor([1, 2], device=device)) == f"Tensor([1, 2]{where})"
    assert repr(leaf([1.0], device)) == f"Tensor([1.], dtype=float64{where}, requires_grad=True)"
    assert len(repr(Tensor.zeros(1000, 1000))) < 1000


def test_comparisons_are_masks_without_a_graph(device):
    x = leaf([1.0, 2.0, 3.0], device)
    found = [x > 1, x >= 2, x < 2, x <= 1, x == 2, x != 2, (x > 1) & (x < 3), (x < 2) | (x > 2), ~(x > 1)]
    bits = ["011", "011", "100", "100", "010", "101", "010", "101", "100"]
    for mask, expected in zip(found, bits):
        assert mask.dtype == np.bool_ and not mask.requires_grad
        assert "".join(map(str, mask.astype(int).tolist())) == expected
    assert x.argmax().item() == 2 and x.argmin(axis=0, keepdims=True).numpy().tolist() == [0]
    assert hash(x) != hash(leaf([1.0], device)) and len({x, x}) == 1


def test_numpy_reads_a_tensor_but_never_loses_a_graph_by_it():
    x = Tensor([1.0, 2.0])
    assert np.asarray(x) is x.data
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(x, copy=True), x.data)
    with pytest.raises(TypeError, match="would lose this Tensor's graph"):
        np.asarray(x.requires_grad_())


# Beside NumPy's operands ----------------------------------------------------------------------------


@pytest.mark.parametrize("left", [np.array([3.0, 4.0]), np.float64(3), np.float32(3), np.int64(3)])
@pytest.mark.parametrize("operate", [
    lambda a, w: a * w, lambda a, w: a + w, lambda a, w: a - w, lambda a, w: a / w, lambda a, w: a**w,
])  # fmt: skip
def test_a_numpy_operand_on_the_left_gives_a_tensor_with_a_gradient(left, operate):
    w = leaf([1.0, 2.0])
    out = operate(left, w)
    assert type(out) is Tensor
    np.testing.assert_array_equal(out.numpy(), operate(left, np.array([1.0, 2.0])))
    out.sum().backward()
    step = (operate(left, np.array([1.0, 2.0]) + 1e-6) - operate(left, np.array([1.0, 2.0]) - 1e-6)) / 2e-6
    np.testing.assert_allclose(w.grad.numpy(), step, rtol=1e-6)


def test_products_and_comparisons_with_numpy_on_the_left():
    w = leaf([1.0, 2.0])
    (np.eye(2) @ w).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [1, 1])
    assert (np.array([1.5, 1.5]) < w).numpy().tolist() == [False, True]
    assert (np.array([True, False]) & (w > 0)).numpy().tolist() == [True, False]
    assert (w * np.array([3.0, 4.0])).requires_grad


def test_a_numpy_scalar_is_an_array_without_axes_and_widens_as_in_numpy():
    w = leaf([1.0, 2.0], dtype=np.float32)
    out = w * np.float64(2)
    assert out.dtype == np.float64 and (w * np.float32(2)).dtype == np.float32
    out.sum().backward()
    assert w.grad.dtype == np.float32  # the gradient has its leaf's dtype all the same


# dtypes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op, sample", [pytest.param(*row, id=f"{row[0].name} {row[1].shapes}"[:50]) for row in rows()])
def test_every_operation_keeps_float32(op, sample, device):
    """And no constant, as numbers of entries, becomes float64."""
    points = [Tensor(a.astype(np.float32), device=device) for a in op.inputs(sample)]
    constants = {k: v.astype(np.float32) if getattr(v, "dtype", None) == np.float64 else v
                 for k, v in sample.constants.items()}  # fmt: skip
    dtype = op.call(*points, **constants).dtype
    assert dtype == (np.float64 if op.name == "astype" else np.float32) or op.constant and dtype.kind in "bi"


@pytest.mark.parametrize("f", [
    lambda x: x + 1, lambda x: 1.5 - x, lambda x: x / 3, lambda x: 2.0**x, lambda x: x**0.5, lambda x: x**2,
    lambda x: x * True,
    lambda x: F.where(x > 1, x, 0.0), lambda x: F.where(x > 1, 0, x), lambda x: F.maximum(0.5, x),
    lambda x: x.clip(0.1, 0.9),
    lambda x: x + [1.0, 2.0], lambda x: F.mse_loss(x, [0.0, 1.0]), lambda x: F.index_fill(x, 0, [0], 0.5),
    lambda x: F.binary_cross_entropy_with_logits(x, [0.0, 1.0]),
    lambda x: F.binary_cross_entropy_with_logits(x, [0, 1]),
    lambda x: F.binary_cross_entropy_with_logits(x, [0.0, 1.0], weight=2.0),
    lambda x: F.binary_cross_entropy_with_logits(x, [0.0, 1.0], weight=[1.0, 2.0], pos_weight=0.5),
    lambda x: F.cross_entropy(x.reshape(1, 2), [1]), lambda x: x.mean(), lambda x: x.max(axis=0),
    lambda x: x.max(0) - x.min(0),
])  # fmt: skip
def test_python_numbers_and_lists_widen_nothing(f, device):
    x = leaf([1.0, 2.0], device, np.float32)
    out = f(x)
    assert out.dtype == np.float32
    out.sum().backward()
    assert x.grad.dtype == np.float32


@pytest.mark.parametrize("f, expected", [
    (lambda x: x + 0.5, [1.5, 2.5, 3.5]), (lambda x: 1.5 - x, [0.5, -0.5, -1.5]), (lambda x: x / 2, [0.5, 1, 1.5]),
    (F.sigmoid, [0.731059, 0.880797, 0.952574]), (F.softmax, [0.0900306, 0.244728, 0.665241]),
    (F.exp, [2.71828, 7.38906, 20.0855]),
    (F.logsigmoid, [-0.313262, -0.126928, -0.0485874]), (F.log_softmax, [-2.407606, -1.407606, -0.407606]),
    (lambda x: x.mean(), 2.0), (F.logsumexp, 3.407606), (lambda x: x * 2, [2, 4, 6]), (lambda x: 2**x, [2, 4, 8]),
    (lambda x: F.sqrt(x), [1, 1.414214, 1.732051]), (lambda x: F.maximum(x, 1.5), [1.5, 2, 3]),
    (lambda x: F.where(x > 1, x, 0.5), [0.5, 2, 3]),
])  # fmt: skip
def test_integers_meet_fractions_as_in_numpy(f, expected, device):
    np.testing.assert_allclose(f(Tensor([1, 2, 3], device=device)).numpy(), expected, rtol=1e-5)


def test_sums_of_float16_add_up_in_float32(device):
    """In float16 itself 2048 + 1 is 2048."""
    h = Tensor(np.ones((5000, 2), np.float16), device=device)
    assert h.sum(axis=0).numpy().tolist() == [5000, 5000]
    assert h.mean(axis=0).numpy().tolist() == [1, 1]
    np.testing.assert_allclose(F.softmax(h, axis=0).numpy()[0], 1 / 5000, rtol=2e-3)
    np.testing.assert_allclose(F.log_softmax(h, axis=0).numpy()[0], -np.log(5000), rtol=2e-3)
    np.testing.assert_allclose(F.logsumexp(h, axis=0).numpy(), 1 + np.log(5000), rtol=2e-3)
    bias = leaf([0, 0], device, np.float16)
    (h + bias).backward(Tensor(np.ones((5000, 2), np.float16), device=device))
    assert bias.grad.dtype == np.float16 and bias.grad.numpy().tolist() == [5000, 5000]


# Kinks and ties -------------------------------------------------------------------------------------


@pytest.mark.parametrize("f, at, expected", [
    (abs, [0, -2, 3], [0, -1, 1]), (F.sqrt, [0, 4], [0, 0.25]), (F.relu, [0, -1, 2], [0, 0, 1]),
    (lambda x: x**0, [0, 2], [0, 0]), (lambda x: x**0.5, [0, 4], [0, 0.25]), (lambda x: x**1, [0, 2], [1, 1]),
    (lambda x: x**2, [0, 3], [0, 6]),
    (lambda x: x**0.0, [0], [0]), (lambda x: 0.0**x, [0, 1, 2], [0, 0, 0]),
    (lambda x: (x * x).sum() ** 0.5, [0, 0], [0, 0]),
    (lambda x: x.clip(0, 1), [0, 1, -0.1, 1.1, 0.5], [1, 1, 0, 0, 1]), (F.sign, [0, -2], [0, 0]),
    (lambda x: x.max(), [1, 3, 3, 2], [0, 0.5, 0.5, 0]), (lambda x: x.min(), [1, 1, 1, 2], [1 / 3, 1 / 3, 1 / 3, 0]),
    (lambda x: x.max(axis=1), [[1, 1], [1, 2]], [[0.5, 0.5], [0, 1]]),
    (lambda x: F.maximum(x, 1), [1, 0, 2], [0.5, 0, 1]),
    (lambda x: F.minimum(1, x), [1, 0, 2], [0.5, 1, 0]), (lambda x: F.maximum(x, x), [1, 2], [1, 1]),
])  # fmt: skip
def test_derivatives_at_kinks_ties_and_poles(f, at, expected, device):
    with np.errstate(all="raise"):
        np.testing.assert_allclose(gradient(f, at, device=device), expected, rtol=1e-12)


def test_equal_operands_of_maximum_share_the_gradient(device):
    a, b = gradient(F.maximum, [1.0, 2.0, 0.0], [1.0, 0.0, 2.0], device=device)
    assert a.tolist() == [0.5, 1, 0] and b.tolist() == [0.5, 0, 1]
    a, b = gradient(F.minimum, [1.0, 2.0, 0.0], [1.0, 0.0, 2.0], device=device)
    assert a.tolist() == [0.5, 0, 1] and b.tolist() == [0.5, 1, 0]


def test_powers_of_tensors(device):
    x, y = gradient(lambda x, y: x**y, [2.0, 3.0], [2.0, 3.0], device=device)
    np.testing.assert_allclose(x, [4, 27])
    np.testing.assert_allclose(y, [2.772589, 29.662532], rtol=1e-6)
    x, y = gradient(lambda x, y: x**y, [0.0, 0.0, 0.0], [0.0, 2.0, 0.5], device=device)
    assert x.tolist() == [0, 0, 0] and y.tolist() == [0, 0, 0]
    np.testing.assert_allclose(gradient(lambda x: 2**x, [1.0, 3.0], device=device), [2 * np.log(2), 8 * np.log(2)])
    with np.errstate(all="raise"):  # the exponent needs no gradient, so no logarithm of −2 is taken
        np.testing.assert_allclose(gradient(lambda x: x ** Tensor([3.0]).to(device), [-2.0], device=device), [12])


# Extreme values -------------------------------------------------------------------------------------


@pytest.fixture
def strict():
    with np.errstate(all="raise", under="ignore"):
        yield


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logsigmoid_far_from_zero(dtype, strict, device):
    x = leaf([-1e4, -300, -200, -100, -20, -15, 0, 20, 200], device, dtype)
    y = F.logsigmoid(x)
    y.sum().backward()
    np.testing.assert_allclose(
        y.numpy(), [-1e4, -300, -200, -100, -20, -15.0000003, -0.6931472, -2.0611537e-9, 0], rtol=2e-7, atol=1e-80
    )
    np.testing.assert_allclose(x.grad.numpy(), [1, 1, 1, 1, 1, 1, 0.5, 2.0611537e-9, 0], rtol=1e-6, atol=1e-80)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sigmoid_and_its_kin_far_from_zero(dtype, strict, device):
    x = leaf([-1662, 3212, 89, -89, 0], device, dtype)
    expected = [0, 1, 1, 2.227364e-39, 0.5]
    np.testing.assert_allclose(F.sigmoid(x).numpy(), expected, rtol=1e-5, atol=1e-44)
    np.testing.assert_allclose(F.softplus(x).numpy(), [0, 3212, 89, 2.227364e-39, 0.6931472], rtol=1e-5, atol=1e-44)
    for f, slope in ((F.sigmoid, [0, 0, 0, 0, 0.25]), (F.softplus, expected), (F.tanh, [0, 0, 0, 0, 1])):
        x.grad = None
        f(x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-5, atol=1e-38)


def test_softmax_and_its_kin_far_from_zero(strict, device):
    x = leaf([-1e4, 0, 3e3], device, np.float32)
    np.testing.assert_array_equal(F.softmax(x).numpy(), [0, 0, 1])
    np.testing.assert_array_equal(F.log_softmax(x).numpy(), [-13000, -3000, 0])
    F.logsumexp(x).backward()
    assert F.logsumexp(x).item() == 3000 and x.grad.numpy().tolist() == [0, 0, 1]
    assert F.logsumexp(Tensor([-np.inf, -np.inf], device=device)).item() == -np.inf
    assert F.logsumexp(Tensor([-np.inf, 1.0], device=device)).item() == 1.0


def test_logsumexp_of_nothing_but_minus_infinity_sends_no_nan_back(device):
    rows = leaf([[-np.inf, -np.inf], [0.0, 0.0]], device)
    F.logsumexp(rows, axis=1)[1].backward()  # the first row does not even take part
    np.testing.assert_array_equal(rows.grad.numpy(), [[0, 0], [0.5, 0.5]])


# Losses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"weight": [1.0, 1.0]}, {"weight": 1.0}, {"pos_weight": 1.0}])
def test_bce_of_a_far_logit_is_finite_with_every_weight(options, device):
    x = leaf([0.0, -120.0], device)
    loss = F.binary_cross_entropy_with_logits(x, [0.0, 1.0], **options)
    assert abs(loss.item() - 60.34657359) < 1e-8
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), [0.25, -0.5])


@pytest.mark.parametrize("target", [[[1.0, 0.0]], [[1.0, np.nan]]])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_masked_entry_does_not_poison_the_loss(bad, target, device):
    x = leaf([[1.0, bad]], device)
    loss = F.binary_cross_entropy_with_logits(x, target, weight=[[1.0, 0.0]], reduction="sum")
    loss.backward()
    assert abs(loss.item() - 0.3132617) < 1e-6
    np.testing.assert_allclose(x.grad.numpy(), [[-0.2689414, 0]], rtol=1e-6)


def test_a_masked_target_does_not_poison_a_loss_with_a_positive_weight(device):
    x = leaf([1.0, 0.0], device)
    options = {"weight": [1.0, 0.0], "pos_weight": 2.0, "reduction": "sum"}
    loss = F.binary_cross_entropy_with_logits(x, [1.0, np.nan], **options)
    loss.backward()
    assert abs(loss.item() - 2 * 0.3132617) < 1e-6 and x.grad.numpy()[1] == 0


def test_the_mean_of_many_float16_losses_does_not_overflow(device):
    """Their sum is beyond 65504, the largest float16."""
    zeros = Tensor.zeros(200_000, dtype=np.float16, device=device)
    for loss in (F.binary_cross_entropy_with_logits(zeros, zeros), F.mse_loss(zeros, zeros + 0.8)):
        assert loss.dtype == np.float16 and abs(loss.item() - 0.67) < 0.04


def test_a_nan_that_is_not_masked_shows(device):
    x = leaf([[1.0, np.nan]], device)
    assert np.isnan(F.binary_cross_entropy_with_logits(x, [[1.0, 0.0]], weight=[[1.0, 1.0]]).item())


def test_a_mean_over_real_entries_only(device):
    def row_losses(x, target, mask):
        mask = Tensor(np.array(mask, np.float32), device=device)
        each = F.binary_cross_entropy_with_logits(Tensor(x, device=device), target, weight=mask, reduction="none")
        return (each.sum(axis=1) / F.maximum(mask.sum(axis=1), 1)).numpy()

    x, target, mask = [[1.1, -2.2, 3.3, -4.4]] * 2, [[1, 0, 0, 0], [0, 1, 0, 0]], [[1, 1, 1, 1], [1, 1, 0, 0]]
    np.testing.assert_allclose(row_losses(x, target, mask), [0.9352, 1.8462], atol=5e-5)
    longer = [[row + [0] * 100 for row in part] for part in (x, target, mask)]
    np.testing.assert_allclose(row_losses(*longer), [0.9352, 1.8462], atol=5e-5)
    assert row_losses(x[:1], target[:1], [[0, 0, 0, 0]]).tolist() == [0]


def test_a_nan_without_weights_shows(device):
    for options in ({}, {"pos_weight": 2.0}, {"reduction": "sum"}):
        assert np.isnan(F.binary_cross_entropy_with_logits(leaf([1.0, np.nan], device), [1.0, 0.0], **options).item())


def test_targets_are_not_cut_off_to_fit_whole_scores(device):
    scores, halves = Tensor([1, 2], device=device), Tensor([0.5, 0.5], device=device)
    assert abs(F.mse_loss(scores, halves).item() - 1.25) < 1e-6
    assert abs(F.binary_cross_entropy_with_logits(scores, halves).item() - 0.970095) < 1e-6
    ones = Tensor([1, 1], device=device)
    assert abs(F.binary_cross_entropy_with_logits(scores, ones, pos_weight=0.5).item() - 0.110047) < 1e-6
    assert abs(F.binary_cross_entropy_with_logits(scores, ones, weight=halves).item() - 0.110047) < 1e-6


@pytest.mark.parametrize("target", [1.0, [1.0, 0.0]])
def test_a_positive_weight_of_zero_counts_negatives_only(target, strict, device):
    x = leaf([0.5, 2.0], device)
    loss = F.binary_cross_entropy_with_logits(x, target, pos_weight=0.0, reduction="sum")
    loss.backward()
    right = [0.0, 1 / (1 + np.exp(-2.0))] if target == [1.0, 0.0] else [0.0, 0.0]
    np.testing.assert_allclose(x.grad.numpy(), right, rtol=1e-12)
    assert abs(loss.item() - (np.log1p(np.exp(2.0)) if right[1] else 0.0)) < 1e-12


def test_bce_counts_every_entry_and_sends_gradients_at_zero(device):
    zeros = Tensor.zeros(2, 3, device=device)
    assert abs(F.binary_cross_entropy_with_logits(zeros, zeros).item() - 0.693147) < 1e-6
    x = leaf([0.0], device)
    F.binary_cross_entropy_with_logits(x, [1.0]).backward()
    assert x.grad.numpy().tolist() == [-0.5]


def test_targets_and_weights_of_bce_take_gradients_or_refuse():
    """Soft targets from another network learn; none of them may be dropped in silence."""
    x, target, weight = leaf([0.5]), leaf([0.3]), leaf([2.0])
    try:
        F.binary_cross_entropy_with_logits(x, target, weight=weight).backward()
    except (TypeError, RuntimeError):
        return
    np.testing.assert_allclose(target.grad.numpy(), [-1.0])  # d/dt of −t x + softplus(x), twice weighed
    np.testing.assert_allclose(weight.grad.numpy(), [np.log1p(np.exp(0.5)) - 0.15])


def test_bce_refuses_targets_of_another_shape():
    with pytest.raises(ValueError, match=r"values \(2,\) and targets \(1,\) differ"):
        F.binary_cross_entropy_with_logits(Tensor([1.0, 2.0]), [1.0])


def test_cross_entropy_heeds_the_gradient_and_the_reduction(device):
    logits = [[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    once = (shares - [[0, 1, 0], [0, 0, 1]]) / 2
    for factor, call in (
        (1, lambda x: F.cross_entropy(x, [1, 2])), (10, lambda x: 10 * F.cross_entropy(x, [1, 2])),
        (2, lambda x: F.cross_entropy(x, [1, 2], reduction="sum")),
        (2, lambda x: F.cross_entropy(x, [1, 2], reduction="none").sum()),
    ):  # fmt: skip
        np.testing.assert_allclose(gradient(call, logits, device=device), factor * once, rtol=1e-6)
    assert F.cross_entropy(leaf(logits, device), [1, 2], reduction="none").shape == (2,)


@pytest.mark.parametrize("target, error, message", [
    ([1, 3], IndexError, r"cross_entropy: target 3 at \(1,\) is not one of the classes 0 to 2"),
    ([-1, 0], IndexError, r"target -1 at \(0,\)"),
    ([1.0, 0.0], ValueError, "integer targets"), ([1], ValueError, r"got \(2, 3\) and int64 \(1,\)"),
])  # fmt: skip
def test_cross_entropy_names_a_wrong_target(target, error, message, device):
    with pytest.raises(error, match=message):
        F.cross_entropy(leaf(np.zeros((2, 3)), device), target)


def test_a_bias_learns(device):
    b = leaf([0.0, 0.0], device)
    F.linear(Tensor(np.ones((4, 3)), device=device), leaf(np.ones((2, 3)), device), b).sum().backward()
    assert b.grad.numpy().tolist() == [4, 4]


# Products: messages ---------------------------------------------------------------------------------


def test_a_matrix_times_a_vector_is_a_vector(device):
    assert (leaf(np.ones((2, 3)), device) @ leaf(np.ones(3), device)).numpy().tolist() == [3, 3]


@pytest.mark.parametrize("left, right", [
    ((2, 3), (4, 2)), ((2, 3), (2,)), ((3,), (2, 3)), ((2, 3), ()), ((5, 2, 3), (4, 3, 2)),
])  # fmt: skip
def test_matmul_names_the_shapes_that_do_not_fit(left, right, device):
    x, y = leaf(np.ones(left), device), leaf(np.ones(right), device)
    with pytest.raises(ValueError) as caught:
        x @ y
    assert str(left) in str(caught.value) and str(right) in str(caught.value)


@pytest.mark.parametrize("subscripts, shapes, message", [
    ("ij,jk->ik", [(2, 3)], "'ij,jk->ik' names 2 operands, 1 were given"),
    ("ij", [], "names 1 operands, 0 were given"),
    ("ij->i", [(2, 3, 4)], "'ij' in 'ij->i' does not fit an operand of 3 axes"),
    ("ijk->i", [(2, 3)], "does not fit an operand of 2 axes"),
    ("ij,jk->ik", [(2, 3), (4, 2)], "j"), ("ij->ik", [(2, 3)], "k"),
])  # fmt: skip
def test_einsum_says_what_does_not_fit(subscripts, shapes, message, device):
    with pytest.raises(ValueError, match=message):
        F.einsum(subscripts, *[leaf(np.ones(shape), device) for shape in shapes])


def test_einsum_takes_numbers_or_says_that_it_does_not():
    x = leaf([1.0, 2.0])
    try:
        F.einsum("i,->i", x, 2.0).sum().backward()
    except (TypeError, ValueError) as error:
        assert "einsum" in str(error)
        return
    assert x.grad.tolist() == [2, 2]


def test_gather_takes_an_index_shorter_than_the_tensor(device):
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device)
    y = x.gather(0, [[1, 0]])
    assert y.numpy().tolist() == [[4, 2]]
    y.sum().backward()
    assert x.grad.numpy().tolist() == [[0, 1, 0], [1, 0, 0]]
    assert x.gather(-1, [[2, 2, 2, 0]]).numpy().tolist() == [[3, 3, 3, 1]]


def test_einsum_stretches_axes_of_length_one_both_ways_or_refuses():
    x, y = leaf([[3.0], [1.0]]), leaf([[1.0], [2.0]])
    try:
        F.einsum("ij,jk->ik", x, y).sum().backward()  # j is 1 in x and 2 in y, which NumPy takes
    except ValueError:
        return
    np.testing.assert_array_equal(x.grad.numpy(), [[3], [3]])
    np.testing.assert_array_equal(y.grad.numpy(), [[4], [4]])


# Copies ---------------------------------------------------------------------------------------------


def test_a_deep_copy_is_a_leaf_of_its_own(device):
    x = leaf([1.0, 2.0], device)
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert y.is_leaf and y.requires_grad and y.dtype == x.dtype and str(y.device) == device
    (y * 3).sum().backward()
    assert x.grad.numpy().tolist() == [2, 4] and y.grad.numpy().tolist() == [3, 3]
    with no_grad():
        y[0] = 9
    assert x.numpy().tolist() == [1, 2]
    both = copy.deepcopy([x, x])
    assert both[0] is both[1]
    with pytest.raises(RuntimeError, match="only leaves can be"):
        copy.deepcopy(x * 2)


def test_a_shallow_copy_does_not_collect_the_originals_gradient():
    x = leaf([1.0])
    y = copy.copy(x)
    (y * 2).backward()
    assert x.grad is None and y.grad.item() == 2


def test_a_leaf_can_be_pickled():
    x = leaf([1.0, 2.0])
    y = pickle.loads(pickle.dumps(x))
    assert y.requires_grad and y.is_leaf and y.numpy().tolist() == [1, 2]
    (y * 3).sum().backward()
    assert y.grad.numpy().tolist() == [3, 3] and x.grad is None
    assert pickle.loads(pickle.dumps(Tensor([1, 2]))).tolist() == [1, 2]


def test_a_graph_cannot_be_pickled():
    with pytest.raises((RuntimeError, TypeError), match="leaves|graph"):
        pickle.dumps(leaf([1.0]) * 2)


def test_a_leaf_that_was_written_to_works_in_another_process():
    """The moment of its last write means nothing there, where the clock starts again."""
    x = leaf([1.0, 2.0])
    for _ in range(100):
        with no_grad():
            x.mul_(1.0)
    program = (
        "import pickle, sys; from metagrad import Tensor; "
        "x = pickle.loads(sys.stdin.buffer.read()); y = (x * x).sum(); "
        "Tensor.zeros(1).fill_(1); y.backward(); print(x.grad.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(x), capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.stdout.split() == [b"[2.0,", b"4.0]"], done.stderr.decode()[-300:]
