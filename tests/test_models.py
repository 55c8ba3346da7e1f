"""SGNS on blocks: its loss and gradient are those of a plain loop over pairs."""

import numpy as np
import pytest

from metagrad import Tensor, gradcheck
from metagrad.word2vec import NoiseSampler
from metagrad.word2vec.blocks import BlockCutter
from metagrad.word2vec.models import SGNS

V = 7


@pytest.fixture
def blocks():
    ids = np.random.default_rng(0).integers(0, V, 11).astype(np.int32)
    cutter = BlockCutter(NoiseSampler(np.ones(V)), window=2, step=16, block=4, shared=3)
    return next(cutter.steps(ids, np.array([0, 6, 11]), np.random.default_rng(1)))


def test_the_loss_is_that_of_a_loop_over_pairs(blocks):
    model = SGNS(V, 3, dtype=np.float64)
    rng = np.random.default_rng(2)
    W, C = rng.standard_normal((2, V, 3))
    model.load_state_dict({"input.weight": W, "output.weight": C})
    expected = 0.0
    for centres, candidates, weights in zip(blocks.centres, blocks.candidates, blocks.weights, strict=True):
        for i, centre in enumerate(centres):
            for j, candidate in enumerate(candidates):
                sign = 1 if blocks.labels[j] else -1
                expected += weights[i, j] * np.log1p(np.exp(-sign * (W[centre] @ C[candidate])))
    assert model(*blocks).item() == pytest.approx(expected, rel=1e-6)


def test_zero_tables_give_log_2_for_each_unit_of_weight(blocks, device):
    model = SGNS(V, 3).to(device)
    arrays = [Tensor(array, device=device).data for array in blocks]
    loss = model(*arrays)
    assert loss.dtype == np.float32
    assert loss.item() == pytest.approx(float(blocks.weights.sum()) * np.log(2), rel=1e-6)


def test_gradients_are_those_of_differences(blocks):
    exact = blocks._replace(weights=blocks.weights.astype(np.float64), labels=blocks.labels.astype(np.float64))

    def loss(W, C):
        model = SGNS(V, 2)
        model.input.weight, model.output.weight = W, C
        return model(*exact)

    rng = np.random.default_rng(0)
    assert gradcheck(loss, rng.standard_normal((V, 2)), rng.standard_normal((V, 2)))


def test_a_step_without_pairs_is_no_loss_and_moves_nothing(blocks):
    model = SGNS(V, 3)
    loss = model(*blocks._replace(weights=np.zeros_like(blocks.weights)))
    loss.backward()
    assert loss.item() == 0
    assert not model.input.weight.grad.dense().any() and not model.output.weight.grad.dense().any()
