"""The models on blocks: their losses and gradients are those of a plain loop over predictions."""

import itertools

import numpy as np
import pytest

from metagrad import Tensor, gradcheck
from metagrad.word2vec import NoiseSampler
from metagrad.word2vec.blocks import BlockCutter
from metagrad.word2vec.huffman import HuffmanTree
from metagrad.word2vec.models import MODELS, SGNS, make_model

V, DIM = 7, 3
COUNTS = np.array([40, 20, 11, 9, 4, 2, 2])


@pytest.fixture(params=MODELS, ids="-".join)
def kind(request):
    return request.param


def made(kind, dim=DIM):
    """A model in float64 with random tables."""
    model = make_model(*kind, COUNTS, dim)
    rng = np.random.default_rng(2)
    for table in (model.input, model.output):
        table.weight.use_memory(rng.standard_normal(table.weight.shape))
    return model


def blocks_for(model, stretch=8, dtype=np.float64):
    ids = np.random.default_rng(0).integers(0, V, 19).astype(np.int32)
    cutter = BlockCutter(
        NoiseSampler(np.ones(V)), window=2, block=4, shared=3, predicts=model.predicts,
        negatives=5 if model.noise else 0,
    )  # fmt: skip
    blocks = next(cutter.steps(ids, np.array([0, 9, 10, 19]), np.random.default_rng(1), (24, stretch)))
    return blocks._replace(pairs=blocks.pairs.astype(dtype), noise_weights=blocks.noise_weights.astype(dtype))


