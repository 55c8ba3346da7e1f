"""The masked recipe: skip-gram as it is taught on the Penn Treebank, each stage a function to print from.

Words have different numbers of contexts. Here the contexts and the noise words of a word stand in one row, the rows
of a batch are padded to its longest, a mask says what is real and a label what is a true context. The loss is the
binary cross-entropy of each entry, averaged over the real ones of a row (Zhang et al., "Dive into Deep Learning",
sections 15.3 and 15.4, on Mikolov et al. 2013).

    python examples/masked_skipgram.py                  # English about programming, which every Python carries
    python examples/masked_skipgram.py --corpus ptb     # the Penn Treebank; the defaults are the published setting
    python examples/masked_skipgram.py --corpus FILE    # a file in its format: a sentence a line, <unk> in the text

--resample is the chapter's exercise: new contexts for each epoch, new noise words for each minibatch. What stays the
same for five epochs is partly learnt by heart, so without that the loss ends higher, and no noise is stored. On
930 000 words of Wikipedia made to look like the Penn Treebank (Spearman's ρ, the least and the greatest of n runs):

                    n   last loss   data in memory   WordSim-353        MEN
    once            3     0.345         55 MB        0.52 – 0.55    0.52 – 0.55
    --resample      2     0.365         21 MB        0.53 – 0.55    0.56
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import metagrad
from metagrad import Tensor, cuda, nn
from metagrad import functional as F
from metagrad.data import DataLoader, Dataset
from metagrad.optim import Adam
from metagrad.word2vec import (
    TEXTS,
    Corpus,
    NoiseSampler,
    Vocabulary,
    WordVectors,
    embedded_text,
    keep_probability,
    load_text,
    noise_distribution,
    save_pretrained,
    subsample,
    windows,
)
from metagrad.word2vec.plot import plot_loss
from metagrad.word2vec.vector_files import format_of

UNK = "<unk>"


# 1. The text and its vocabulary
def read_corpus(source: str | None, min_freq: int) -> Corpus:
    """Sentences as ids. Words rarer than min_freq become <unk>, which may stand in the text already."""
    if source in TEXTS and not os.path.exists(source):
        source = str(load_text(source))
    return Corpus.build(source or embedded_text(), min_count=min_freq, unknown=UNK, progress=True)


# 2. Subsampling
def thin_out(corpus: Corpus, t: float, rng: np.random.Generator) -> Corpus:
    """Drop <unk>, then each word w with probability 1 − √(t / f(w)), f its share of the words that are left."""
    unk = corpus.vocabulary[UNK]
    counts = corpus.vocabulary.counts.copy()
    counts[unk] = 0
    keep = keep_probability(counts, t, rule="paper")
    keep[unk] = 0
    return Corpus(*subsample(corpus.ids, corpus.offsets, keep, rng), corpus.vocabulary)


# 3. Centres and contexts
def centres_and_contexts(corpus: Corpus, max_window: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Each word with those up to r places away in its sentence, r drawn from 1 … max_window for each.

    centres (N,), contexts (N, 2 max_window), −1 where there is none. A word alone in its sentence is no centre.
    """
    contexts, mask = windows(corpus.ids, corpus.offsets, max_window, rng, padding=-1)
    accompanied = mask.any(axis=1)
    if not accompanied.any():
        raise ValueError("no sentence has two words left to learn from: give more text, or a larger --t")
    return corpus.ids[accompanied], contexts[accompanied]


