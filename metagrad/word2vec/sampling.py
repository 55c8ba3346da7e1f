"""Sampling: which words of a text are kept, which are its contexts, and which are drawn as noise.

Whole-array NumPy code on ids and counts; no Python loop over tokens. What a model does with them is not known
here.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

_ROUNDS = 16  # of redrawing before a row's own distribution is worth its cost


def keep_probability(counts: ArrayLike, sample: float | None, rule: str = "word2vec.c") -> NDArray[np.float64]:
    """The probability with which each occurrence of a word is kept when frequent words are thinned out.

    counts: (V,) occurrences of the words. With f = count / sum of counts and t = `sample`:
        "paper":       √(t/f), at most 1: Mikolov et al. 2013, "Distributed Representations of Words …"
        "word2vec.c":  √(t/f) + t/f, at most 1: the C tool and its heirs; nothing below f = 2.618·t is dropped
    sample: 1e-3 is usual for "word2vec.c", 1e-5 … 1e-4 for "paper"; None or 0 keeps everything.
    Returns (V,) float64; a word with count 0 has probability 1.
    """
    if rule not in ("word2vec.c", "paper"):
        raise ValueError(f"the subsampling rule must be 'word2vec.c' or 'paper', got {rule!r}")
    weights = _checked_weights(counts, "counts")
    if not sample:
        return np.ones(len(weights))
    if not 0 < sample < np.inf:
        raise ValueError(f"sample must be a share of the text, > 0, or None to keep all, got {sample}")
    shares = weights / weights.sum()
    keep = np.ones(len(weights))
    seen = shares > 0
    ratio = sample / shares[seen]
    keep[seen] = np.sqrt(ratio) if rule == "paper" else np.sqrt(ratio) + ratio
    return np.minimum(keep, 1.0)


def subsample(
    ids: NDArray[np.integer],
    offsets: NDArray[np.integer],
    keep: NDArray[np.floating],
    generator: np.random.Generator,
) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    """Drop each token of a text with probability 1 − keep[id]: new ids and sentence offsets.

    ids: (N,), offsets: (S + 1,), as a Corpus has them; keep: (V,), from `keep_probability`; with
    keep[vocabulary.specials] = 0 no special token is left. Sentences that are emptied disappear, so the
    result may be empty: ids (0,) and offsets [0].
    """
    _check_offsets(ids, offsets)
    kept = generator.random(len(ids)) < keep[ids]
    before = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])  # kept tokens left of each position
    ends = before[offsets]
    return ids[kept], ends[np.concatenate([[True], np.diff(ends) > 0])]


def windows(
    ids: NDArray[np.integer],
    offsets: NDArray[np.integer],
    window: int,
    generator: np.random.Generator | None = None,
    padding: int = 0,
) -> tuple[NDArray[np.integer], NDArray[np.bool_]]:
    """The contexts of every token: (contexts, mask), both (N, 2·window), left neighbours before right ones.

    ids: (N,), offsets: (S + 1,). A context is a token of the same sentence at a distance of at most the
    radius, which is `window` for every token, or, with a generator, drawn for each uniformly from 1 … window.
    mask is True where there is a context; contexts holds `padding` elsewhere.
    """
    if window < 1:
        raise ValueError(f"window must be at least 1, got {window}")
    _check_offsets(ids, offsets)
    length = len(ids)
    radius: NDArray[np.integer] | int = window
    if generator is not None:
        radius = generator.integers(1, window, size=length, endpoint=True)
    lengths = np.diff(offsets)
    position = np.arange(length)
    reach_left = np.minimum(position - np.repeat(offsets[:-1], lengths), radius)
    reach_right = np.minimum(np.repeat(offsets[1:], lengths) - 1 - position, radius)

    distance = np.arange(1, window + 1)
    mask = np.concatenate(
        [distance[::-1] <= reach_left[:, None], distance <= reach_right[:, None]], axis=1
    )  # (N, 2·window)
    # One place more than needed on the right, so that no tokens at all are no special case.
    padded = np.pad(ids, (window, window + 1), constant_values=padding)
    around = sliding_window_view(padded, 2 * window + 1)[:length]  # the token itself in the middle
    contexts = np.delete(around, window, axis=1)
    contexts[~mask] = padding
    return contexts, mask


def noise_distribution(counts: ArrayLike, exponent: float = 0.75, exclude: Iterable[int] = ()) -> NDArray[np.float64]:
    """How likely each word is drawn as noise: p(w) = count(w)^exponent / Σ count^exponent, (V,) float64.

    counts: (V,). exclude: ids that are never drawn, such as `vocabulary.specials`. ValueError for counts that
    are negative or not finite, and where nothing is left to draw.
    """
    weights = _checked_weights(counts, "counts")
    if not np.isfinite(exponent):
        raise ValueError(f"the exponent must be a finite number, got {exponent}")
    drawable = weights > 0
    excluded = np.fromiter(exclude, np.int64)
    outside = excluded[(excluded < 0) | (excluded >= len(weights))]
    if len(outside):
        raise ValueError(f"exclude names the id {outside[0]}, but there are {len(weights)} words")
    drawable[excluded] = False
    if not drawable.any():
        raise ValueError("no word is left to draw as noise: every word with a count is excluded")
    noise = np.zeros(len(weights))
    noise[drawable] = (weights[drawable] / weights.max()) ** exponent  # the greatest is 1: no overflow
    return noise / noise.sum()


class NoiseSampler:
    """Draws ids by a fixed distribution, from one cumulative table that is never written to.

    distribution: (V,) weights ≥ 0 of any sum, float32 or float64; copied and normalised. An id of weight 0 is
    never drawn. seed: a number or a Generator. `sampler.distribution` is the normalised one, read-only.
    """

    def __init__(self, distribution: ArrayLike, seed: int | np.random.Generator | None = None) -> None:
        weights = _checked_weights(distribution, "the distribution")
        cumulative = np.cumsum(weights)
        self.distribution = weights / cumulative[-1]
        self.distribution.flags.writeable = False
        # The last word that can be drawn ends at x/x = 1 exactly and random numbers stay below 1, so no
        # rounding leads past it; a word of weight 0 ends where the word before it does, so it is never the
        # first beyond.
        self._cumulative = cumulative / cumulative[-1]
        self._cumulative.flags.writeable = False
        self._generator = np.random.default_rng(seed)
        # Looking up 100 000 numbers among 30 000 words takes 9 ms by bisection alone and 1 ms with this
        # guide: [0, 1) is cut into 2^k equal bins, and most bins lie within one word. −1 marks the bins that
        # do not.
        bins = 1 << min(max(5 + (len(weights) - 1).bit_length(), 10), 22)
        words = self._bisect(np.arange(bins + 1) / bins).astype(np.int32)
        self._guide = np.where(words[:-1] == words[1:], words[:-1], np.int32(-1))

    def draw(self, shape: int | tuple[int, ...], generator: np.random.Generator | None = None) -> NDArray[np.int64]:
        """Independent ids of this shape, int64. generator: random numbers other than the sampler's own."""
        numbers = (self._generator if generator is None else generator).random(shape)
        flat = numbers.reshape(-1)
        bins = (flat * len(self._guide)).astype(np.int64)  # exact, for their number is a power of two
        ids = self._guide[bins].astype(np.int64)
        unsure = np.flatnonzero(ids < 0)
        ids[unsure] = self._bisect(flat[unsure])
        return ids.reshape(numbers.shape)

    def draw_excluding(
        self, excluded: ArrayLike, n: int, generator: np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """n ids for every row, (B, n) int64, none of which is among the row's excluded ones.

        excluded: (B, L) ids, padded at will with negative numbers or with repetitions. Each row's ids are
        independent draws from the distribution without the excluded ids, scaled to 1 again: what collides is
        drawn anew. ValueError names the first row where nothing is left to draw.
        """
        forbidden = np.asarray(excluded)
        if forbidden.ndim != 2 or not np.issubdtype(forbidden.dtype, np.integer):
            raise ValueError(
                f"excluded must be a (B, L) array of ids, got {forbidden.dtype} of shape {forbidden.shape}"
            )
        ids = self.draw((len(forbidden), n), generator)
        rows, columns = np.nonzero(_collides(ids, forbidden[:, :, None]))
        for _ in range(_ROUNDS):
            if not len(rows):
                return ids
            drawn = self.draw(len(rows), generator)
            ids[rows, columns] = drawn
            again = _collides(drawn, forbidden[rows])
            rows, columns = rows[again], columns[again]
        # Few rows come here: those whose excluded ids hold nearly all of the probability, or all of it.
        for row in np.unique(rows):
            left = np.array(self.distribution)
            left[forbidden[row][(forbidden[row] >= 0) & (forbidden[row] < len(left))]] = 0
            if not left.any():
                raise ValueError(
                    f"nothing is left to draw for row {row}: every word that can be drawn is excluded there"
                )
            here = columns[rows == row]
            rest = NoiseSampler(left, self._generator if generator is None else generator)
            ids[row, here] = rest.draw(len(here))
        return ids

    def _bisect(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.searchsorted(self._cumulative, numbers, side="right")


def _collides(ids: NDArray[np.int64], forbidden: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether each id stands among its forbidden ones: ids (M, …), forbidden (M, L, …).

    One comparison for each of the L, which are few: an array of all comparisons would be large.
    """
    found = np.zeros(ids.shape, bool)
    for slot in range(forbidden.shape[1]):
        found |= ids == forbidden[:, slot]
    return found


def _checked_weights(values: ArrayLike, name: str) -> NDArray[np.float64]:
    weights = np.array(values, dtype=np.float64)
    if weights.ndim != 1 or not len(weights):
        raise ValueError(f"{name} must be a one-dimensional array that is not empty, got shape {weights.shape}")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(f"{name} must be finite and not negative, but number {bad[0]} is {weights[bad[0]]}")
    if not weights.any():
        raise ValueError(f"{name} must not be zero everywhere")
    return weights


def _check_offsets(ids: NDArray[np.integer], offsets: NDArray[np.integer]) -> None:
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(ids) or (np.diff(offsets) < 0).any():
        raise ValueError(f"sentence offsets must rise from 0 to the number of ids, {len(ids)}, got {offsets!r}")
