"""Convolution and pooling: loops, misuse, layers, and PyTorch's answers where it is installed.

The derivatives, float32 and devices are those of the table's rows, see test_ops.py.
"""

import numpy as np
import pytest

import metagrad
from metagrad import Tensor, debug_mode, gradcheck, gradgradcheck, nn
from metagrad import functional as F

x1 = np.random.default_rng(0).standard_normal((3, 4, 9))
x2 = np.random.default_rng(1).standard_normal((3, 4, 7, 6))


def test_a_convolution_is_the_sum_over_channels_and_places_of_each_window():
    weight, bias = np.random.default_rng(2).standard_normal((6, 4, 3, 2)), np.arange(6.0)
    out = F.conv2d(x2, weight, bias, stride=(2, 1)).numpy()
    assert out.shape == (3, 6, 3, 5)
    for n, o, i, j in np.ndindex(out.shape):
        total = bias[o]
        for c, h, w in np.ndindex(4, 3, 2):
            total += x2[n, c, 2 * i + h, j + w] * weight[o, c, h, w]
        assert out[n, o, i, j] == pytest.approx(total, rel=1e-10)


def test_groups_see_their_own_channels_only():
    weight = np.random.default_rng(2).standard_normal((6, 2, 3))
    whole = F.conv1d(x1, weight, groups=2).numpy()
    parts = [F.conv1d(x1[:, :2], weight[:3]).numpy(), F.conv1d(x1[:, 2:], weight[3:]).numpy()]
    np.testing.assert_allclose(whole, np.concatenate(parts, axis=1), rtol=1e-12)


def test_a_convolution_over_one_axis_is_one_over_two_of_which_one_has_length_1():
    weight = np.random.default_rng(2).standard_normal((5, 4, 3))
    one = F.conv1d(x1, weight, stride=2, padding=1, dilation=2).numpy()
    two = F.conv2d(x1[:, :, None], weight[:, :, None], stride=(1, 2), padding=(0, 1), dilation=(1, 2)).numpy()
    np.testing.assert_allclose(two[:, :, 0], one, rtol=1e-12)


def test_the_padding_of_max_pooling_never_wins_and_that_of_avg_pooling_counts():
    below = np.full((1, 1, 4), -5.0)
    with debug_mode(table=False):
        assert F.max_pool1d(below, 2, padding=1).tolist() == [[[-5, -5, -5]]]
    assert F.avg_pool1d(below, 2, padding=1).tolist() == [[[-2.5, -5, -2.5]]]


