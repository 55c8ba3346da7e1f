"""Blocks hold exactly the pairs of the text, and their gradient is, on average, that of pair-by-pair training."""

import numpy as np
import pytest

from metagrad.word2vec import NoiseSampler
from metagrad.word2vec.blocks import BlockCutter

V = 7


def small_text(seed=0, sentences=9):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, sentences)
    ids = rng.integers(0, V, lengths.sum()).astype(np.int32)
    return ids, np.concatenate([[0], np.cumsum(lengths)])


def cutter(**options):
    noise = NoiseSampler(np.arange(1, V + 1))
    return BlockCutter(noise, **{"window": 3, "negatives": 5, "step": 8, "block": 4, "shared": 4, **options})


def pairs_of(blocks, window):
    """Every (centre, context) with its weight, word by word."""
    found = []
    for centres, candidates, weights in zip(blocks.centres, blocks.candidates, blocks.weights, strict=True):
        for i, centre in enumerate(centres):
            for j in np.flatnonzero(weights[i, : len(centres) + 2 * window]):
                found.append((int(centre), int(candidates[j])))
    return found


def plain_pairs(ids, offsets, window):
    found = []
    for start, end in zip(offsets[:-1], offsets[1:], strict=True):
        sentence = ids[start:end]
        for i in range(len(sentence)):
            for j in range(max(0, i - window), min(len(sentence), i + window + 1)):
                if i != j:
                    found.append((int(sentence[i]), int(sentence[j])))
    return found


@pytest.mark.parametrize("block, step", [(4, 8), (1, 1), (16, 64), (5, 512)])
@pytest.mark.parametrize("window", [1, 3, 6])
def test_a_fixed_window_gives_exactly_the_pairs_within_sentences(block, step, window):
    ids, offsets = small_text()
    steps = list(
        cutter(block=block, step=step, window=window, shrink=False).steps(ids, offsets, np.random.default_rng(0))
    )
    found = [pair for blocks in steps for pair in pairs_of(blocks, window)]
    assert sorted(found) == sorted(plain_pairs(ids, offsets, window))
    assert sum(blocks.contexts_of_each().sum() for blocks in steps) == len(found)


def test_a_shrinking_window_keeps_each_distance_as_often_as_it_should():
    ids, offsets = np.arange(200, dtype=np.int32) % V, np.array([0, 200])
    counts = np.zeros(4)
    rng = np.random.default_rng(0)
    for _ in range(200):
        for blocks in cutter().steps(ids, offsets, rng):
            for i in range(4):
                distance = abs(np.arange(10) - 3 - i)
                for d in (1, 2, 3):
                    counts[d] += blocks.weights[:, i, :10][:, distance == d].sum()
    share = counts[1:] / counts[1]
    np.testing.assert_allclose(share, [1, 2 / 3, 1 / 3], atol=0.02)


def test_noise_weighs_k_draws_for_each_pair_and_skips_the_pairs_own_context():
    ids, offsets = small_text()
    for blocks in cutter(shrink=False).steps(ids, offsets, np.random.default_rng(1)):
        for centres, candidates, weights in zip(blocks.centres, blocks.candidates, blocks.weights, strict=True):
            for i in range(len(centres)):
                contexts = candidates[:10][weights[i, :10] > 0]
                for k in range(4):
                    counted = (contexts != candidates[10 + k]).sum()
                    assert weights[i, 10 + k] == pytest.approx(counted * 5 / 4)


def test_the_average_gradient_is_that_of_independent_draws_for_each_pair():
    """With tables W, C: E ∂loss/∂W[w] = Σ over pairs (w, c) of (σ(c·w) − 1) c + K Σ_n p(n) [n ≠ c] σ(n·w) n."""
    rng = np.random.default_rng(0)
    W, C = rng.standard_normal((2, V, 3)) * 0.5
    ids, offsets = small_text()
    cut = cutter(shrink=False)
    p = cut.noise.distribution

    def sigma(x):
        return 1 / (1 + np.exp(-x))

    expected = np.zeros((V, 3))
    for w, c in plain_pairs(ids, offsets, 3):
        expected[w] += (sigma(C[c] @ W[w]) - 1) * C[c]
        for n in range(V):
            expected[w] += 5 * p[n] * (n != c) * sigma(C[n] @ W[w]) * C[n]

    found, draws = np.zeros((V, 3)), 3000
    for _ in range(draws):
        for blocks in cut.steps(ids, offsets, rng):
            v, u = W[blocks.centres], C[blocks.candidates]
            residual = (sigma(v @ u.swapaxes(1, 2)) - blocks.labels) * blocks.weights
            np.add.at(found, blocks.centres, residual @ u)
    np.testing.assert_allclose(found / draws, expected, atol=0.02 * abs(expected).max())


def test_thinning_out_drops_words_before_windows_are_cut():
    ids, offsets = np.array([0, 1, 0, 2], np.int32), np.array([0, 4])
    keep = np.array([0.0] + [1.0] * (V - 1))
    (blocks,) = cutter(keep=keep, window=1, shrink=False).steps(ids, offsets, np.random.default_rng(0))
    assert sorted(pairs_of(blocks, 1)) == [(1, 2), (2, 1)]
    assert list(cutter(keep=np.zeros(V)).steps(ids, offsets, np.random.default_rng(0))) == []


def test_shares_of_a_text_are_the_whole_text(monkeypatch):
    monkeypatch.setattr("metagrad.word2vec.blocks._CHUNK", 10)
    ids, offsets = np.arange(70, dtype=np.int32) % V, np.array([0, 70])
    cut = cutter()
    seen = np.zeros(V)
    for part in range(3):
        for blocks in cut.steps(ids, offsets, np.random.default_rng(part), part, 3):
            real = blocks.weights[:, :, :10].any(axis=2)
            np.add.at(seen, blocks.centres[real], 1)
    assert seen.tolist() == [10] * V


def test_the_same_generator_gives_the_same_blocks():
    ids, offsets = small_text()
    first, second = (list(cutter().steps(ids, offsets, np.random.default_rng(5))) for _ in range(2))
    assert all((a == b).all() for x, y in zip(first, second, strict=True) for a, b in zip(x, y, strict=True))
