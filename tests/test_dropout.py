"""Dropout: the mean stays, eval is the identity, the stream is metagrad's own."""

import numpy as np
import pytest

from metagrad import Tensor, functional, manual_seed, nn


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_entries_are_zero_or_divided_by_what_is_kept(p, device):
    manual_seed(0)
    x = Tensor(np.ones(20_000, np.float32), device=device, requires_grad=True)
    y = functional.dropout(x, p)
    values = y.numpy()
    assert set(np.unique(values)) == {np.float32(0), np.float32(1 / (1 - p))} and y.dtype == np.float32
    assert abs((values == 0).mean() - p) < 0.02 and abs(values.mean() - 1) < 0.05
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)  # what was dropped learns nothing


def test_nothing_is_dropped_in_eval_mode_or_with_p_0_and_all_with_p_1():
    x = Tensor([1.0, 2.0, 3.0])
    layer = nn.Dropout(0.5)
    assert layer.eval()(x) is x and nn.Dropout(0.0)(x) is x
    assert functional.dropout(x, 1.0).tolist() == [0, 0, 0]
    assert repr(layer) == "Dropout(p=0.5)"


def test_the_seed_decides_and_every_call_draws_anew(device):
    x = Tensor(np.ones(100, np.float32), device=device)
    manual_seed(3)
    first, second = functional.dropout(x).tolist(), functional.dropout(x).tolist()
    manual_seed(3)
    assert functional.dropout(x).tolist() == first != second


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_what_is_no_probability_is_refused_at_once(p):
    with pytest.raises(ValueError, match="p is a probability, from 0 to 1"):
        nn.Dropout(p)


def test_float64_stays_float64():
    assert functional.dropout(Tensor(np.ones(3))).dtype == np.float64