# 4. Noise words
class CachedNoise(NoiseSampler):
    """Noise words by count^0.75, never <unk>: drawn `size` at a time and handed out one after another."""

    def __init__(self, vocabulary: Vocabulary, seed: int, size: int = 10_000) -> None:
        super().__init__(noise_distribution(vocabulary.counts, 0.75, exclude=[vocabulary[UNK]]), seed)
        self.size = size
        self.cache = np.empty(0, np.int64)

    def draw(self, shape: int | tuple[int, ...], generator: np.random.Generator | None = None) -> np.ndarray:
        if generator is not None:  # the cache is of this sampler's own random numbers
            return super().draw(shape, generator)
        n = math.prod(np.atleast_1d(shape).tolist())
        refills = max(-(-(n - len(self.cache)) // self.size), 0)
        words = np.append(self.cache, super().draw((refills, self.size)))
        self.cache = words[n:].copy()
        return words[:n].reshape(shape)


def noise_words(contexts: np.ndarray, k: int, noise: NoiseSampler) -> np.ndarray:
    """k noise words for each of the C contexts, (C, k), row by row; none is a context of the same centre."""
    centre = np.nonzero(contexts >= 0)[0]  # (C,) the row in which each context stands
    parts = np.array_split(centre, len(centre) // 100_000 + 1)  # so that memory is what the result takes
    return np.concatenate([noise.draw_excluding(contexts[part], k).astype(np.int32) for part in parts])


# 5. Minibatches
class Batch(NamedTuple):
    centres: np.ndarray  # (B, 1)
    contexts_negatives: np.ndarray  # (B, M) contexts, then noise words, then zeros
    masks: np.ndarray  # (B, M) 1 = real
    labels: np.ndarray  # (B, M) 1 = a true context


def minibatch(centres: np.ndarray, contexts: np.ndarray, negatives: np.ndarray) -> Batch:
    """centres (B,), contexts (B, L) with −1 for none, negatives (C, K): padded to the longest row of this batch."""
    real = contexts >= 0
    n = real.sum(axis=1)[:, None]  # (B, 1)
    place = np.arange((1 + negatives.shape[1]) * n.max())  # (M,)
    labels, masks = place < n, place < (1 + negatives.shape[1]) * n  # (B, M) each
    rows = np.zeros(masks.shape, np.int64)
    rows[labels] = contexts[real]
    rows[masks & ~labels] = negatives.ravel()
    return Batch(centres[:, None], rows, masks.astype(np.float32), labels.astype(np.float32))


class MaskedDataset(Dataset):
    """Centres with their contexts, (N,) and (N, L), and k noise words for each: drawn now, or for each batch anew."""

    def __init__(
        self, centres: np.ndarray, contexts: np.ndarray, k: int, noise: NoiseSampler, fresh: bool = False
    ) -> None:
        if k < 1:
            raise ValueError(f"the model learns from noise words: --negatives is {k}, it must be at least 1")
        self.centres, self.contexts, self.k, self.noise = centres, contexts, k, noise
        self.ends = np.cumsum((contexts >= 0).sum(axis=1))
        self.negatives = None if fresh else noise_words(contexts, k, noise)

    def __len__(self) -> int:
        return len(self.centres)

    def __getitems__(self, indices: np.ndarray) -> Batch:
        contexts = self.contexts[indices]
        if self.negatives is None:
            negatives = noise_words(contexts, self.k, self.noise)
        else:  # those of centre i are the n rows before ends[i]
            n = (contexts >= 0).sum(axis=1)
            negatives = self.negatives[np.repeat(self.ends[indices] - np.cumsum(n), n) + np.arange(n.sum())]
        return minibatch(self.centres[indices], contexts, negatives)

    @property
    def nbytes(self) -> int:
        arrays = self.centres, self.contexts, self.ends, self.negatives
        return sum(array.nbytes for array in arrays if array is not None)


# 6. The model and its loss
class MaskedSkipGram(nn.Module):
    """Two tables, of words as centres and as contexts or noise; `forward` returns the mean loss of a batch.

    Adam as published moves whole tables: a word that a batch lacks still goes on by its mean of past gradients. With
    sparse=True it would wait. For 10 000 words that is hardly faster, and worse: on the text above, with one seed,
    WordSim-353 0.40 instead of 0.55, MEN 0.39 instead of 0.55.
    """

    def __init__(self, vocab_size: int, dim: int, sparse: bool = False) -> None:
        self.centres = nn.Embedding(vocab_size, dim, sparse=sparse)
        self.contexts = nn.Embedding(vocab_size, dim, sparse=sparse)
        for table in self.parameters():
            nn.init.xavier_uniform_(table)

    def forward(self, centres: Tensor, contexts_negatives: Tensor, masks: Tensor, labels: Tensor) -> Tensor:
        v = self.centres(centres)  # (B, 1, d)
        u = self.contexts(contexts_negatives)  # (B, M, d)
        scores = (v @ u.swapaxes(1, 2)).squeeze(1)  # (B, 1, d) × (B, d, M) → (B, M)
        # Published is the sum over a batch. Adam divides by the size of the gradients, so the mean trains alike.
        return masked_loss(scores, labels, masks).mean()


def masked_loss(scores: Tensor, labels: Tensor, masks: Tensor) -> Tensor:
    """Binary cross-entropy with logits, averaged over the real entries of each row: (B,). A row without any gives 0."""
    losses = F.binary_cross_entropy_with_logits(scores, labels, weight=masks, reduction="none")
    return losses.sum(axis=1) / F.maximum(masks.sum(axis=1), 1)


# 7. Training
def epochs_of(corpus: Corpus, noise: NoiseSampler, options: argparse.Namespace) -> Iterator[MaskedDataset]:
    """What each epoch trains on: one dataset for all, or with --resample another one each time."""
    rng = np.random.default_rng(options.seed)
    thinned = thin_out(corpus, options.t, rng)
    for epoch in range(options.epochs):
        if epoch == 0 or options.resample:
            drawn = centres_and_contexts(thinned, options.window, rng)
            dataset = MaskedDataset(*drawn, options.negatives, noise, fresh=options.resample)
        if epoch == 0:
            print(f"{len(dataset):,} centres in {dataset.nbytes / 1e6:.1f} MB, {dataset.ends[-1]:,} contexts")
        yield dataset


def train(model: MaskedSkipGram, epochs: Iterable[MaskedDataset], options: argparse.Namespace) -> None:
    """Five points of the loss curve in each epoch, drawn as they come; then the speed, in centres."""
    device = model.centres.weight.device
    optimizer = Adam(model.parameters(), lr=options.lr)
    curve: list[float] = []
    tokens, seconds = 0, 0.0
    for epoch, dataset in enumerate(epochs):
        began = time.perf_counter()
        loader = DataLoader(dataset, options.batch_size, shuffle=True, generator=options.seed + epoch, prefetch=2)
        fifths = {len(loader) * i // 5 for i in range(1, 6)} - {0}
        losses = []
        for number, batch in enumerate(tqdm(loader, f"epoch {epoch + 1}", leave=False, disable=None), 1):
            loss = model(*(Tensor(array, device=device) for array in batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if number in fifths:
                curve.append(float(np.mean(losses)))
                losses.clear()
                bar = "#" * round(60 * curve[-1] / math.log(2))  # its full length is the loss of guessing
                tqdm.write(f"epoch {epoch + number / len(loader):.1f}  loss {curve[-1]:.4f}  {bar}")
                if options.picture:
                    plot_loss(curve, options.picture, per_epoch=len(fifths))
        tokens += len(dataset)
        seconds += time.perf_counter() - began
    print(f"{tokens / seconds:,.0f} tokens/s on {device}")


# 8. Use
def main() -> None:
    options = parse_options()
    if options.output:
        format_of(options.output)  # an ending that says nothing is refused now, not after training
    metagrad.manual_seed(options.seed)
    device = cuda.get_device("cuda:0" if cuda.is_available() else "cpu")
    corpus = read_corpus(options.corpus, options.min_freq)
    vocabulary = corpus.vocabulary
    words = options.words or default_words(vocabulary)
    for word in words:  # and so is a word that is not there
        vocabulary[word]
    print(f"{len(corpus.ids):,} tokens in {len(corpus):,} sentences, {len(vocabulary):,} words")

    model = MaskedSkipGram(len(vocabulary), options.dim).to(device)
    train(model, epochs_of(corpus, CachedNoise(vocabulary, options.seed), options), options)

    vectors = WordVectors(vocabulary.tokens, model.centres.weight.numpy())
    for word in words:
        nearest = vectors.most_similar(word, topn=options.topn)
        print(f"{word}: " + "  ".join(f"{other} {cosine:.2f}" for other, cosine in nearest))
    if options.output:
        save_pretrained(vocabulary, model.centres.weight, options.output)


def default_words(vocabulary: Vocabulary) -> list[str]:
    """Words to look at: of the Penn Treebank, or of the embedded text; else some that are frequent."""
    known = ["chip", "bank", "oil", "list", "error", "int", "first"]
    return [word for word in known if word in vocabulary] or list(vocabulary.tokens[100:105] or vocabulary.tokens[1:6])


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--corpus", help=f"a text file, a sentence a line, or one of {', '.join(TEXTS)}; else the embedded text"
    )
    parser.add_argument("--resample", action="store_true", help="new contexts for each epoch, new noise for each batch")
    parser.add_argument("--dim", type=int, default=100, help="numbers in a vector")
    parser.add_argument("--window", type=int, default=5, help="the largest distance of a context")
    parser.add_argument("--negatives", type=int, default=5, help="noise words for each context (K)")
    parser.add_argument("--batch-size", type=int, default=512, help="centres in a batch")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the text")
    parser.add_argument("--lr", type=float, default=0.002, help="Adam's step size")
    parser.add_argument("--min-freq", type=int, default=10, help="rarer words become <unk>")
    parser.add_argument("--t", type=float, default=1e-4, help="words of a larger share of the text are thinned out")
    parser.add_argument("--words", nargs="+", help="words whose neighbours are printed at the end")
    parser.add_argument("--topn", type=int, default=6, help="neighbours to print")
    parser.add_argument("--output", help="file for the vectors (.vec, .bin, .npz)")
    parser.add_argument("--picture", help="file for the loss curve, redrawn at each point (.png, .svg); [plot] extra")
    parser.add_argument("--seed", type=int, default=1, help="of everything random: the same seed, the same vectors")
    options = parser.parse_args()
    for name in ("output", "picture"):
        folder = Path(getattr(options, name) or ".").absolute().parent
        if not folder.is_dir():
            parser.error(f"--{name}: there is no folder {folder}")
    if options.epochs < 1:
        parser.error(f"--epochs is {options.epochs}, it must be at least 1")
    return options


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, LookupError, ImportError) as error:
        sys.exit(f"masked_skipgram.py: {str(error).strip(chr(34))}")  # a KeyError puts its message in quotes
