"""Blocks: a text cut so that training on it is matrix work.

b consecutive kept words are the centres of a block. Their true contexts lie among the C = b + 2w words around
them, so one matrix product gives the scores of all centres with all contexts, and a mask says which are pairs.
Blocks that follow one another are a stretch: its words are looked up once for all of its blocks, and K' noise
words serve all of its centres; their weights make the expected gradient that of K draws for each pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .sampling import NoiseSampler

_CHUNK = 100_000  # words of the text that are thinned out and cut at a time


class Blocks(NamedTuple):
    """One training step: G stretches of text, each of n blocks of b words.

    centres (G, n·b): ids of the words of each stretch. contexts (G, n·b + 2w): the same with the w words before
    and behind; the candidates of block k are the C = b + 2w from k·b on.
    pairs (G, n, b, C): 1 where the candidate is a context of the centre, else 0.
    noise (G, K'): ids of the stretch's noise words. noise_weights (G, n·b, K'): how much each counts for a centre.
    """

    centres: NDArray[np.int32]
    contexts: NDArray[np.int32]
    pairs: NDArray[np.float32]
    noise: NDArray[np.int32]
    noise_weights: NDArray[np.float32]

    def contexts_of_each(self) -> NDArray[np.float32]:
        """The number of true contexts of each centre: (G, n, b)."""
        return self.pairs @ np.ones(self.pairs.shape[-1], self.pairs.dtype)


@dataclass(frozen=True)
class BlockCutter:
    """Cuts a text into steps.

    noise: what noise words are drawn from. keep: (V,) probability that an occurrence of a word is kept, drawn
    anew each time; None keeps all. window: the radius of each centre is drawn uniformly from 1 … window, or is
    `window` if not `shrink`. negatives: K, noise words for each prediction; 0 for models without noise. shared: K',
    the noise words that a stretch draws. block: b, which is no longer than a stretch.
    predicts: "contexts", each of them by the centre (skip-gram), or "centre", by all contexts together (CBOW).
    collisions: what becomes of a draw that hits a word which is to be predicted. "skip": it does not count for
    that one prediction (the C tool). "redraw": noise is never one of the words that its centre predicts, as if it
    were drawn anew until it is none.
    """

    noise: NoiseSampler
    keep: NDArray[np.floating] | None = None
    window: int = 5
    negatives: int = 5
    block: int = 8
    shared: int = 16
    shrink: bool = True
    predicts: str = "contexts"
    collisions: str = "skip"

    def steps(
        self,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        generator: np.random.Generator,
        sizes: tuple[int, int] | Callable[[], tuple[int, int]] = (1024, 32),
        part: int = 0,
        parts: int = 1,
    ) -> Iterator[Blocks]:
        """Every kept word of a text as a centre, once, in stretches of shuffled order.

        ids (N,), offsets (sentences + 1,) as a Corpus has them. sizes: the centres of a step and the words of a
        stretch, n·b, at most; or what gives them and is asked for each hundred thousand words. part, parts: this one
        of several shares of the text.
        """
        starts = np.arange(0, len(ids), _CHUNK)[part::parts]
        for start in generator.permutation(starts):
            words = np.asarray(ids[start : start + _CHUNK])
            sentence = np.searchsorted(offsets, np.arange(start, start + len(words)), side="right")
            if self.keep is not None:
                kept = generator.random(len(words), dtype=np.float32) < self.keep[words]
                words, sentence = words[kept], sentence[kept]
            if len(words):
                yield from self._cut(words, *self._reach(sentence, generator), generator, sizes)

    def _reach(
        self, sentence: NDArray[np.int64], generator: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """How many words to the left and to the right of each are its contexts: two (n,)."""
        n = len(sentence)
        left, right = np.zeros(n, np.int32), np.zeros(n, np.int32)
        for distance in range(1, min(self.window, n - 1) + 1):
            together = sentence[distance:] == sentence[:-distance]
            left[distance:] += together
            right[:-distance] += together
        if self.shrink:
            radius = generator.integers(1, self.window + 1, size=n, dtype=np.int32)
            left, right = np.minimum(left, radius), np.minimum(right, radius)
        return left, right

    def _cut(
        self,
        words: NDArray[np.int32],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        generator: np.random.Generator,
        sizes: tuple[int, int] | Callable[[], tuple[int, int]],
    ) -> Iterator[Blocks]:
        step, stretch = sizes() if callable(sizes) else sizes
        b, w = min(self.block, stretch, step), self.window
        n = min(stretch, step) // b
        count = -(-len(words) // (n * b))
        # Borders and the rest of the last stretch are filled with words that reach none and that none reaches.
        rest = count * n * b - len(words)
        words = sliding_window_view(np.pad(words, (w, rest + w)), n * b + 2 * w)[:: n * b]  # (count, n b + 2 w)
        left, right = (np.pad(reach, (0, rest)).reshape(count, n, b, 1) for reach in (left, right))
        noise = self.noise.draw((count, self.shared if self.negatives else 0), generator).astype(np.int32)
        place, centre = np.arange(b + 2 * w, dtype=np.int32), np.arange(w, w + b, dtype=np.int32)[:, None]
        others = place != centre
        order, per_step = generator.permutation(count), max(step // (n * b), 1)
        for i in range(0, count, per_step):
            chosen = order[i : i + per_step]
            contexts, drawn = words[chosen], noise[chosen]
            within = (centre - left[chosen] <= place) & (place <= centre + right[chosen]) & others
            pairs = within.astype(np.float32)
            weights = self.counted(contexts, pairs, drawn) * np.float32(self.negatives / self.shared)
            yield Blocks(contexts[:, w : w + n * b], contexts, pairs, drawn, weights)

    def counted(
        self, contexts: NDArray[np.int32], pairs: NDArray[np.floating], noise: NDArray[np.int32]
    ) -> NDArray[np.floating]:
        """For how many of its predictions each centre counts a draw of each noise word: (G, n·b, K').

        Its mean over draws, times K, is what pair by pair training has: the number of predictions less those that
        collide; or, where collisions are drawn anew, this number over the probability that a draw need not be,
        1 − P(the words that the centre predicts).
        """
        G, n, b, C = pairs.shape
        predicted = pairs
        if self.predicts == "centre":  # which is a prediction if there are contexts to make it
            predicted = np.eye(b, C, self.window, dtype=pairs.dtype) * pairs.any(axis=3, keepdims=True)
        total = predicted @ np.ones((C, 1), pairs.dtype)
        equal = (contexts[:, :, None] == noise[:, None]).astype(pairs.dtype)
        collisions = predicted @ sliding_window_view(equal, C, axis=1)[:, ::b].swapaxes(2, 3)  # (G, n, b, K')
        if self.collisions == "skip":
            return (total - collisions).reshape(G, n * b, -1)
        candidates = sliding_window_view(contexts, C, axis=1)[:, ::b]  # (G, n, C)
        repeats = predicted @ (candidates[..., :, None] == candidates[..., None, :]).astype(pairs.dtype)
        share = predicted * self.noise.distribution[candidates][:, :, None] / np.maximum(repeats, 1)
        left = np.maximum(1 - share.sum(axis=3, keepdims=True), 1e-12)  # 0 where a centre predicts every word
        counted = np.where(collisions > 0, 0, total / left)
        return counted.astype(pairs.dtype).reshape(G, n * b, -1)
