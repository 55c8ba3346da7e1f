"""Writing into arrays: what is recorded, what is refused, and that no gradient is ever silently wrong."""

import copy

import numpy as np
import pytest

from metagrad import Tensor, nn, no_grad, optim
from metagrad import functional as F

WRITTEN_OVER = "a value that its derivative needs was written over"


def leaf(values, device="cpu", dtype=np.float64):
    return Tensor(np.array(values, dtype), device=device, requires_grad=True)


def constant(values, device="cpu"):
    return Tensor(np.array(values, np.float64), device=device)


# Recorded writes ------------------------------------------------------------------------------------


def test_values_written_into_a_plain_tensor_carry_their_gradient(device):
    x = leaf([1.0, 2.0], device)
    y = Tensor.zeros(4, dtype=np.float64, device=device)
    y[:2] = x
    assert y.requires_grad and y.numpy().tolist() == [1, 2, 0, 0]
    (y * constant([1.0, 2.0, 3.0, 4.0], device)).sum().backward()
    assert x.grad.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("index, to_x, to_y", [
    (0, [[0, 0], [1, 1], [1, 1]], [1, 1]), (slice(0, 2), [[0, 0], [0, 0], [1, 1]], [2, 2]),
    (..., np.zeros((3, 2)), [3, 3]),
    ([2, 0], [[0, 0], [1, 1], [0, 0]], [2, 2]), ([True, False, True], [[0, 0], [1, 1], [0, 0]], [2, 2]),
    (-1, [[1, 1], [1, 1], [0, 0]], [1, 1]),
    ((slice(None), 0), [[0, 1], [0, 1], [0, 1]], None),
])  # fmt: skip
def test_what_is_overwritten_loses_its_gradient_and_what_is_written_gets_it(index, to_x, to_y, device):
    x, y = leaf(np.ones((3, 2)), device), leaf([5.0, 7.0] if to_y else 5.0, device)
    out = x * 1
    out[index] = y
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), to_x)
    np.testing.assert_array_equal(y.grad.numpy(), to_y if to_y else 3)


@pytest.mark.parametrize("write, expected, to_y, to_x", [
    (lambda y, x: y.add_(x), [3, 6], 1, [1, 1]), (lambda y, x: y.sub_(x), [1, 2], 1, [-1, -1]),
    (lambda y, x: y.mul_(x), [2, 8], None, [2, 4]), (lambda y, x: y.div_(x), [2, 2], None, [-2, -1]),
    (lambda y, x: y.copy_(x), [1, 2], 0, [1, 1]),
])  # fmt: skip
def test_methods_with_an_underscore_record_what_they_do(write, expected, to_y, to_x, device):
    x, base = leaf([1.0, 2.0], device), leaf([2.0, 4.0], device)
    y = base * 1
    memory = y.data
    assert write(y, x) is y and y.data is memory
    assert y.numpy().tolist() == expected
    y.sum().backward()
    slope = {None: [1, 2] if expected == [2, 8] else [1, 0.5]}.get(to_y, [to_y, to_y])
    assert base.grad.numpy().tolist() == slope and x.grad.numpy().tolist() == to_x


def test_constants_are_written_in_and_stop_the_gradient(device):
    for write in (
        lambda y: y.index_fill_(0, [0], 9.0), lambda y: y.__setitem__(0, 9.0), lambda y: y[:1].detach().fill_(9.0),
    ):  # fmt: skip
        x = leaf([1.0, 2.0], device)
        y = x * 2
        write(y)
        assert y.numpy().tolist() == [9, 4]
    y.sum().backward()
    x = leaf([1.0, 2.0], device)
    y = x * 2
    y.index_fill_(-1, [0], 9.0)
    y.sum().backward()
    assert x.grad.numpy().tolist() == [0, 2]
    y = leaf([1.0, 2.0], device) * 2
    y.fill_(3.0)
    assert y.numpy().tolist() == [3, 3]


