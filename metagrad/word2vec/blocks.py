"""Blocks: a text cut so that training on it is matrix work.

b consecutive kept words are the centres of a block. Their true contexts lie among the C = b + 2w words around
them, so one matrix product gives the scores of all centres with all contexts, and weights say which are pairs.
K' noise words serve all centres of a block; their weights make the expected gradient that of K draws a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sampling import NoiseSampler

_CHUNK = 100_000  # words of the text that are thinned out and cut at a time


class Blocks(NamedTuple):
    """One training step: S blocks of b centres, each with M = C + K' candidates: the words around, then noise.

    centres (S, b) and candidates (S, M) are ids; centre i of a block stands at candidate w + i, too.
    labels (M,): 1 for a word of the text, 0 for noise. weights (S, b, M): how much each candidate counts for
    each centre, 0 where the two are no pair.
    """

    centres: NDArray[np.int32]
    candidates: NDArray[np.int32]
    labels: NDArray[np.float32]
    weights: NDArray[np.float32]

    def contexts_of_each(self) -> NDArray[np.float32]:
        """The number of true contexts of each centre: (S, b)."""
        return self.weights[:, :, : int(self.labels.sum())].sum(axis=2)


@dataclass(frozen=True)
class BlockCutter:
    """Cuts a text into steps of `step` centres.

    noise: what noise words are drawn from. keep: (V,) probability that an occurrence of a word is kept, drawn
    anew each time; None keeps all. window: the radius of each centre is drawn uniformly from 1 … window, or is
    `window` if not `shrink`. negatives: K, noise words for each pair. shared: K', noise words drawn for a
    block of `block` centres; 0 for models without noise.
    """

    noise: NoiseSampler
    keep: NDArray[np.floating] | None = None
    window: int = 5
    negatives: int = 5
    step: int = 1024
    block: int = 16
    shared: int = 16
    shrink: bool = True

    def steps(
        self,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        generator: np.random.Generator,
        part: int = 0,
        parts: int = 1,
    ) -> Iterator[Blocks]:
        """Every kept word of a text as a centre, once, in blocks of shuffled order.

        ids (N,), offsets (sentences + 1,) as a Corpus has them. part, parts: this one of several shares of the text.
        """
        starts = np.arange(0, len(ids), _CHUNK)[part::parts]
        for start in generator.permutation(starts):
            words = np.asarray(ids[start : start + _CHUNK])
            sentence = np.searchsorted(offsets, np.arange(start, start + len(words)), side="right").astype(np.int32)
            if self.keep is not None:
                kept = generator.random(len(words), dtype=np.float32) < self.keep[words]
                words, sentence = words[kept], sentence[kept]
            if len(words):
                yield from self._cut(words, sentence, generator)

    def _cut(
        self, words: NDArray[np.int32], sentence: NDArray[np.int32], generator: np.random.Generator
    ) -> Iterator[Blocks]:
        b, w = self.block, self.window
        count = -(-len(words) // b)
        # Borders and the rest of the last block are filled with words of no sentence, which are in no pair.
        fill = (w, count * b - len(words) + w)
        words, sentence = np.pad(words, fill), np.pad(sentence, fill, constant_values=-1)
        around = np.arange(b + 2 * w)
        distance = np.abs(around - w - np.arange(b)[:, None]).astype(np.int8)  # (b, C)
        near = (distance > 0) & (distance <= w)
        labels = np.repeat(np.array([1, 0], np.float32), [b + 2 * w, self.shared])
        order = generator.permutation(count) * b
        for i in range(0, count, max(self.step // b, 1)):
            places = order[i : i + max(self.step // b, 1), None] + around  # (S, C)
            contexts, where = words[places], sentence[places]
            centres, here = contexts[:, w : w + b], where[:, w : w + b, None]
            pairs = (where[:, None, :] == here) & (here >= 0) & near  # (S, b, C)
            if self.shrink:
                radius = generator.integers(1, w + 1, size=centres.shape, dtype=np.int8)
                pairs &= distance <= radius[:, :, None]
            noise = self.noise.draw((len(places), self.shared), generator).astype(np.int32)
            weights = np.empty((*centres.shape, len(labels)), np.float32)
            weights[:, :, : b + 2 * w] = pairs
            weights[:, :, b + 2 * w :] = self._noise_weights(contexts, weights[:, :, : b + 2 * w], noise)
            yield Blocks(centres, np.concatenate([contexts, noise], axis=1), labels, weights)

    def _noise_weights(
        self, contexts: NDArray[np.int32], pairs: NDArray[np.float32], noise: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """K/K' for each pair of the centre whose context is not the noise word itself: (S, b, K').

        As in the C tool, a draw that hits the pair's own context is not counted.
        """
        collides = (contexts[:, :, None] == noise[:, None, :]).astype(np.float32)  # (S, C, K')
        counted = pairs.sum(axis=2, keepdims=True) - pairs @ collides
        return counted * np.float32(self.negatives / max(self.shared, 1))
