"""The models that train on Blocks: each an nn.Module whose `forward` returns its loss, the sum over all predictions.

Skip-gram predicts each context of a centre from the centre's vector; CBOW predicts the centre from the mean of its
contexts' vectors. Three ways to score a prediction: among a few noise words (Mikolov et al. 2013b), by the branches
on a word's path in a Huffman tree (Morin & Bengio 2005), or among all words (the full softmax), whose cost is V.
All take the fields of Blocks and have two tables: `input`, from U(−1/2dim, 1/2dim), which is kept when training
ends, and `output`, from 0: the vectors of predicted words, or those of the tree's inner nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functional as F
from ..cuda import CPU, array_module, device_of, to_device
from ..nn import Embedding, Module, init
from ..tensor import Tensor
from .huffman import HuffmanTree


class _Tables(Module):
    predicts = "contexts"  # what a BlockCutter is to prepare
    noise = False  # whether it is to draw noise words

    def __init__(self, vocab_size: int, dim: int, dtype: Any = np.float32) -> None:
        self._make(vocab_size, vocab_size, dim, dtype)

    def _make(self, inputs: int, outputs: int, dim: int, dtype: Any) -> None:
        self.input = Embedding(inputs, dim, dtype=dtype)
        self.output = Embedding(outputs, dim, dtype=dtype)
        init.uniform_(self.input.weight, -0.5 / dim, 0.5 / dim)
        init.zeros_(self.output.weight)


class SGNS(_Tables):
    """Skip-gram with negative sampling."""

    noise = True

    def forward(self, centres: Any, contexts: Any, pairs: Any, noise: Any, noise_weights: Any) -> Tensor:
        """−Σ log σ(v·u) over the pairs − Σ weight · log σ(−v·u) over centres and noise words."""
        v = self.input(centres)  # (G, n b, dim)
        true = _scores(v, self.output(contexts), pairs)
        false = v @ self.output(noise).swapaxes(1, 2)
        return _logistic(true, 1, pairs) + _logistic(false, 0, noise_weights)


class SkipGram(_Tables):
    """Skip-gram with the full softmax."""

    def forward(self, centres: Any, contexts: Any, pairs: Any, noise: Any = None, noise_weights: Any = None) -> Tensor:
        """−Σ log softmax(v·u over all words)[context] over the pairs."""
        v = self.input(centres)
        true = _scores(v, self.output(contexts), pairs)
        contexts_of_each = pairs.sum(axis=3).reshape(centres.shape)
        return (F.logsumexp(v @ self.output.weight.T, axis=2) * contexts_of_each).sum() - (true * pairs).sum()


class CBOW(_Tables):
    """Continuous bag of words with the full softmax."""

    predicts = "centre"

    def forward(self, centres: Any, contexts: Any, pairs: Any, noise: Any = None, noise_weights: Any = None) -> Tensor:
        """−Σ log softmax(h·u over all words)[centre], h the mean of the contexts' vectors, over centres with any."""
        h, predicted = _means(self.input(contexts), pairs)
        true = (h * self.output(centres)).sum(axis=2)
        return ((F.logsumexp(h @ self.output.weight.T, axis=2) - true) * predicted).sum()


class CBOWNegatives(_Tables):
    """Continuous bag of words with negative sampling."""

    predicts = "centre"
    noise = True

    def forward(self, centres: Any, contexts: Any, pairs: Any, noise: Any, noise_weights: Any) -> Tensor:
        """−Σ log σ(h·u) over the centres with contexts − Σ weight · log σ(−h·u) over centres and noise words."""
        h, predicted = _means(self.input(contexts), pairs)
        true = (h * self.output(centres)).sum(axis=2)
        false = h @ self.output(noise).swapaxes(1, 2)
        return _logistic(true, 1, predicted) + _logistic(false, 0, noise_weights)