def test_plus_equals_makes_a_new_tensor_and_is_right(device):
    x = leaf([1.0, 2.0], device)
    y = x * 2
    before = y
    y += x
    assert before.numpy().tolist() == [2, 4]
    y -= 1
    y *= x
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [5, 11])  # (3x − 1) x


@pytest.mark.parametrize("write, expected", [
    (lambda y: y.mul_(y), [2, 4, 6]), (lambda y: y.mul_(y[::-1]), [6, 4, 2]), (lambda y: y.div_(y), [0, 0, 0]),
    (lambda y: y.add_(y), [2, 2, 2]), (lambda y: y.sub_(y[::-1]), [0, 0, 0]),
    (lambda y: y.__setitem__(slice(1, None), y[:-1]), [2, 1, 0]),
    (lambda y: y.mul_(y.reshape(3)), [2, 4, 6]), (lambda y: y.mul_(y.detach()), [1, 2, 3]),
])  # fmt: skip
def test_a_tensor_may_be_written_from_its_own_values(write, expected):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    write(y)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-15)


@pytest.mark.parametrize("value, expected", [([1.0, 2.0], [0, 1]), (3.0, 1)])
def test_a_place_that_is_named_twice_gives_the_gradient_to_the_value_that_stays_or_refuses(value, expected):
    x = leaf(value)
    y = Tensor.zeros(2, dtype=np.float64)
    try:
        y[[0, 0]] = x
        y.sum().backward()
    except (ValueError, IndexError, RuntimeError):
        return
    assert x.grad.tolist() == expected


@pytest.mark.parametrize("rows", [0, 3])
def test_nothing_may_be_written_nowhere(rows):
    x = leaf(np.zeros((0, 2)))
    y = Tensor.zeros(rows, 2, dtype=np.float64)
    y[np.array([], int)] = x
    y.sum().backward()
    assert x.grad.shape == (0, 2)


def test_values_with_more_axes_than_the_place_are_written_or_refused_at_once():
    x = leaf([[1.0, 2.0]])
    y = Tensor.zeros(4, dtype=np.float64)
    try:
        y[:2] = x
    except ValueError:
        return
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1]]


def test_second_derivatives_pass_through_a_write():
    x = leaf([1.0, 2.0])
    y = x * x * x
    y[0] = x[1] ** 2
    y.mul_(x)
    (y.sum()).backward(create_graph=True)  # y = [x₁² x₀, x₁⁴]
    assert x.grad.tolist() == [4, 2 * 2 * 1 + 4 * 8]
    g = x.grad
    x.grad = None
    g.sum().backward()
    assert x.grad.tolist() == [4, 4 + 2 + 12 * 4]


# The guard ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operate, name", [
    (lambda x, w: x * w, "Mul"), (lambda x, w: w / x, "Div"), (lambda x, w: x @ w, "MatMul"),
    (lambda x, w: w**x, "Pow"),
    (lambda x, w: F.maximum(x, w), "Maximum"), (lambda x, w: F.einsum("i,i->", x, w), "Einsum"),
])  # fmt: skip
def test_a_write_into_a_saved_input_is_caught(operate, name, device):
    x, w = constant([3.0, 4.0], device), leaf([1.0, 2.0], device)
    y = operate(x, w)
    x[0] = 100
    with pytest.raises(RuntimeError, match=f"{name}: {WRITTEN_OVER}"):
        y.sum().backward()


@pytest.mark.parametrize("operate, name", [
    (F.exp, "Exp"), (F.tanh, "Tanh"), (F.sigmoid, "Sigmoid"), (F.softmax, "Softmax"), (F.sqrt, "Sqrt"),
    (F.relu, "Relu"), (F.logsumexp, "LogSumExp"),
    (lambda x: x.max(), "Max"),
])  # fmt: skip
@pytest.mark.parametrize("recorded", [True, False])
def test_a_write_into_a_saved_output_is_caught(operate, name, recorded, device):
    x = leaf([1.0, 2.0], device)
    y = operate(x)
    if recorded:
        y[...] = 0
    else:
        with no_grad():
            y.fill_(0)
    with pytest.raises(RuntimeError, match=f"{name}: {WRITTEN_OVER}"):
        y.sum().backward()


