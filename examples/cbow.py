"""CBOW and skip-gram with the full softmax: the two models of word2vec before anything makes them fast.

CBOW predicts a word from the mean of its contexts' vectors, skip-gram each context from the word's vector
(Mikolov et al. 2013, "Efficient Estimation of Word Representations in Vector Space"):

    P(word | h) = e^(u_word · h) / Σ_v e^(u_v · h)          loss = −log P

The sum runs over the whole vocabulary for every prediction. The table at the end shows what that costs as the
vocabulary grows, beside negative sampling, which replaces the sum by a few noise words.

    python examples/cbow.py                        # English about programming, which every Python carries
    python examples/cbow.py --corpus novel.txt     # your own text: a sentence a line, words between spaces
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from tqdm import tqdm

import metagrad
from metagrad import Tensor, nn
from metagrad import functional as F
from metagrad.data import DataLoader, TensorDataset
from metagrad.optim import Adam
from metagrad.word2vec import Corpus, Word2Vec, embedded_text, windows


class CBOW(nn.Module):
    """A word from the mean of its contexts."""

    def __init__(self, vocab_size: int, dim: int) -> None:
        self.input = nn.Embedding(vocab_size, dim)
        self.output = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, words: Tensor, contexts: Tensor, mask: Tensor) -> Tensor:
        """words (B,), contexts (B, L), mask (B, L), 1 where there is a context. The mean loss of a word."""
        vectors = self.input(contexts) * mask.unsqueeze(2)  # (B, L, d)
        h = vectors.sum(axis=1) / mask.sum(axis=1, keepdims=True)  # (B, d)
        return F.cross_entropy(self.output(h), words)


class SkipGram(nn.Module):
    """Each context from the word."""

    def __init__(self, vocab_size: int, dim: int) -> None:
        self.input = nn.Embedding(vocab_size, dim)
        self.output = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, words: Tensor, contexts: Tensor, mask: Tensor) -> Tensor:
        """As CBOW's. One softmax serves all contexts of a word. The mean loss of a context."""
        log_p = F.log_softmax(self.output(self.input(words)), axis=1)  # (B, V)
        return -(F.take_along_axis(log_p, contexts, axis=1) * mask).sum() / mask.sum()


def load_corpus(path: str | None, max_vocab: int, most: int) -> Corpus:
    """The first `most` words of a text, of the `max_vocab` most frequent."""
    return Corpus.build(path or embedded_text(), max_size=max_vocab).beginning(most)


def examples_of(corpus: Corpus, window: int) -> TensorDataset:
    """Every word that has contexts: words (N,), contexts (N, 2 window), mask (N, 2 window)."""
    contexts, mask = windows(corpus.ids, corpus.offsets, window)
    some = mask.any(axis=1)
    return TensorDataset(corpus.ids[some], contexts[some], mask[some].astype(np.float32))


def train(model: nn.Module, data: TensorDataset, options: argparse.Namespace) -> None:
    optimizer = Adam(model.parameters(), lr=options.lr)
    loader = DataLoader(data, options.batch_size, shuffle=True, generator=options.seed)
    name = type(model).__name__
    for epoch in range(options.epochs):
        start, losses = time.perf_counter(), []
        for batch in tqdm(loader, desc=f"{name}, epoch {epoch + 1}", leave=False, disable=None):
            loss = model(*map(Tensor, batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"{name:>8}  epoch {epoch + 1}  loss {np.mean(losses):.4f}  {time.perf_counter() - start:.1f} s")


def compare(path: str | None, options: argparse.Namespace) -> None:
    """Seconds for an epoch of the same words, as the vocabulary grows; the package's models, on blocks of text."""
    print(f"\nseconds an epoch of {options.most:,} words\n{'vocabulary':>12}", end="")
    kinds = [(model, loss) for model in ("cbow", "skipgram") for loss in ("softmax", "negatives")]
    print("".join(f"{' '.join(kind):>20}" for kind in kinds))
    for size in options.sizes:
        corpus = load_corpus(path, size, options.most)
        seconds = []
        for model, loss in kinds:
            trainer = Word2Vec(
                model, loss, dim=options.dim, window=options.window, sample=0, epochs=1, seed=options.seed
            )
            start = time.perf_counter()
            trainer.train(corpus, progress=False)
            seconds.append(time.perf_counter() - start)
        print(f"{len(corpus.vocabulary):>12,}" + "".join(f"{value:>20.2f}" for value in seconds), flush=True)


def main() -> None:
    options = parse_options()
    metagrad.manual_seed(options.seed)
    corpus = load_corpus(options.corpus, options.max_vocab, options.most)
    vocabulary = corpus.vocabulary
    guess = np.log(len(vocabulary))
    print(f"{len(corpus.ids):,} words of a vocabulary of {len(vocabulary):,}: a guess has loss {guess:.2f}")
    data = examples_of(corpus, options.window)
    for kind in (CBOW, SkipGram):
        train(kind(len(vocabulary), options.dim), data, options)
    compare(options.corpus, options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--corpus", help="a text file, one sentence a line, words between spaces; else the embedded text"
    )
    parser.add_argument("--most", type=int, default=60_000, help="words of the text that are used")
    parser.add_argument(
        "--max-vocab", type=int, default=2000, help="the most frequent words, of which the others vanish"
    )
    parser.add_argument("--dim", type=int, default=64, help="numbers in a vector")
    parser.add_argument("--window", type=int, default=3, help="contexts on each side")
    parser.add_argument("--batch-size", type=int, default=512, help="words in a batch")
    parser.add_argument("--epochs", type=int, default=3, help="passes over the text")
    parser.add_argument("--lr", type=float, default=3e-3, help="Adam's step size")
    parser.add_argument("--sizes", type=int, nargs="*", default=[500, 1000, 2000, 4000], help="vocabularies to compare")
    parser.add_argument("--seed", type=int, default=1, help="of everything random: the same seed, the same vectors")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, LookupError) as error:
        sys.exit(f"cbow.py: {str(error).strip(chr(34))}")
