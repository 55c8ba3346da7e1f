"""Attention and layer normalisation: what they promise, and PyTorch's answers where it is installed."""

import numpy as np
import pytest

import metagrad
from metagrad import Tensor, nn
from metagrad import functional as F

x = np.random.default_rng(0).standard_normal((2, 5, 8))


def test_a_causal_mask_hides_what_comes_later():
    model = nn.MultiheadAttention(8, 2, dtype=np.float64)
    out = model(x, causal=True).numpy()
    later = x.copy()
    later[:, 3:] = 7.0
    np.testing.assert_allclose(model(later, causal=True).numpy()[:, :3], out[:, :3], rtol=1e-12)
    assert not np.allclose(model(later).numpy()[:, :3], model(x).numpy()[:, :3])


def test_key_and_value_of_their_own_are_projected_alike():
    model = nn.MultiheadAttention(8, 4, dtype=np.float64)
    np.testing.assert_allclose(model(x, x.copy(), x.copy()).numpy(), model(x).numpy(), rtol=1e-12)
    assert model(x, x[:, :3]).shape == (2, 5, 8)


def test_a_query_that_sees_nothing_gets_zeros_and_sends_no_gradient():
    q, k = Tensor(x, requires_grad=True), Tensor(x)
    mask = np.ones((5, 5), bool)
    mask[2] = False
    out = F.scaled_dot_product_attention(q, k, k, mask=mask)
    out.sum().backward()
    assert (out.numpy()[:, 2] == 0).all() and (q.grad.numpy()[:, 2] == 0).all()
    assert np.isfinite(q.grad.numpy()).all() and (q.grad.numpy()[:, 1] != 0).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.MultiheadAttention(8, 3), "8 entries do not divide among 3 heads"),
        (lambda: F.scaled_dot_product_attention(x, x[:, :, :4], x), r"\(2, 5, 8\), \(2, 5, 4\)"),
        (lambda: F.scaled_dot_product_attention(x, x, x, mask=np.ones((5, 5))), "booleans"),
        (lambda: F.layer_norm(x, (5,)), r"\(2, 5, 8\) do not end in the axes \(5,\)"),
    ],
)
def test_misuse_is_answered(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_layer_norm_of_large_and_of_equal_entries():
    y = F.layer_norm(np.float32([[1e4, 1e4 + 1, 1e4 + 2], [5, 5, 5]]), 3).numpy()
    np.testing.assert_allclose(y, [[-1.2247, 0, 1.2247], [0, 0, 0]], atol=1e-3)
    assert F.layer_norm(np.float16([[1000.0, 2000, 3000]]), 3).dtype == np.float16


def test_values_and_gradients_are_pytorchs():
    torch = pytest.importorskip("torch")
    norm, theirs = torch.nn.LayerNorm(8).double(), torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    mine, ours = nn.LayerNorm(8, dtype=np.float64), nn.MultiheadAttention(8, 2, dtype=np.float64)
    pairs = list(zip([*mine.parameters(), *ours.parameters()], [*norm.parameters(), *theirs.parameters()]))
    rng = np.random.default_rng(1)
    with metagrad.no_grad():
        for p, q in pairs:
            p.copy_(Tensor(rng.standard_normal(p.shape)))
            q.data.copy_(torch.tensor(p.numpy()))
    seen = np.array([[True] * 5, [True, True, True, False, False]])
    h = norm(torch.tensor(x))
    expected = theirs(h, h, h, key_padding_mask=~torch.tensor(seen), need_weights=False)[0]
    expected.sin().sum().backward()
    out = ours(mine(x), mask=seen[:, None, None])
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-10)
    out.backward(Tensor(np.cos(out.numpy())))
    for p, q in pairs:
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-8, atol=1e-10)
