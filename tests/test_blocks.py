"""Blocks hold exactly the pairs of the text, and their gradient is, in expectation, that of pair-by-pair training."""

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
    return BlockCutter(noise, **{"window": 3, "negatives": 5, "block": 4, "shared": 4, **options})


def steps(cut, ids, offsets, seed=0, step=16, stretch=8, **options):
    generator = np.random.default_rng(seed) if isinstance(seed, int) else seed
    return list(cut.steps(ids, offsets, generator, (step, stretch), **options))


def centres_of(blocks):
    """For each centre: its stretch, its place in it, its id, and the ids of its contexts."""
    G, n, b, C = blocks.pairs.shape
    for g in range(G):
        for i in range(n * b):
            first = i // b * b
            mask = blocks.pairs[g, i // b, i % b] > 0
            yield g, i, int(blocks.centres[g, i]), blocks.contexts[g, first : first + C][mask].tolist()


def pairs_of(blocks):
    return [(centre, context) for _, _, centre, contexts in centres_of(blocks) for context in contexts]


def plain_pairs(ids, offsets, window):
    found = []
    for start, end in zip(offsets[:-1], offsets[1:], strict=True):
        sentence = ids[start:end]
        for i in range(len(sentence)):
            for j in range(max(0, i - window), min(len(sentence), i + window + 1)):
                if i != j:
                    found.append((int(sentence[i]), int(sentence[j])))
    return found


@pytest.mark.parametrize("block, stretch, step", [(4, 8, 16), (1, 1, 1), (16, 64, 64), (5, 40, 512), (8, 64, 3)])
@pytest.mark.parametrize("window", [1, 3, 6])
def test_a_fixed_window_gives_exactly_the_pairs_within_sentences(block, stretch, step, window):
    ids, offsets = small_text()
    found = steps(cutter(block=block, window=window, shrink=False), ids, offsets, step=step, stretch=stretch)
    pairs = [pair for blocks in found for pair in pairs_of(blocks)]
    assert sorted(pairs) == sorted(plain_pairs(ids, offsets, window))
    assert sum(blocks.contexts_of_each().sum() for blocks in found) == len(pairs)


def test_a_centre_stands_among_the_contexts_at_its_own_place():
    ids, offsets = small_text()
    for blocks in steps(cutter(), ids, offsets):
        np.testing.assert_array_equal(blocks.contexts[:, 3:-3], blocks.centres)


def test_a_shrinking_window_keeps_each_distance_as_often_as_it_should():
    ids, offsets = np.arange(200, dtype=np.int32) % V, np.array([0, 200])
    counts = np.zeros(4)
    rng = np.random.default_rng(0)
    for _ in range(200):
        for blocks in steps(cutter(), ids, offsets, rng):
            for i in range(4):
                distance = abs(np.arange(10) - 3 - i)
                for d in (1, 2, 3):
                    counts[d] += blocks.pairs[:, :, i][:, :, distance == d].sum()
    share = counts[1:] / counts[1]
    np.testing.assert_allclose(share, [1, 2 / 3, 1 / 3], atol=0.02)


@pytest.mark.parametrize("predicts", ["contexts", "centre"])
@pytest.mark.parametrize("collisions", ["skip", "redraw"])
def test_noise_counts_for_each_prediction_that_it_does_not_collide_with(predicts, collisions):
    ids, offsets = small_text()
    cut = cutter(shrink=False, predicts=predicts, collisions=collisions)
    p = cut.noise.distribution
    for blocks in steps(cut, ids, offsets):
        for g, i, centre, contexts in centres_of(blocks):
            predictions = contexts if predicts == "contexts" else [centre] if contexts else []
            for k, word in enumerate(blocks.noise[g]):
                if collisions == "skip":
                    counted = sum(word != prediction for prediction in predictions)
                else:
                    counted = (word not in predictions) * len(predictions) / (1 - p[sorted(set(predictions))].sum())
                assert blocks.noise_weights[g, i, k] == pytest.approx(counted * 5 / 4, rel=1e-5)


def sigma(x):
    return 1 / (1 + np.exp(-x))


def pairwise(W, C, contexts_of, p, K, collisions):
    """Σ over pairs (w, c) of (σ(c·w) − 1) c + K E σ(n·w) n, the derivative by w; n is never c, or no context of w.

    By enumeration: each word is drawn with its probability, and draws that collide are left out or drawn anew.
    """
    expected = np.zeros_like(W)
    for w, contexts in contexts_of:
        for c in contexts:
            expected[w] += (sigma(C[c] @ W[w]) - 1) * C[c]
            banned = {c} if collisions == "skip" else set(contexts)
            left = 1 if collisions == "skip" else 1 - sum(p[n] for n in banned)
            for n in set(range(len(W))) - banned:
                expected[w] += K * p[n] / left * sigma(C[n] @ W[w]) * C[n]
    return expected


@pytest.mark.parametrize("collisions", ["skip", "redraw"])
def test_with_every_word_as_noise_the_gradient_is_exactly_the_pairwise_one(collisions):
    """K' noise words of weight K p(n) each, instead of draws of weight K/K': an expectation without sampling."""
    W, C = np.random.default_rng(0).standard_normal((2, V, 3)) * 0.5
    ids, offsets = small_text()
    cut = cutter(shrink=False, collisions=collisions)
    p, found, contexts_of = cut.noise.distribution, np.zeros((V, 3)), []
    for blocks in steps(cut, ids, offsets):
        contexts_of += [(centre, contexts) for _, _, centre, contexts in centres_of(blocks)]
        noise = np.broadcast_to(np.arange(V, dtype=np.int32), (len(blocks.centres), V))
        weights = 5 * p * cut.counted(blocks.contexts, blocks.pairs.astype(float), noise)
        for g, i, centre, contexts in centres_of(blocks):
            for c in contexts:
                found[centre] += (sigma(C[c] @ W[centre]) - 1) * C[c]
            found[centre] += (weights[g, i] * sigma(C @ W[centre])) @ C
    np.testing.assert_allclose(found, pairwise(W, C, contexts_of, p, 5, collisions), rtol=1e-12, atol=1e-12)


def test_the_average_gradient_is_that_of_independent_draws_for_each_pair():
    rng = np.random.default_rng(0)
    W, C = rng.standard_normal((2, V, 3)) * 0.5
    ids, offsets = small_text()
    cut = cutter(shrink=False)
    contexts_of = [(w, [c]) for w, c in plain_pairs(ids, offsets, 3)]
    expected = pairwise(W, C, contexts_of, cut.noise.distribution, 5, "skip")

    found, draws = np.zeros((V, 3)), 4000
    for _ in range(draws):
        for blocks in steps(cut, ids, offsets, rng):
            v, u = W[blocks.centres], C[blocks.noise]
            np.add.at(found, blocks.centres, (sigma(v @ u.swapaxes(1, 2)) * blocks.noise_weights) @ u)
    found /= draws
    for w, (c,) in contexts_of:
        found[w] += (sigma(C[c] @ W[w]) - 1) * C[c]
    np.testing.assert_allclose(found, expected, atol=0.02 * abs(expected).max())


def test_thinning_out_drops_words_before_windows_are_cut():
    ids, offsets = np.array([0, 1, 0, 2], np.int32), np.array([0, 4])
    keep = np.array([0.0] + [1.0] * (V - 1))
    (blocks,) = steps(cutter(keep=keep, window=1, shrink=False), ids, offsets)
    assert sorted(pairs_of(blocks)) == [(1, 2), (2, 1)]
    assert steps(cutter(keep=np.zeros(V)), ids, offsets) == []


def test_shares_of_a_text_are_the_whole_text(monkeypatch):
    monkeypatch.setattr("metagrad.word2vec.blocks._CHUNK", 10)
    ids, offsets = np.arange(70, dtype=np.int32) % V, np.array([0, 70])
    seen = np.zeros(V)
    for part in range(3):
        for blocks in steps(cutter(), ids, offsets, part, part=part, parts=3):
            for _, _, centre, contexts in centres_of(blocks):
                seen[centre] += bool(contexts)
    assert seen.tolist() == [10] * V


def test_the_length_of_a_step_is_asked_for_as_the_text_goes_on(monkeypatch):
    monkeypatch.setattr("metagrad.word2vec.blocks._CHUNK", 32)
    ids, offsets = np.zeros(96, np.int32), np.array([0, 96])
    sizes = iter([(8, 8), (16, 8), (32, 16)])
    found = list(cutter().steps(ids, offsets, np.random.default_rng(0), lambda: next(sizes)))
    assert [blocks.centres.shape for blocks in found] == [(1, 8)] * 4 + [(2, 8)] * 2 + [(2, 16)]


def test_without_negatives_there_is_no_noise():
    ids, offsets = small_text()
    for blocks in steps(cutter(negatives=0), ids, offsets):
        assert blocks.noise.shape[1] == blocks.noise_weights.shape[2] == 0


def test_the_same_generator_gives_the_same_blocks():
    ids, offsets = small_text()
    first, second = (steps(cutter(), ids, offsets, 5) for _ in range(2))
    assert all((a == b).all() for x, y in zip(first, second, strict=True) for a, b in zip(x, y, strict=True))