@pytest.mark.parametrize("view", [
    lambda x: x[0], lambda x: x[0][1:], lambda x: x.T, lambda x: x.reshape(6)[2:], lambda x: x.reshape(-1),
    lambda x: x.swapaxes(0, 1)[0],
    lambda x: x[None, ..., 0], lambda x: x.detach(), lambda x: x.unsqueeze(0).squeeze(0), lambda x: x[np.int64(0)],
    lambda x: x[(slice(None), np.int64(1))], lambda x: Tensor(x), lambda x: next(iter(x)),
    lambda x: x.transpose(1, 0)[0],
    lambda x: x.to(x.device), lambda x: x.astype(x.dtype), copy.copy,
])  # fmt: skip
def test_a_write_through_a_view_is_caught(view, device):
    x, w = constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device), leaf(np.ones((2, 3)), device)
    y = x * w
    part = view(x)
    part[...] = 100
    if (x.numpy() == [[1, 2, 3], [4, 5, 6]]).all():
        pytest.skip("it is a copy")
    with pytest.raises(RuntimeError, match=f"Mul: {WRITTEN_OVER}"):
        y.sum().backward()


def test_a_write_into_the_base_is_caught_where_a_view_was_saved(device):
    for view in (lambda x: x[0], lambda x: x.T[0], lambda x: x[np.int64(0)], lambda x: x[0].reshape(2)):
        x, w = constant([[1.0, 2.0], [3.0, 4.0]], device), leaf([1.0, 1.0], device)
        y = view(x) * w
        x[...] = 0
        with pytest.raises(RuntimeError, match=f"Mul: {WRITTEN_OVER}"):
            y.sum().backward()


def test_an_index_that_is_written_over_is_caught_or_was_copied(device):
    def check(operate, index, expected):
        x = leaf([[1.0, 2.0], [3.0, 4.0]], device)
        y = operate(x, index)
        index[0] = True
        try:
            y.sum().backward()
        except RuntimeError:
            return
        found = x.grad if isinstance(x.grad, Tensor) else Tensor(x.grad.dense())
        assert found.tolist() == expected

    rows = [[2, 2], [0, 0]]
    check(lambda x, i: x[i], Tensor([0, 0], device=device), rows)
    check(F.embedding, Tensor([0, 0], device=device), rows)
    check(lambda x, i: x.gather(0, i.unsqueeze(1)), Tensor([0, 0], device=device), [[2, 0], [0, 0]])
    check(lambda x, i: F.index_fill(x, 0, i, 0.0), Tensor([0, 0], device=device), [[0, 0], [1, 1]])
    check(lambda x, m: F.where(m, x, 0.0), Tensor([[False], [False]], device=device), [[0, 0], [0, 0]])
    check(lambda x, m: x[m], Tensor([False, True], device=device), [[0, 0], [1, 1]])


@pytest.mark.parametrize("loss", [
    lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="sum"),
    lambda x, t: F.mse_loss(x, t, reduction="sum"),
    lambda x, t: F.binary_cross_entropy_with_logits(x, x.detach() * 0 + 1, weight=t, reduction="sum"),
    lambda x, t: F.cross_entropy(F.stack([x, x * 0], axis=1), t.astype(int), reduction="sum"),
])  # fmt: skip
def test_a_buffer_of_targets_that_is_used_again_too_early_is_caught_or_was_copied(loss, device):
    """As a loader does that fills the same memory with the next batch."""

    def gradient(early):
        x, t = leaf([0.5, -1.0], device), constant([1.0, 0.0], device)
        out = loss(x, t)
        if early:
            t[0] = 0.0
        out.backward()
        return x.grad.tolist()

    right = gradient(early=False)
    try:
        found = gradient(early=True)
    except RuntimeError:
        return
    assert found == right