def predictions(model, blocks):
    """(stretch, place, vector that predicts, words it predicts), centre by centre."""
    W = model.input.weight.numpy()
    G, n, b, C = blocks.pairs.shape
    for g, i in itertools.product(range(G), range(n * b)):
        candidates = blocks.contexts[g, i // b * b :][:C]
        contexts = candidates[blocks.pairs[g, i // b, i % b] > 0]
        if len(contexts):
            centre = blocks.centres[g, i]
            if model.predicts == "contexts":
                yield g, i, W[centre], contexts
            else:
                yield g, i, W[contexts].mean(axis=0), [centre]


def loop_loss(kind, model, blocks):
    """The loss as the papers have it."""
    C, total = model.output.weight.numpy(), 0.0
    for g, i, h, words in predictions(model, blocks):
        for word in words:
            if kind[1] == "softmax":
                total -= C[word] @ h - np.log(np.exp(C @ h).sum())
            elif kind[1] == "hierarchical":
                total -= np.log(leaf_probability(model, h, word))
            else:
                total += np.log1p(np.exp(-C[word] @ h))
        if model.noise:
            for weight, word in zip(blocks.noise_weights[g, i], blocks.noise[g], strict=True):
                total += weight * np.log1p(np.exp(C[word] @ h))
    return total


def leaf_probability(model, h, word):
    nodes, branches, real = (part[0] for part in model.tree.paths(np.array([word])))
    x = model.output.weight.numpy()[nodes] @ h
    return np.prod(np.where(real > 0, 1 / (1 + np.exp(np.where(branches > 0, -x, x))), 1))


def test_the_loss_is_that_of_a_loop(kind):
    model = made(kind)
    blocks = blocks_for(model)
    assert len(list(predictions(model, blocks))) == 18, "the sentence of one word predicts nothing"
    assert model(*blocks).item() == pytest.approx(loop_loss(kind, model, blocks), rel=1e-12)


def test_gradients_are_those_of_differences(kind):
    model = made(kind, 2)
    blocks = blocks_for(model)

    def loss(W, C):
        model.input.weight, model.output.weight = W, C
        return model(*blocks)

    assert gradcheck(loss, model.input.weight.numpy(), model.output.weight.numpy())


def test_zero_output_vectors_give_the_loss_of_a_guess(kind, device):
    """ln 2 for each unit of weight or node of a path, ln V for each prediction; and it stays float32."""
    model = make_model(*kind, COUNTS, DIM)
    blocks = blocks_for(model, dtype=np.float32)
    words = [word for _, _, _, words in predictions(model, blocks) for word in words]
    if kind[1] == "softmax":
        expected = len(words) * np.log(V)
    elif kind[1] == "hierarchical":
        expected = sum(model.tree.paths(np.array([word]))[2].sum() for word in words) * np.log(2)
    else:
        expected = (len(words) + blocks.noise_weights.sum()) * np.log(2)
    model.to(device)
    loss = model(*(Tensor(array, device=device).data for array in blocks))
    assert loss.dtype == np.float32
    assert loss.item() == pytest.approx(float(expected), rel=1e-6)


def test_a_step_without_pairs_is_no_loss_and_moves_nothing(kind):
    model = made(kind)
    blocks = blocks_for(model)
    nothing = {"pairs": np.zeros_like(blocks.pairs), "noise_weights": np.zeros_like(blocks.noise_weights)}
    loss = model(*blocks._replace(**nothing))
    loss.backward()
    assert loss.item() == 0
    for parameter in model.parameters():
        grad = parameter.grad
        assert not (grad.dense() if hasattr(grad, "dense") else grad.numpy()).any()


@pytest.mark.parametrize("stretch", [4, 8, 24])
def test_how_a_text_is_stretched_changes_no_loss(stretch):
    model = made(("skipgram", "softmax"))
    assert model(*blocks_for(model, stretch)).item() == pytest.approx(model(*blocks_for(model)).item(), rel=1e-12)


def test_the_start_is_uniform_for_words_and_zero_for_what_is_predicted(kind):
    model = make_model(*kind, COUNTS, 50)
    first = model.input.weight.numpy()
    assert abs(first).max() <= 0.01 and abs(first).max() > 0.009 and not model.output.weight.numpy().any()
    assert first.dtype == np.float32 and isinstance(model, SGNS) == (kind == ("skipgram", "negatives"))


# The tree ----------------------------------------------------------------------------------------------------------


def lengths(tree):
    return tree.paths(np.arange(tree.inner + 1))[2].sum(axis=1)


@pytest.mark.parametrize("counts", [COUNTS, [1, 1], [1, 2, 4, 8, 16], [3] * 8, [5, 1, 3, 1, 100, 2]])
def test_leaf_probabilities_sum_to_one(counts):
    model = make_model("skipgram", "hierarchical", np.array(counts), DIM)
    model.output.weight.use_memory(np.random.default_rng(0).standard_normal((len(counts) - 1, DIM)))
    h = np.random.default_rng(1).standard_normal(DIM)
    assert sum(leaf_probability(model, h, word) for word in range(len(counts))) == pytest.approx(1, abs=1e-12)


def test_the_tree_is_huffmans():
    """Known code lengths, and for random counts the least total length: as of the merging of a plain list."""
    assert lengths(HuffmanTree([1, 1, 2, 3, 5, 8])).tolist() == [5, 5, 4, 3, 2, 1]
    assert lengths(HuffmanTree([3] * 8)).tolist() == [3] * 8
    for seed in range(5):
        counts = np.random.default_rng(seed).integers(1, 50, 30)
        weights, total = sorted(counts.tolist()), 0
        while len(weights) > 1:
            joined = weights.pop(0) + weights.pop(0)
            total += joined
            weights = sorted([*weights, joined])
        assert (lengths(HuffmanTree(counts)) * counts).sum() == total


def test_paths_end_at_the_root_and_tell_words_apart():
    tree = HuffmanTree(COUNTS)
    nodes, branches, real = tree.paths(np.arange(V).reshape(1, V))
    codes = {tuple(b[r > 0][::-1]) for b, r in zip(branches[0], real[0], strict=True)}
    assert nodes.shape == (1, V, int(lengths(tree).max())) and len(codes) == V
    assert all(n[int(r.sum()) - 1] == tree.inner - 1 for n, r in zip(nodes[0], real[0], strict=True))
    assert not any(a != b and a == b[: len(a)] for a in codes for b in codes), "no code begins another"


def test_a_tree_of_one_word_is_refused():
    with pytest.raises(ValueError, match="at least 2 words"):
        HuffmanTree([5])