class _Hierarchical(_Tables):
    """counts (V,): how often each word occurs, which shapes the tree. output (V − 1, dim): the inner nodes.

    P(word) = Π σ(±node·h) over the nodes of its path, + where the branch is 1.
    """

    def __init__(self, counts: Any, dim: int, dtype: Any = np.float32) -> None:
        self.tree = HuffmanTree(counts)
        self._make(len(counts), self.tree.inner, dim, dtype)

    def _paths(self, ids: Any) -> tuple[Any, ...]:
        """tree.paths of ids, on their device."""
        return tuple(to_device(part, device_of(ids)) for part in self.tree.paths(to_device(ids, CPU)))


class HierarchicalSkipGram(_Hierarchical):
    """Skip-gram with the hierarchical softmax."""

    def forward(self, centres: Any, contexts: Any, pairs: Any, noise: Any = None, noise_weights: Any = None) -> Tensor:
        """−Σ log σ(±node·v) over the pairs and the path of each context."""
        G, n, b, C = pairs.shape
        nodes, branches, real = self._paths(contexts)  # (G, n b + 2 w, L)
        v = self.input(centres).reshape(G, n, 1, b, -1)
        scores = v @ self.output(nodes).unfold(1, C, b)  # (G, n, L, b, C)
        branches, real = (Tensor(part).unfold(1, C, b).unsqueeze(3).data for part in (branches, real))
        return _logistic(scores, branches, pairs[:, :, None] * real)


class HierarchicalCBOW(_Hierarchical):
    """Continuous bag of words with the hierarchical softmax."""

    predicts = "centre"

    def forward(self, centres: Any, contexts: Any, pairs: Any, noise: Any = None, noise_weights: Any = None) -> Tensor:
        """−Σ log σ(±node·h) over the centres with contexts and the path of each."""
        nodes, branches, real = self._paths(centres)  # (G, n b, L)
        h, predicted = _means(self.input(contexts), pairs)
        scores = (self.output(nodes) @ h.unsqueeze(3)).squeeze(3)  # (G, n b, L)
        return _logistic(scores, branches, real * predicted[:, :, None])


MODELS: dict[tuple[str, str], type[_Tables]] = {
    ("skipgram", "negatives"): SGNS,
    ("skipgram", "hierarchical"): HierarchicalSkipGram,
    ("skipgram", "softmax"): SkipGram,
    ("cbow", "negatives"): CBOWNegatives,
    ("cbow", "hierarchical"): HierarchicalCBOW,
    ("cbow", "softmax"): CBOW,
}


def make_model(model: str, loss: str, counts: Any, dim: int) -> _Tables:
    """A model by the names of MODELS, for words that occur so often: counts (V,)."""
    kind = MODELS[model, loss]
    return kind(counts, dim) if issubclass(kind, _Hierarchical) else kind(len(counts), dim)


def _scores(v: Tensor, u: Tensor, pairs: Any) -> Tensor:
    """v·u of the centres of each block and its candidates (G, n, b, C), for v (G, n b, dim), u (G, n b + 2 w, dim)."""
    G, n, b, C = pairs.shape
    return v.reshape(G, n, b, -1) @ u.unfold(1, C, b)


def _means(rows: Tensor, pairs: Any) -> tuple[Tensor, Any]:
    """The mean of each centre's contexts (G, n b, dim), 0 where it has none, and 1 where it has any (G, n b).

    rows (G, n b + 2 w, dim): the vectors of the candidates.
    """
    G, n, b, C = pairs.shape
    number = pairs.sum(axis=3, keepdims=True)
    share = pairs / array_module(pairs).maximum(number, 1)
    means = share @ rows.unfold(1, C, b).swapaxes(2, 3)
    return means.reshape(G, n * b, -1), (number > 0).astype(pairs.dtype).reshape(G, n * b)


def _logistic(scores: Tensor, target: Any, weights: Any) -> Tensor:
    if not isinstance(target, int):
        target = array_module(target).broadcast_to(target, scores.shape)
    return F.binary_cross_entropy_with_logits(scores, target, weight=weights, reduction="sum")
