"""Random streams and draws from a distribution. NumPy's global state is neither read nor changed."""

import numpy as np
import pytest

from metagrad import Tensor, cuda, manual_seed, nn
from metagrad.random import generator


@pytest.fixture(autouse=True)
def seeded():
    manual_seed(0)


def draw(weights, n, replace=False, device="cpu"):
    out = Tensor.multinomial(Tensor(np.asarray(weights), device=device), n, replace=replace)
    assert out.dtype == np.int64 and str(out.device) == device
    return out.numpy()


# Streams --------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_numbers(device):
    def numbers():
        manual_seed(3)
        drawn = [draw([1.0, 2.0, 3.0], 3, replace, device).tolist() for replace in (True, False)]
        numbers = [Tensor.rand(3, device=device).tolist(), Tensor.randn(3, device=device).tolist()]
        return [*numbers, *drawn, nn.Linear(2, 2).weight.tolist()]

    first = numbers()
    assert numbers() == first
    manual_seed(4)
    assert Tensor.rand(3, device=device).tolist() != first[0]


def test_numpys_global_state_is_neither_read_nor_changed(device):
    def everything():
        Tensor.rand(3, device=device)
        draw([1.0, 2.0], 2, True, device)
        draw([1.0, 2.0], 2, False, device)
        nn.Embedding(3, 2)
        return Tensor.randn(3, device=device).tolist()

    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    manual_seed(5)
    first = everything()
    assert (np.random.get_state()[1] == before).all()
    np.random.seed(2)
    manual_seed(5)
    assert everything() == first


def test_unseeded_streams_differ():
    from metagrad import random

    draws = []
    for _ in range(2):
        random._seed = None
        random._streams.clear()
        draws.append(Tensor.rand(4).tolist())
    assert draws[0] != draws[1]


def test_a_stream_goes_on_until_it_is_restarted():
    assert generator() is generator()
    old = generator()
    manual_seed(0)
    assert generator() is not old


@pytest.mark.parametrize("seed", [-1, "a", 1.5, None])
def test_a_seed_that_is_none_is_refused_at_once(seed):
    with pytest.raises((TypeError, ValueError)):
        manual_seed(seed)
    Tensor.rand(1)


# multinomial ----------------------------------------------------------------------------------------

WEIGHTS = np.array([1.0, 0.0, 3.0, 6.0])


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
@pytest.mark.parametrize("rows", [None, 1, 3])
def test_draws_with_replacement_follow_the_weights(scale, rows, device):
    weights = WEIGHTS * scale if rows is None else np.stack([np.roll(WEIGHTS, k) * scale * 10**k for k in range(rows)])
    found = draw(weights, 20_000, True, device)
    assert found.shape == weights.shape[:-1] + (20_000,)
    for k, row in enumerate(np.atleast_2d(found)):
        shares = np.bincount(row, minlength=4) / 20_000
        np.testing.assert_allclose(shares, np.roll(WEIGHTS, k) / 10, atol=0.02)
        assert shares[(1 + k) % 4] == 0


@pytest.mark.parametrize("replace", [True, False])
def test_one_draw_follows_the_weights(replace, device):
    found = draw(np.tile(WEIGHTS, (20_000, 1)), 1, replace, device)
    np.testing.assert_allclose(np.bincount(found[:, 0], minlength=4) / 20_000, WEIGHTS / 10, atol=0.02)


def test_draws_without_replacement_are_distinct_and_in_order_of_drawing(device):
    found = draw(np.tile(WEIGHTS, (20_000, 1)), 2, False, device)
    assert found.shape == (20_000, 2) and (found[:, 0] != found[:, 1]).all() and not (found == 1).any()
    # the second draw: P(second = 2) = .1 · 3/9 + .6 · 3/4
    assert abs((found[:, 1] == 2).mean() - (0.1 / 3 + 0.45)) < 0.02
    assert sorted(draw(WEIGHTS, 3, False, device).tolist()) == [0, 2, 3]


def test_numbers_of_draws(device):
    assert draw([1.0], 5, True, device).tolist() == [0] * 5
    assert draw([0.0, 2.0], 1, False, device).tolist() == [1]
    assert draw([1.0, 1.0], 0, True, device).shape == draw([1.0, 1.0], 0, False, device).shape == (0,)
    assert draw(np.ones((0, 3)), 2, True, device).shape == (0, 2)
    assert draw(np.ones((2, 3, 4)), 2, False, device).shape == (2, 3, 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.int32, np.bool_])
def test_weights_of_any_dtype(dtype, device):
    found = draw(np.array([0, 1, 0, 1], dtype), 100, True, device)
    assert set(found.tolist()) == {1, 3}


