"""examples/cbow.py and examples/hierarchical_softmax.py: their models are right, and they learn, shortened."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metagrad import Tensor, gradcheck
from metagrad.word2vec.huffman import HuffmanTree

EXAMPLES = Path(__file__).parents[1] / "examples"
SHORT = ["--most", "12000", "--max-vocab", "300", "--dim", "16"]


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cbow, hierarchical = loaded("cbow"), loaded("hierarchical_softmax")


def printed(name, *arguments):
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *SHORT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout


def batch(V=5, B=4, L=3, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 1], [1, 1, 0]], np.float64)
    return rng.integers(0, V, B), rng.integers(0, V, (B, L)), mask


@pytest.mark.parametrize("kind", [cbow.CBOW, cbow.SkipGram])
def test_the_loss_is_minus_log_softmax(kind):
    model = kind(5, 2)
    words, contexts, mask = batch()
    W, C = np.random.default_rng(1).standard_normal((2, 5, 2))
    model.input.weight.use_memory(W)
    model.output.weight.use_memory(C)

    def minus_log_p(h, word):
        return np.log(np.exp(C @ h).sum()) - C[word] @ h

    if kind is cbow.CBOW:
        expected = [minus_log_p(W[c[m > 0]].mean(axis=0), w) for w, c, m in zip(words, contexts, mask, strict=True)]
    else:
        expected = [
            minus_log_p(W[w], c[j]) for w, c, m in zip(words, contexts, mask, strict=True) for j in np.flatnonzero(m)
        ]
    assert model(Tensor(words), Tensor(contexts), Tensor(mask)).item() == pytest.approx(np.mean(expected), rel=1e-12)

    def loss(W, C):
        model.input.weight, model.output.weight = W, C
        return model(Tensor(words), Tensor(contexts), Tensor(mask))

    assert gradcheck(loss, W, C)


def test_the_tree_gives_probabilities():
    layer = hierarchical.HierarchicalSoftmax(HuffmanTree([50, 20, 9, 4, 4, 1]), 3)
    layer.nodes.weight.use_memory(np.random.default_rng(0).standard_normal((5, 3)))
    h = np.tile(np.random.default_rng(1).standard_normal(3), (6, 1))
    losses = layer(Tensor(h), np.arange(6)).numpy()
    assert np.exp(-losses).sum() == pytest.approx(1, abs=1e-12)


def test_cbow_learns_and_shows_what_the_softmax_costs():
    out = printed("cbow", "--epochs", "3", "--lr", "0.01", "--sizes", "100", "800")
    losses = {name: float(loss) for name, loss in re.findall(r"(CBOW|SkipGram)  epoch 3  loss (\d\.\d+)", out)}
    assert losses["CBOW"] < 5.2 and losses["SkipGram"] < 5.5, out  # a guess has ln 300 = 5.70
    table = [[float(cell.replace(",", "")) for cell in line.split()] for line in out.splitlines()[-2:]]
    assert [row[0] for row in table] == [100, 800] and all(len(row) == 5 and min(row) > 0 for row in table)


def test_the_tree_learns_what_the_softmax_does():
    out = printed("hierarchical_softmax", "--epochs", "3")
    assert "sum to 1.000000" in out
    rows = re.findall(r"(cbow|skipgram)\s+(softmax|hierarchical|negatives)\s+[\d.]+\s+(\d\.\d+)", out)
    losses = {(model, loss): float(value) for model, loss, value in rows}
    guess = float(re.search(r"alone has (\d\.\d+)", out)[1])
    assert len(losses) == 6
    for model in ("cbow", "skipgram"):
        assert losses[model, "hierarchical"] < guess and losses[model, "softmax"] < guess, out
        assert losses[model, "negatives"] < 6 * np.log(2) - 0.5


@pytest.mark.parametrize("name", ["cbow", "hierarchical_softmax"])
def test_a_mistake_gets_one_sentence(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--corpus", str(tmp_path / "no")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "does not exist" in done.stderr and "Traceback" not in done.stderr
