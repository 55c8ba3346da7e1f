"""The models that train on Blocks: each an nn.Module whose `forward` returns its loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functional as F
from ..cuda import array_module
from ..nn import Embedding, Module, init
from ..tensor import Tensor


class SGNS(Module):
    """Skip-gram with negative sampling, all pairs of a step at once.

    input (V, dim): the vectors of words as centres, from U(−1/2dim, 1/2dim); these are kept when training ends.
    output (V, dim): their vectors as contexts and as noise, from 0.
    """

    def __init__(self, vocab_size: int, dim: int, dtype: Any = np.float32) -> None:
        self.input = Embedding(vocab_size, dim, dtype=dtype)
        self.output = Embedding(vocab_size, dim, dtype=dtype)
        init.uniform_(self.input.weight, -0.5 / dim, 0.5 / dim)
        init.zeros_(self.output.weight)

    def forward(self, centres: Any, candidates: Any, labels: Any, weights: Any) -> Tensor:
        """Σ weight · −log σ(±v·u), + for words of the text and − for noise; arguments as Blocks has them."""
        v = self.input(centres)  # (S, b, dim)
        u = self.output(candidates)  # (S, M, dim)
        scores = v @ u.swapaxes(1, 2)  # (S, b, M)
        targets = array_module(labels).broadcast_to(labels, scores.shape)
        return F.binary_cross_entropy_with_logits(scores, targets, weight=weights, reduction="sum")