def test_writes_that_harm_nothing_are_allowed(device):
    x, w = constant([3.0, 4.0], device), leaf([1.0, 2.0], device)
    other = constant([0.0, 0.0], device)
    y = x * w
    other.fill_(7)  # other memory
    (y + other).sum().backward()
    x[0] = 5  # after the walk
    z = x + w  # a sum saves nothing
    x[0] = 6
    z.sum().backward()
    y = x * w
    y.sum().backward()
    assert w.grad.numpy().tolist() == [3 + 1 + 6, 4 + 1 + 4]


def test_the_guard_also_holds_a_second_time_through_a_kept_graph():
    x, w = constant([3.0]), leaf([1.0])
    y = x * w
    y.backward(retain_graph=True)
    x[0] = 5
    with pytest.raises(RuntimeError, match=WRITTEN_OVER):
        y.backward()
    with pytest.raises(RuntimeError, match=WRITTEN_OVER):
        y.backward(create_graph=True)


def test_a_write_between_forward_and_a_second_derivative_is_caught():
    x = leaf([2.0])
    y = (x * 1).exp()
    y.backward(create_graph=True)
    g = x.grad
    x.grad = None
    with no_grad():
        y.fill_(0)
    with pytest.raises(RuntimeError, match=WRITTEN_OVER):
        g.backward()


def test_an_optimizers_step_between_forward_and_backward_is_caught():
    w = leaf([1.0, 2.0])
    loss = (w * w).sum()
    w.grad = Tensor([1.0, 1.0])
    optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match=WRITTEN_OVER):
        loss.backward()


def test_a_parameter_made_of_a_tensor_has_memory_of_its_own():
    x, w = constant([3.0, 4.0]), leaf([1.0, 2.0])
    p = nn.Parameter(x)
    y = x * w
    with no_grad():
        p.fill_(7.0)
    y.sum().backward()  # what was saved is x, which nobody wrote to
    assert w.grad.tolist() == [3, 4] and x.tolist() == [3, 4]
    x[:1] = w[:1]
    p.requires_grad = False
    assert (p * 1).tolist() == [7, 7]


# Refused writes -------------------------------------------------------------------------------------

ALL_WRITES = [
    lambda x: x.__setitem__(0, 5.0), lambda x: x.add_(1.0), lambda x: x.sub_(1.0), lambda x: x.mul_(2.0),
    lambda x: x.div_(2.0),
    lambda x: x.copy_([1.0, 1.0]), lambda x: x.fill_(1.0), lambda x: x.index_fill_(0, [0], 5.0),
]  # fmt: skip


@pytest.mark.parametrize("write", ALL_WRITES)
def test_a_leaf_is_written_only_within_no_grad(write):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"a leaf that requires a gradient cannot be written over .* no_grad\(\)"):
        write(x)
    assert x.numpy().tolist() == [1, 2]
    with no_grad():
        write(x)
    assert x.is_leaf and x.requires_grad and x.numpy().tolist() != [1, 2]


@pytest.mark.parametrize("write", ALL_WRITES)
def test_a_view_is_not_written_where_that_is_recorded(write):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    with pytest.raises(RuntimeError, match="a view cannot be written over where .* write into the base"):
        write(y[0])
    with pytest.raises(RuntimeError, match="a leaf|a view"):
        write(x[0])
    assert y.tolist() == x.tolist() == [[1, 2], [3, 4]]


def test_a_view_of_a_plain_tensor_takes_no_recorded_values():
    y = Tensor.zeros(4, dtype=np.float64)
    with pytest.raises(RuntimeError, match="view"):
        y[:2].add_(leaf([1.0, 2.0]))
    y[:2].add_(1.0)
    assert y.tolist() == [1, 1, 0, 0]


def test_a_copy_made_by_reshape_is_no_view():
    """The memory of a transposed array cannot be reshaped in place: NumPy copies it, so it may be written."""
    x = leaf(np.ones((2, 3)))
    flat = (x * 1).T.reshape(6)
    flat[0] = 5.0
    flat.sum().backward()
    assert x.grad.tolist() == [[0, 1, 1], [1, 1, 1]]