def test_lists_and_arrays_are_weights_too():
    assert Tensor.multinomial([0.0, 1.0], 2, replace=True).tolist() == [1, 1]
    assert Tensor.multinomial(np.array([0.0, 1.0]), 1).tolist() == [1]
    assert not Tensor.multinomial(Tensor([0.0, 1.0], requires_grad=True), 1).requires_grad


@pytest.mark.parametrize("replace", [True, False])
def test_the_weights_are_bit_for_bit_what_they_were(replace, device):
    weights = Tensor(np.random.default_rng(0).zipf(1.5, 1000).astype(np.float32) ** 0.75, device=device)
    before = weights.numpy().tobytes()
    for _ in range(100):
        Tensor.multinomial(weights, 20, replace=replace)
    assert weights.numpy().tobytes() == before


def test_many_float32_weights_need_not_sum_to_one(device):
    counts = np.random.default_rng(0).zipf(1.2, 100_000).astype(np.float64)
    found = draw((counts**0.75).astype(np.float32), 1000, True, device)
    assert found.min() >= 0 and found.max() < 100_000


def test_a_zero_weight_is_never_drawn(device):
    """Neither at the ends of a row, nor beside weights that are smaller by far."""
    rng = np.random.default_rng(1)
    weights = np.where(rng.random((300, 40)) < 0.5, 0.0, 10.0 ** rng.integers(-300, 300, (300, 40)))
    weights[:, 7] = 1e-290
    for n, replace in ((200, True), (1, False)):
        found = draw(weights, n, replace, device)
        assert (np.take_along_axis(weights, found, axis=1) > 0).all()
    assert sorted(draw([0.0, 1e-320, 1.0], 2, False, device).tolist()) == [1, 2]


@pytest.mark.parametrize("u", [0.0, 1 - 2.0**-53])
def test_no_draw_from_the_stream_leads_to_a_zero_weight_or_out_of_the_row(u, monkeypatch):
    class Stream:
        def random(self, shape):
            return np.full(shape, u)

        def standard_exponential(self, shape):
            return -np.log1p(-self.random(shape))

    from metagrad import random

    monkeypatch.setitem(random._streams, cuda.CPU, Stream())
    weights = np.array([[0.0, 2.0, 1.0, 0.0]] * 300)
    found = draw(weights, 1, True)
    assert set(found.ravel().tolist()) == ({1} if u == 0 else {2})


def test_narrow_weights_add_up_in_double_precision(device):
    """In float16 itself 2048 + 1 is 2048, and the later half would never come."""
    found = draw(np.ones(5000, np.float16), 5000, True, device)
    assert abs((found >= 2500).mean() - 0.5) < 0.05


def test_excluded_contexts_are_never_drawn(device):
    """Vocabulary of 4, context {1, 2}: 10 000 draws hold neither; without exclusion they come as often as p^¾ says."""
    counts = np.array([8.0, 4.0, 2.0, 1.0])
    noise = counts**0.75
    allowed = noise.copy()
    allowed[[1, 2]] = 0
    assert set(draw(allowed, 10_000, True, device).tolist()) == {0, 3}
    found = draw(noise, 20_000, True, device)
    assert abs(np.isin(found, [1, 2]).mean() - noise[1:3].sum() / noise.sum()) < 0.02
    assert abs((draw([16**0.75, 1.0], 20_000, True, device) == 0).mean() - 8 / 9) < 0.02
    with pytest.raises(ValueError, match="row 0 are zero, nothing can be drawn"):
        draw(np.zeros(4), 1, True, device)


@pytest.mark.parametrize("weights, n, replace, message", [
    ([1.0, np.nan], 1, True, "finite and not negative"), ([1.0, -1.0], 1, True, "finite and not negative"),
    ([1.0, np.inf], 1, False, "finite and not negative"),
    ([0.0, 0.0], 1, False, "all weights of row 0 are zero"),
    ([[1.0, 1.0], [0.0, 0.0]], 1, True, "all weights of row 1 are zero"),
    ([1.0, 0.0, 1.0], 3, False, "3 draws without replacement from 2 non-zero weights; say replace=True"),
    ([[1.0, 1.0], [1.0, 0.0]], 2, False, "2 draws without replacement from 1 non-zero weights"),
    (1.0, 1, True, "multinomial"), ([], 1, True, "multinomial"), ([1.0], -1, True, "multinomial"),
    ([1.0], -1, False, "multinomial"), (np.ones((2, 0)), 1, True, "multinomial"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_said(weights, n, replace, message, device):
    with pytest.raises(ValueError, match=message):
        draw(weights, n, replace, device)