def test_equal_entries_of_a_window_share_the_gradient():
    x = Tensor(np.ones((1, 1, 2, 4)), requires_grad=True)
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[[0.25] * 4] * 2]]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: F.conv1d(x2, np.ones((2, 4, 3))), r"conv1d: needs values \(N, C, L\), got \(3, 4, 7, 6\)"),
        (lambda: F.conv2d(x2, np.ones((2, 4, 3))), r"\(O, 4/1, h, w\).* got \(2, 4, 3\)"),
        (lambda: F.conv2d(x2, np.ones((2, 3, 2, 2))), r"\(3, 4, 7, 6\) in 1 group.* got \(2, 3, 2, 2\)"),
        (lambda: F.conv2d(x2, np.ones((2, 4, 2, 2)), groups=2), r"\(O, 4/2, h, w\).* got \(2, 4, 2, 2\)"),
        (lambda: F.conv2d(x2, np.ones((3, 2, 2, 2)), groups=2), r"O a multiple of 2.* got \(3, 2, 2, 2\)"),
        (lambda: F.conv1d(x1, np.ones((2, 4, 2)), np.ones(4)), r"got \(2, 4, 2\) and \(4,\)"),
        (lambda: F.conv1d(x1, np.ones((2, 4, 5)), dilation=3), r"reach over \(13,\) do not fit into \(9,\)"),
        (lambda: F.conv1d(x1, np.ones((2, 4, 12)), padding=1), r"\(12,\) do not fit into \(11,\), padding included"),
        (lambda: F.conv1d(x1, np.ones((2, 4, 0))), r"\(0,\) do not fit"),
        (lambda: F.conv2d(x2, np.ones((2, 4, 2, 2)), stride=(1, 1, 1)), r"stride is a number from 1 on, or 2 of them"),
        (lambda: F.conv2d(x2, np.ones((2, 4, 2, 2)), padding=-1), r"padding is a number from 0 on, or 2 .* got -1"),
        (lambda: F.conv1d(x1, np.ones((2, 4, 2)), stride=0), "stride .* got 0"),
        (lambda: F.max_pool2d(x1, 2), r"max_pool2d: needs values \(N, C, H, W\), got \(3, 4, 9\)"),
        (lambda: F.avg_pool2d(x2, 8), r"avg_pool2d: windows that reach over \(8, 8\) do not fit into \(7, 6\)"),
        (lambda: F.max_pool1d(x1, 3, padding=2), r"padding of \(2,\) is more than half of windows of \(3,\)"),
        (lambda: F.avg_pool1d(x1, 0), "size is a number from 1 on"),
        (lambda: nn.Conv2d(4, 6, 3, groups=3), "4 inputs and 6 outputs do not divide into 3 groups"),
        (lambda: nn.Conv2d(4, 6, (3,))(x2), r"got \(6, 4, 3\)"),
    ],
)
def test_misuse_is_answered(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_layers_are_their_functions_and_show_what_shaped_them():
    layer = nn.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), groups=2, bias=False, dtype=np.float64)
    expected = F.conv2d(x2, layer.weight, stride=2, padding=(1, 0), groups=2)
    np.testing.assert_array_equal(layer(x2).numpy(), expected.numpy())
    assert repr(layer) == "Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), groups=2, bias=False)"
    assert repr(nn.Conv1d(4, 2, 3, dilation=2)) == "Conv1d(4, 2, (3,), dilation=2)"
    assert nn.Conv1d(4, 2, 3)(np.float32(x1)).dtype == np.float32
    assert nn.MaxPool1d(3, stride=2, padding=1)(x1).tolist() == F.max_pool1d(x1, 3, 2, 1).tolist()
    assert nn.AvgPool2d(2)(x2).tolist() == F.avg_pool2d(x2, 2).tolist()
    assert repr(nn.AvgPool1d(3, padding=1)) == "AvgPool1d(3, stride=3, padding=1)"


def test_layers_start_within_one_over_the_root_of_the_entries_of_a_window():
    layer = nn.Conv2d(8, 64, 5, groups=2)  # 4 channels of 25 places
    for parameter in layer.parameters():
        assert 0.08 < np.abs(parameter.data).max() <= 0.1


def test_a_network_of_layers_passes_the_gradient_check():
    net = nn.Sequential(nn.Conv2d(2, 3, 2, padding=1, dtype=np.float64), F.tanh, nn.AvgPool2d(2), nn.MaxPool2d(2))
    x = np.random.default_rng(3).standard_normal((2, 2, 4, 5))
    assert gradcheck(net, x) and gradgradcheck(net, x)


OPTIONS = [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 3}, {"groups": 2, "padding": 1}, {"bias": False}]
LAYERS = [
    *(("Conv1d", x1, (4, 6, 3), options) for options in OPTIONS),
    *(("Conv2d", x2, (4, 6, (3, 2)), options) for options in [*OPTIONS, {"stride": (1, 2), "dilation": (2, 1)}]),
    *(
        (name, x1, (3,), {**options})
        for name in ("MaxPool1d", "AvgPool1d")
        for options in ({}, {"stride": 2, "padding": 1})
    ),
    *(
        (name, x2, ((3, 2),), options)
        for name in ("MaxPool2d", "AvgPool2d")
        for options in ({}, {"stride": 1, "padding": 1})
    ),
]


@pytest.mark.parametrize("name, x, args, options", LAYERS)
def test_values_and_gradients_are_pytorchs(name, x, args, options):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, name)(*args, **options).double()
    ours = getattr(nn, name)(*args, **options).to(dtype=np.float64)
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    start, leaf = torch.tensor(x, requires_grad=True), Tensor(x, requires_grad=True)
    expected, out = theirs(start), ours(leaf)
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    expected.sin().sum().backward()
    F.sin(out).sum().backward()
    for p, q in zip([leaf, *ours.parameters()], [start, *theirs.parameters()], strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_layers_start_as_pytorchs_do_in_shape_and_spread():
    torch = pytest.importorskip("torch")
    metagrad.manual_seed(0)
    for p, q in zip(nn.Conv1d(6, 300, 4, groups=2).parameters(), torch.nn.Conv1d(6, 300, 4, groups=2).parameters()):
        assert p.shape == tuple(q.shape)
        assert p.numpy().std() == pytest.approx(q.detach().numpy().std(), rel=0.1)