def test_a_view_that_was_overtaken_by_a_write_is_refused(device):
    x = leaf([1.0, 2.0, 3.0], device)
    y = x * 2
    old = y[:2]
    older = old[0:1]
    y[0] = 9.0
    uses = [
        lambda v: v.sum(),
        lambda v: v * 2,
        lambda v: Tensor.ones_like(v) * v,
        F.exp,
        lambda v: 1 + v,
        lambda v: v[0],
        lambda v: F.stack([v, v]),
    ]
    for view in (old, older):
        for use in uses:
            with pytest.raises(RuntimeError, match="view of memory that was written over since.* take the view again"):
                use(view)
    y[:2].sum().backward()
    assert x.grad.numpy().tolist() == [0, 2, 0]


def test_a_plain_view_taken_before_a_recorded_write_loses_no_gradient():
    """y holds no graph when its view is taken, and does when the view is used."""
    x = leaf([1.0, 2.0, 3.0])
    y = Tensor.zeros(3, dtype=np.float64)
    view = y[:2]
    y[:] = x
    try:
        (view.sum() + y.sum()).backward()
    except RuntimeError:
        return
    assert x.grad.tolist() == [2, 2, 1]


@pytest.mark.parametrize("write, message", [
    (lambda x: x.__setitem__(0, 1.5), "float.* cannot be written into .*int64"), (lambda x: x.add_(0.5), "int64"),
    (lambda x: x.div_(2), "int64"),
    (lambda x: x.__setitem__(slice(None), constant([0.5, 1.5], x.device)), "int64"),
    (lambda x: x.copy_(constant([0.5, 1.5], x.device)), "int64"), (lambda x: x.fill_(0.5), "int64"),
    (lambda x: x.index_fill_(0, [0], 0.5), "int64"),
])  # fmt: skip
def test_fractions_are_not_cut_off_to_fit_into_integers(write, message, device):
    x = Tensor([1, 2], device=device)
    with pytest.raises(TypeError, match=message):
        write(x)
    assert x.numpy().tolist() == [1, 2]


def test_index_fill_does_not_cut_off_fractions_either():
    try:
        filled = Tensor([1, 2]).index_fill(0, [0], 1.5)
    except TypeError:
        return
    assert filled.tolist() == [1.5, 2]


@pytest.mark.parametrize("write, error", [
    (lambda x: x.add_(constant([[1.0, 2.0]] * 2, x.device)), ValueError),
    (lambda x: x.copy_(constant([1.0, 2.0, 3.0], x.device)), ValueError),
    (lambda x: x.__setitem__(5, 1.0), IndexError),
    (lambda x: x.__setitem__([0, 5], 1.0), IndexError), (lambda x: x.index_fill_(0, [5], 1.0), IndexError),
    (lambda x: x.index_fill_(1, [0], 1.0), ValueError),
    (lambda x: x.__setitem__(0, "a"), TypeError), (lambda x: x.__setitem__(0, None), TypeError),
])  # fmt: skip
def test_a_write_that_cannot_be_done_changes_nothing(write, error, device):
    x = constant([1.0, 2.0], device)
    with pytest.raises(error):
        write(x)
    assert x.numpy().tolist() == [1, 2]


def test_a_narrow_tensor_stays_narrow(device):
    x = Tensor([1.0, 2.0], device=device)
    x.add_(constant([0.5, 0.5], device))
    x[0] = np.float64(0.25)
    x.mul_(3)
    assert x.dtype == np.float32 and x.numpy().tolist() == [0.75, 7.5]


def test_writing_into_data_itself_is_reported_by_hand():
    """x.data[...] = escapes the guard, as its docstring says; mark_written closes the gap."""
    x, w = constant([3.0]), leaf([1.0])
    y = x * w
    x.data[0] = 5
    x.mark_written()
    with pytest.raises(RuntimeError, match=WRITTEN_OVER):
        y.backward()
