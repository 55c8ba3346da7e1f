"""Batch normalisation: running statistics, misuse, and PyTorch's answers where it is installed.

Values and derivatives, float32 and devices are those of the table's rows, see test_ops.py.
"""

import numpy as np
import pytest

import metagrad
from metagrad import Tensor, gradcheck, gradgradcheck, nn, optim
from metagrad import functional as F

SHAPES = [("BatchNorm1d", (4, 3)), ("BatchNorm1d", (4, 3, 5)), ("BatchNorm2d", (4, 3, 5, 2))]
x = np.random.default_rng(0).standard_normal((4, 3, 5)) * 3 + 1


def test_running_statistics_follow_those_of_the_batches():
    layer = nn.BatchNorm1d(3, momentum=0.25, dtype=np.float64)
    y = layer(Tensor(x, requires_grad=True))
    assert not any(buffer.requires_grad for buffer in layer.buffers())
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.25 * x.mean(axis=(0, 2)), rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), 0.75 + 0.25 * x.var(axis=(0, 2), ddof=1), rtol=1e-12)
    np.testing.assert_allclose(y.numpy().mean(axis=(0, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(y.numpy().std(axis=(0, 2)), 1, rtol=1e-5)


def test_in_evaluation_they_are_used_and_stay():
    layer = nn.BatchNorm1d(3, dtype=np.float64)
    layer(x)
    before = layer.eval().state_dict()
    one = layer(x[:1]).numpy()
    np.testing.assert_allclose(one, layer(x).numpy()[:1], rtol=1e-12)
    for name, value in layer.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


def test_a_training_step_between_leaves_the_gradient_of_an_evaluation_right():
    layer, leaf = nn.BatchNorm1d(3, dtype=np.float64), Tensor(x, requires_grad=True)
    y = layer.eval()(leaf)
    layer.train()(x)
    y.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), (1 + 1e-5) ** -0.5, rtol=1e-12)


def test_running_statistics_are_saved_moved_and_not_trained(device):
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(5, 1)).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model(Tensor(x.astype(np.float32)).to(device)).sum().backward()
    after = model.state_dict()
    assert list(after)[:4] == ["0.weight", "0.bias", "0.running_mean", "0.running_var"]
    assert after["0.running_mean"].any() and after["0.running_var"].dtype == np.float32
    optimizer.step()
    np.testing.assert_array_equal(model.state_dict()["0.running_mean"], after["0.running_mean"])
    other = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(5, 1))
    other.load_state_dict(model.state_dict())
    expected = model.eval()(Tensor(x.astype(np.float32)).to(device)).numpy()
    np.testing.assert_allclose(other.eval()(x.astype(np.float32)).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_dtype_stays_what_it_is(dtype):
    layer = nn.BatchNorm2d(2, dtype=dtype)
    values = np.random.default_rng(0).uniform(-100, 100, (64, 2, 30, 30)).astype(dtype)
    assert layer(values).dtype == layer.running_var.dtype == layer.eval()(values).dtype == dtype
    expected = 0.9 + 0.1 * values.var(
        axis=(0, 2, 3), dtype=float
    )  # though the squares add up to more than float16 holds
    np.testing.assert_allclose(layer.running_var.numpy(), expected, rtol=1e-3)


@pytest.mark.parametrize("training", [True, False])
def test_a_layer_passes_the_gradient_check(training):
    layer = nn.BatchNorm1d(3, dtype=np.float64).train(training)
    assert gradcheck(layer, x) and gradgradcheck(layer, x)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.BatchNorm1d(3)(np.ones((1, 3))), r"two values or more; got \(1, 3\)"),
        (lambda: nn.BatchNorm1d(3)(np.ones(3)), r"BatchNorm1d: needs .* of 2 or 3 axes, got \(3,\)"),
        (lambda: nn.BatchNorm2d(3)(x), r"BatchNorm2d: needs .* of 4 axes, got \(4, 3, 5\)"),
        (lambda: nn.BatchNorm1d(5)(x), r"batch_norm: .* got \(4, 3, 5\) with \[\(5,\), \(5,\), \(5,\), \(5,\)\]"),
        (lambda: F.batch_norm(np.ones(3), None, None, training=True), r"\(N, C, \.\.\.\)"),
        (lambda: F.batch_norm(x, None, None), "needed where it is not in training"),
    ],
)
def test_misuse_is_answered(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_refused_batch_changes_no_statistics():
    layer = nn.BatchNorm1d(3)
    with pytest.raises(ValueError):
        layer(np.ones((1, 3)))
    assert layer.running_mean.tolist() == [0] * 3 and layer.running_var.tolist() == [1] * 3


def test_one_value_for_each_channel_is_enough_in_evaluation():
    assert nn.BatchNorm1d(3).eval()(np.ones((1, 3), np.float32)).shape == (1, 3)


def test_repr_shows_what_shaped_a_layer():
    assert repr(nn.BatchNorm2d(3, affine=False)) == "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=False)"


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("name, shape", SHAPES)
def test_several_steps_and_the_evaluation_behind_them_are_pytorchs(name, shape, affine):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    theirs = getattr(torch.nn, name)(3, affine=affine).double()
    ours = getattr(nn, name)(3, affine=affine, dtype=np.float64)
    with metagrad.no_grad():
        for p, q in zip(ours.parameters(), theirs.parameters()):
            p.copy_(Tensor(rng.standard_normal(3)))
            q.data.copy_(torch.tensor(p.numpy()))
    for training in (True, True, True, False):
        values = rng.standard_normal(shape) * 2 + 1
        start, leaf = torch.tensor(values, requires_grad=True), Tensor(values, requires_grad=True)
        theirs.zero_grad(), ours.zero_grad()
        expected, out = theirs.train(training)(start), ours.train(training)(leaf)
        np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)
        expected.sin().sum().backward()
        F.sin(out).sum().backward()
        for p, q in zip([leaf, *ours.parameters()], [start, *theirs.parameters()], strict=True):
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-10, atol=1e-12)
        state = theirs.state_dict()
        for key, value in ours.state_dict().items():
            np.testing.assert_allclose(value, state[key].numpy(), rtol=1e-10)
