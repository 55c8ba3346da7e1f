"""checkpoint(f, *inputs): the same values and gradients, less memory, the same draws."""

import tracemalloc

import numpy as np
import pytest

from metagrad import Tensor, checkpoint, grad, gradcheck, gradgradcheck, manual_seed, nn, no_grad
from metagrad import functional as F


def leaf(values, device="cpu"):
    return Tensor(np.asarray(values, np.float64), device=device, requires_grad=True)


def layers(depth=3, width=4):
    manual_seed(0)
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), F.tanh) for _ in range(depth)]).to(dtype=np.float64)


def test_gradients_of_inputs_and_parameters_are_those_without(device):
    model, found = layers().to(device), []
    for run in (lambda part, x: part(x), checkpoint):
        x = leaf([[0.1, 0.2, 0.3, 0.4]], device)
        model.zero_grad()
        h = x
        for part in model:
            h = run(part, h)
        (h * h).sum().backward()
        found.append([h.numpy(), x.grad.numpy(), *(p.grad.numpy() for p in model.parameters())])
    for plain, again in zip(*found):
        np.testing.assert_array_equal(plain, again)


def test_parameters_learn_even_if_no_input_needs_a_gradient():
    model = layers(1)
    (loss,) = grad(checkpoint(model, np.ones((1, 4))).sum(), [model[0][0].bias])
    assert loss.shape == (4,) and loss.numpy().all()


def test_second_derivatives_pass_through_it():
    w = leaf([0.3, 0.7])

    def f(x, y):
        return checkpoint(lambda a, b: F.tanh(a * b) * a * w, x, y)

    assert gradcheck(f, [0.5, -1.0], [2.0, 0.25]) and gradgradcheck(f, [0.5, -1.0], [2.0, 0.25])
    (first,) = grad(f(leaf([0.5, -1.0]), leaf([2.0, 0.25])).sum(), [w], create_graph=True)
    assert first.shape == (2,)


def test_dropout_drops_the_same_entries_again_and_the_stream_goes_on():
    manual_seed(5)
    x = leaf(np.ones(1000))
    y = checkpoint(F.dropout, x)
    after = F.dropout(Tensor(np.ones(50))).tolist()
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())
    manual_seed(5)
    checkpoint(F.dropout, x)
    assert F.dropout(Tensor(np.ones(50))).tolist() == after


def test_only_the_inputs_are_kept():
    def deep(x):
        for _ in range(50):
            x = F.tanh(x)
        return x

    x, peaks = leaf(np.ones(100_000)), []  # 0.8 MB
    for run in (lambda f, x: f(x), checkpoint):
        tracemalloc.start()
        out = run(deep, x)
        peaks.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        out.sum().backward()
    assert peaks[0] > 40e6 and peaks[1] < 2e6


def test_without_recording_it_is_the_function_itself():
    with no_grad():
        assert not checkpoint(F.tanh, leaf([1.0])).requires_grad
    assert not checkpoint(F.tanh, Tensor([1.0])).requires_grad
    x = leaf([2.0])
    checkpoint(lambda x: x, x).sum().backward()
    assert x.grad.tolist() == [1]


def test_what_f_takes_from_outside_is_a_leaf_or_refused():
    inner = leaf([1.0]) * 2
    with pytest.raises(RuntimeError, match="uses the result of Mul, computed outside: give it to checkpoint as an"):
        checkpoint(lambda x: x * inner, leaf([3.0]))
    with pytest.raises(TypeError, match="checkpoint: the function is to return a Tensor, not a tuple"):
        checkpoint(lambda x: (x, x), leaf([3.0]))


def test_a_value_that_is_written_over_before_it_is_read_again_is_noticed():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    for changed in (x, w):
        out = checkpoint(lambda x: (x * w).exp(), x)
        with no_grad():
            changed.mul_(2)
        with pytest.raises(RuntimeError, match="Checkpoint: a value that its derivative needs was written over"):
            out.sum().backward()
