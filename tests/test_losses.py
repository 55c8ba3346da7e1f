"""Losses: what they refuse, what an ignored target does, what is large. Values and derivatives: test_ops.py."""

import numpy as np
import pytest

from metagrad import Tensor, nn
from metagrad import functional as F

LOGITS = [[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]


def leaf(values, device="cpu"):
    return Tensor(np.asarray(values, np.float32), device=device, requires_grad=True)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"weight": [1.0, 2.0, 3.0]}])
@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_an_ignored_target_counts_nothing_even_where_its_scores_are_nan(loss, options, device):
    if loss is F.nll_loss and "label_smoothing" in options:
        return
    x, whole = leaf([*LOGITS, [np.nan, 0.0, 1.0]], device), leaf(LOGITS, device)
    got, expected = loss(x, [1, 2, -100], **options), loss(whole, [1, 2], **options)
    assert got.item() == pytest.approx(expected.item(), rel=1e-6)
    got.backward()
    expected.backward()
    np.testing.assert_allclose(x.grad.numpy(), [*whole.grad.numpy(), [0, 0, 0]], rtol=1e-5)


def test_nothing_but_ignored_targets_is_a_loss_of_zero(device):
    x = leaf(LOGITS, device)
    loss = F.cross_entropy(x, [0, 0], ignore_index=0)
    loss.backward()
    assert loss.item() == 0 and not x.grad.numpy().any()


def test_a_nan_that_counts_is_not_hidden(device):
    assert np.isnan(F.cross_entropy(leaf([[np.nan, 0.0]], device), [0]).item())
    assert np.isnan(F.cross_entropy(leaf([[np.nan, 0.0]], device), [0], weight=[1.0, 1.0]).item())


def test_class_weights_divide_the_mean():
    """Two targets of weights 1 and 3: (1 · a + 3 · b) / 4."""
    each = F.cross_entropy(Tensor(LOGITS), [1, 2], reduction="none").numpy()
    got = F.cross_entropy(Tensor(LOGITS), [1, 2], weight=[9.0, 1.0, 3.0]).item()
    assert got == pytest.approx((each[0] + 3 * each[1]) / 4, rel=1e-6)


def test_a_sure_and_wrong_probability_costs_a_hundred_and_keeps_a_finite_gradient(device):
    x = leaf([0.0, 1.0, 0.25], device)
    losses = F.binary_cross_entropy(x, [1.0, 0.0, 0.0], reduction="none")
    np.testing.assert_allclose(losses.numpy(), [100, 100, -np.log(0.75)], rtol=1e-6)
    losses.sum().backward()
    assert np.isfinite(x.grad.numpy()).all() and x.grad.numpy()[2] == pytest.approx(1 / 0.75, rel=1e-6)


def test_large_scores_do_not_overflow(device):
    x = leaf([[1e4, -1e4], [1e38, -1e38]], device)
    loss = F.cross_entropy(x, [0, 0])
    loss.backward()
    assert loss.item() == 0 and np.isfinite(x.grad.numpy()).all()


def test_float16_sums_are_wide(device):
    x = Tensor(np.zeros((70_000, 2), np.float16), device=device)
    assert F.cross_entropy(x, [0] * 70_000).item() == pytest.approx(np.log(2), rel=1e-3)


@pytest.mark.parametrize("call, error, message", [
    (lambda x: F.cross_entropy(x, [0, 1], weight=[1.0]), ValueError, r"one weight for each of 3 classes, .*\(1,\)"),
    (lambda x: F.cross_entropy(x, [0, 1], label_smoothing=2), ValueError, "label_smoothing is from 0 to 1, not 2"),
    (lambda x: F.cross_entropy(x, [0, 7]), IndexError, r"target 7 at \(1,\)"),
    (lambda x: F.nll_loss(x, [0, 7], ignore_index=0), IndexError, r"nll_loss: target 7 at \(1,\)"),
    (lambda x: F.nll_loss(x, [0.5, 1.0]), ValueError, "integer targets"),
    (lambda x: F.binary_cross_entropy(x, x.detach()), ValueError, "probabilities from 0 to 1"),
    (lambda x: F.binary_cross_entropy(F.sigmoid(x), [1.0]), ValueError, r"values \(2, 3\) and targets \(1,\) differ"),
    (lambda x: F.huber_loss(x, x, delta=0.0), ValueError, "delta is above 0"),
    (lambda x: F.hinge_embedding_loss(x, np.zeros((2, 3))), ValueError, "targets are 1 or −1"),
    (lambda x: F.cosine_embedding_loss(x, x, [1, 2]), ValueError, "cosine_embedding_loss: targets are 1 or −1"),
    (lambda x: F.kl_div(x, [0.5, 0.5]), ValueError, "kl_div: values"),
    (lambda x: F.l1_loss(x, [1.0]), ValueError, "l1_loss: values"),
    (lambda x: F.triplet_margin_loss(x, x, x, reduction="avg"), ValueError, "reduction is"),
])  # fmt: skip
def test_misuse_is_answered_with_one_sentence(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(Tensor([[0.0, 2.0, -1.0], [0.5, 0.0, 1.0]], requires_grad=True))
    assert "\n" not in str(caught.value)


def test_a_loss_module_is_its_function_with_options_fixed():
    x, y = Tensor(LOGITS), np.array([1, 2])
    loss = nn.CrossEntropyLoss(label_smoothing=0.1, reduction="sum")
    assert loss(x, y).item() == F.cross_entropy(x, y, label_smoothing=0.1, reduction="sum").item()
    assert repr(loss) == "CrossEntropyLoss(label_smoothing=0.1, reduction='sum')"
    assert nn.HuberLoss.__doc__ == F.huber_loss.__doc__
    with pytest.raises(TypeError, match="HuberLoss has no option 'beta'; it has delta, reduction"):
        nn.HuberLoss(beta=1.0)
    with pytest.raises(TypeError, match="ReLU has no 1 options; it has none"):
        nn.ReLU(True)


@pytest.mark.parametrize("name", [
    "ReLU", "LeakyReLU", "ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Hardtanh", "Hardswish", "Tanh", "Tanhshrink",
    "Sigmoid", "LogSigmoid", "Softplus", "Softsign", "Softmax", "LogSoftmax", "PReLU",
])  # fmt: skip
def test_an_activation_module_is_pytorchs_of_that_name(name):
    torch = pytest.importorskip("torch")
    x = np.linspace(-3, 3, 12).reshape(3, 4)
    options = {"dim": -1} if "max" in name else {}
    expected = getattr(torch.nn, name)(**options).double()(torch.tensor(x)).detach().numpy()
    layer = getattr(nn, name)()
    np.testing.assert_allclose(layer.to(dtype=np.float64)(Tensor(x)).numpy(), expected, rtol=1e-12, atol=1e-15)
