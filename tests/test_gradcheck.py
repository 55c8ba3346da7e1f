"""gradcheck finds a wrong derivative, says where, and lets right ones pass."""

import re

import numpy as np
import pytest

from metagrad import Function, GradcheckError, Tensor, gradcheck, gradgradcheck, is_grad_enabled, no_grad
from metagrad import functional as F


class Wrong(Function):
    """x³ whose derivative is given: right is 3 x²."""

    saves_inputs = True

    def forward(self, x, slope):
        self.slope = slope
        return x * x * x

    def backward(self, grad, x):
        return grad * self.slope(x)


class Detached(Function):
    """x² whose derivative is right, but made of constants: the second one is lost."""

    saves_inputs = True

    def forward(self, x):
        return x * x

    def backward(self, grad, x):
        return grad * (x.detach() if isinstance(x, Tensor) else x) * 2


def wrong(slope):
    return lambda x: Wrong.apply(x, slope=slope)


def test_a_right_derivative_passes(device):
    x, y = Tensor([[1.0, 2.0, 3.0]], device=device), Tensor([[0.5], [-1.0]], device=device)
    assert gradcheck(wrong(lambda x: 3 * x * x), x) is True
    assert gradcheck(lambda a, b: (a * b).exp() / (a + 3), x, y) is True
    assert gradgradcheck(lambda a, b: (a * b).exp() / (a + 3), x, y) is True


def test_a_wrong_derivative_is_named_by_input_index_and_both_numbers():
    cube = wrong(lambda y: 3 * y * y + (y == 2))
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x, y: x.sum() + cube(y).sum(), np.ones(2), np.array([[1.0, 3.0], [2.0, 1.0]]))
    message = str(caught.value)
    assert "input 1, index (1, 0)" in message and "1 of 4 entries differ" in message
    said, measured = map(float, re.findall(r"says? (-?[\d.]+)", message))
    assert abs(said / measured - 13 / 12) < 1e-6


@pytest.mark.parametrize("slope", [
    lambda x: 3 * x * x * 1.0001, lambda x: -3 * x * x, lambda x: x * 0, lambda x: 3 * x * x + 1e-3,
    lambda x: x * np.nan, lambda x: 3 * x, lambda x: x * np.inf,
])  # fmt: skip
def test_small_and_large_mistakes_are_found(slope):
    with pytest.raises(GradcheckError, match=r"input 0, index \(0,\)"):
        gradcheck(wrong(slope), np.array([0.7, 1.3]))


def test_a_mistake_in_one_entry_among_large_ones_is_found():
    with pytest.raises(GradcheckError, match=r"index \(1,\)"):
        gradcheck(wrong(lambda x: 3 * x * x * (1 + 0.01 * (x == 1.0))), np.array([10.0, 1.0, 5.0]))


def test_a_gradient_that_is_missing_is_found():
    with pytest.raises(GradcheckError, match="input 1, index .*autograd says 0"):
        gradcheck(lambda x, y: x * y.detach(), np.ones(2), np.ones(2))
    with pytest.raises(GradcheckError, match="autograd says 0"):
        gradcheck(lambda x: (x * 2).detach(), np.ones(2))


def test_an_input_that_plays_no_part_passes():
    assert gradcheck(lambda x, y: x * 2, np.ones(2), np.ones(3))
    assert gradgradcheck(lambda x, y: x * 2, np.ones(2), np.ones(3))


def test_a_wrong_second_derivative_passes_the_first_check_and_not_the_second():
    assert gradcheck(Detached.apply, np.array([1.0, 2.0]))
    with pytest.raises(GradcheckError, match=r"input 0, index \(0,\): autograd says 0"):
        gradgradcheck(Detached.apply, np.array([1.0, 2.0]))


def test_integers_and_masks_are_passed_on(device):
    seen = []

    def f(x, ids, mask, y):
        seen.append((ids.dtype, mask.dtype, x.dtype, y.dtype))
        return F.where(mask, F.embedding(x, ids), y)

    table, mask = np.arange(6.0, dtype=np.float32).reshape(3, 2), np.array([[True], [False]])
    inputs = [table, np.array([2, 0]), mask, np.ones(2, np.float16)]
    for check in (gradcheck, gradgradcheck):
        assert check(f, *[Tensor(x, device=device) for x in inputs])
    assert set(seen) == {(np.dtype(np.int64), np.dtype(bool), np.dtype(np.float64), np.dtype(np.float64))}
    with pytest.raises(GradcheckError, match=r"input 2, index \(0,\)"):
        gradcheck(lambda i, m, x: wrong(lambda x: x)(x) * i, np.array([1]), np.array([True]), np.array([3.0]))


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_nothing_to_check_is_an_error(check):
    with pytest.raises(ValueError, match="no input holds floats"):
        check(lambda x: x * 2, np.array([1, 2]))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1), (2, 3, 2)])
def test_any_shape_is_checked(shape):
    assert gradcheck(F.tanh, np.full(shape, 0.3))
    assert gradgradcheck(F.tanh, np.full(shape, 0.3))
    if np.prod(shape):
        with pytest.raises(GradcheckError):
            gradcheck(wrong(lambda x: x), np.full(shape, 0.3))


def test_inputs_are_left_alone_and_errors_are_assertions():
    x = Tensor([1.0, 2.0], requires_grad=True)
    array = np.array([1.0, 2.0])
    gradcheck(lambda a, b: a * b, x, array)
    gradgradcheck(lambda a, b: a * b, x, array)
    assert x.grad is None and x.tolist() == [1, 2] and array.tolist() == [1, 2] and x.dtype == np.float32
    assert issubclass(GradcheckError, AssertionError)


def test_a_check_within_no_grad_checks_all_the_same():
    with no_grad():
        assert gradcheck(F.exp, np.ones(2))
        with pytest.raises(GradcheckError):
            gradcheck(wrong(lambda x: x), np.ones(2))
        assert not is_grad_enabled()


def test_a_function_that_returns_no_tensor_is_named():
    with pytest.raises(TypeError, match="gradcheck.*Tensor"):
        gradcheck(lambda x: x.numpy(), np.ones(2))


def test_step_and_tolerances_are_ones_to_choose():
    off = wrong(lambda x: 3 * x * x * 1.001)
    assert gradcheck(off, np.ones(2), rtol=1e-2)
    assert gradcheck(off, np.ones(2), atol=1e-1)
    assert gradcheck(lambda x: x * x, np.ones(2), eps=1e-3, seed=5)
