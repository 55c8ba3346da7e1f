"""Bounds on gradients, dense and of rows."""

import math

import numpy as np
import pytest

from metagrad import Rows, Tensor, nn, optim
from metagrad import functional as F


def parameters(device="cpu"):
    """A dense gradient (3, 4) and, for a table, rows 0 and 2, of which row 2 was read twice: (6, 8) in sum."""
    x, table = (nn.Parameter(np.zeros(shape, np.float32)) for shape in ((2,), (4, 2)))
    for p in (x, table):
        p.move(Tensor(0.0, device=device).device)
    (x * Tensor([3.0, 4.0], device=device)).sum().backward()
    F.embedding(table, [2, 0, 2]).backward(Tensor([[3.0, 4.0], [0.0, 1.0], [3.0, 4.0]], device=device))
    return x, table, nn.Parameter([0.0])  # the last has no gradient


def dense(p):
    return p.grad.dense() if isinstance(p.grad, Rows) else p.grad.data


@pytest.mark.parametrize("ord, norm", [(2, math.sqrt(25 + 100 + 1)), (1, 7 + 14 + 1), (math.inf, 8)])
def test_the_norm_is_that_of_one_long_vector_and_bounded(ord, norm, device):
    ps = parameters(device)
    before = [Tensor(dense(p)).numpy().copy() for p in ps[:2]]
    assert optim.clip_grad_norm(ps, 100.0, ord) == pytest.approx(norm)  # below the bound nothing changes
    assert optim.clip_grad_norm(ps, norm / 4, ord) == pytest.approx(norm)
    for p, grad in zip(ps, before):
        np.testing.assert_allclose(Tensor(dense(p)).numpy(), grad / 4, rtol=1e-6)
        assert p.grad.dtype == np.float32 and str(Tensor(dense(p)).device) == device
    assert optim.clip_grad_norm(ps, 100.0, ord) == pytest.approx(norm / 4)
    assert ps[2].grad is None


def test_entries_are_brought_within_the_limit(device):
    x, table, _ = ps = parameters(device)
    optim.clip_grad_value(iter(ps), 3.5)
    assert x.grad.tolist() == [3, 3.5]
    assert Tensor(dense(table)).tolist() == [[0, 1], [0, 0], [3.5, 3.5], [0, 0]] and isinstance(table.grad, Rows)


def test_large_gradients_do_not_overflow_and_broken_ones_are_named():
    x = nn.Parameter(np.zeros(2, np.float32))
    x.grad = Tensor([1e30, 1e30])
    assert optim.clip_grad_norm(x, 1.0) == pytest.approx(math.sqrt(2) * 1e30)
    np.testing.assert_allclose(x.grad.numpy(), math.sqrt(0.5), rtol=1e-5)
    x.grad = Tensor([np.nan, 1.0])
    with pytest.raises(FloatingPointError, match="the norm of the gradients is nan; nothing was changed"):
        optim.clip_grad_norm(x, 1.0)
    for call in (lambda: optim.clip_grad_norm(x, 0.0), lambda: optim.clip_grad_value(x, -1.0)):
        with pytest.raises(ValueError, match="above 0"):
            call()


def test_no_gradients_have_the_norm_zero():
    assert optim.clip_grad_norm([nn.Parameter([1.0])], 1.0) == 0
