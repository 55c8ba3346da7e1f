"""Skip-gram with negative sampling (SGNS), from text to word vectors, on metagrad's own autograd.

For a word w and one of its contexts c, the model raises σ(w·c), and it lowers σ(w·n) for K noise words n
(Mikolov et al. 2013):

    loss = −[log σ(c·w) + Σ_k log σ(−n_k·w)]

averaged over the contexts of a word, then over the words of a batch. The loss is what `forward` returns.

    python examples/sgns.py                        # English about programming, which every Python carries
    python examples/sgns.py --corpus novel.txt     # your own text: a sentence a line, words between spaces
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

import metagrad
from metagrad import Tensor, cuda, debug_mode, nn
from metagrad import functional as F
from metagrad.data import DataLoader, Dataset
from metagrad.optim import SGD, Adagrad
from metagrad.word2vec import (
    Corpus,
    NoiseSampler,
    Vocabulary,
    WordVectors,
    embedded_text,
    noise_distribution,
    save_pretrained,
    windows,
)

PAD, BOS, EOS = "<pad>", "<bos>", "<eos>"

# A step of SGD moves a row in proportion to how often its word stands in the batch: what is stable for "the"
# hardly moves a rare word. Adagrad divides by the size of the row's own gradients so far.
OPTIMIZERS = {"adagrad": Adagrad, "sgd": SGD}
STEP_SIZES = {"adagrad": 0.1, "sgd": 30.0}  # of a mean over the batch, so independent of its size


def load_corpus(path: str | None, min_freq: int) -> Corpus:
    """The sentences of a text file as ids, each within <bos> … <eos>. Words rarer than min_freq are dropped."""
    text = Corpus.build(path or embedded_text(), min_count=min_freq, specials=(PAD, BOS, EOS), progress=True)
    bos, eos = text.vocabulary[BOS], text.vocabulary[EOS]
    starts, ends = text.offsets[:-1], text.offsets[1:]
    ids = np.insert(text.ids, np.stack([starts, ends], axis=1).ravel(), [bos, eos] * len(text))
    return Corpus(ids, text.offsets + 2 * np.arange(len(text) + 1), text.vocabulary)


def get_unigram_distribution(corpus: Corpus, alpha: float = 0.75) -> np.ndarray:
    """p(w) ∝ count(w)^alpha: (V,). Reserved tokens are never drawn."""
    return noise_distribution(corpus.vocabulary.counts, alpha, exclude=corpus.vocabulary.specials)


class SGNSDataset(Dataset):
    """Every word of the corpus with its contexts; `collate_fn` adds noise words, drawn anew for each batch."""

    def __init__(self, corpus: Corpus, window: int, n_negatives: int, noise: NoiseSampler) -> None:
        if n_negatives < 1:
            raise ValueError(f"SGNS learns from noise words: n_negatives is {n_negatives}, it must be at least 1")
        self.n_negatives = n_negatives
        self.noise = noise
        pad = corpus.vocabulary[PAD]
        contexts, mask = windows(corpus.ids, corpus.offsets, window, padding=pad)  # (N, 2 window) each
        accompanied = mask.any(axis=1)  # a word alone in its sentence has nothing to learn from
        self.words, self.contexts, self.mask = corpus.ids[accompanied], contexts[accompanied], mask[accompanied]

    def __len__(self) -> int:
        return len(self.words)

    def __getitems__(self, indices: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.words[indices], self.contexts[indices], self.mask[indices]

    def collate_fn(self, batch: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """words (B,), contexts (B, L), mask (B, L) → the same and negatives (B, L, K), no true context among them."""
        words, contexts, mask = batch
        negatives = self.noise.draw_excluding(contexts, contexts.shape[1] * self.n_negatives)
        return words, contexts, mask, negatives.reshape(*contexts.shape, self.n_negatives)


class SGNSModel(nn.Module):
    """Two tables: a word's vector where it is the centre, and where it is a context or noise."""

    def __init__(self, vocab_size: int, dim: int, padding_idx: int) -> None:
        self.w_embeddings = nn.Embedding(vocab_size, dim)
        self.c_embeddings = nn.Embedding(vocab_size, dim, padding_idx=padding_idx)
        nn.init.uniform_(self.w_embeddings.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.c_embeddings.weight)

    def forward(self, words: Tensor, contexts: Tensor, mask: Tensor, negatives: Tensor) -> Tensor:
        B, L, K = negatives.shape
        w = self.w_embeddings(words).unsqueeze(2)  # (B, d, 1)
        c = self.c_embeddings(contexts)  # (B, L, d)
        n = self.c_embeddings(negatives.reshape(B, L * K))  # (B, L·K, d)
        positive = F.logsigmoid((c @ w).squeeze(axis=2))  # (B, L)
        negative = F.logsigmoid((n @ w).squeeze(axis=2).neg()).reshape(B, L, K).sum(axis=2)  # (B, L)
        # A place beyond the sentence's border counts nothing, neither as a context nor with its noise words.
        mask = mask.astype(positive.dtype)
        log_likelihood = ((positive + negative) * mask).sum(axis=1) / mask.sum(axis=1)  # (B,)
        return log_likelihood.mean().neg()


def train(model: SGNSModel, loader: DataLoader, options: argparse.Namespace, device: cuda.Device) -> None:
    optimizer = OPTIMIZERS[options.optimizer](model.parameters(), lr=options.lr)
    for epoch in range(options.epochs):
        losses = []
        for batch in tqdm(loader, desc=f"epoch {epoch + 1}", leave=False):
            loss = model(*(Tensor(array, device=device) for array in batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())  # the number; the Tensor would keep its graph alive
        print(f"epoch {epoch + 1:2}  loss {np.mean(losses):.4f}")


def main() -> None:
    options = parse_options()
    metagrad.manual_seed(options.seed)
    device = cuda.get_device("cuda:0" if cuda.is_available() else "cpu")

    corpus = load_corpus(options.corpus, options.min_freq)
    vocabulary = corpus.vocabulary
    words = options.words or default_words(vocabulary)
    for word in words:  # a word that is not there is said now, not after training
        vocabulary[word]
    print(f"{len(corpus.ids):,} tokens in {len(corpus):,} sentences, {len(vocabulary):,} words; on {device}")

    noise = NoiseSampler(get_unigram_distribution(corpus), seed=options.seed)
    dataset = SGNSDataset(corpus, options.window, options.negatives, noise)
    loader = DataLoader(
        dataset, options.batch_size, shuffle=True, collate_fn=dataset.collate_fn, generator=options.seed, prefetch=1
    )
    model = SGNSModel(len(vocabulary), options.dim, padding_idx=vocabulary[PAD]).to(device)
    with debug_mode() if options.debug else contextlib.nullcontext():
        train(model, loader, options, device)

    save_pretrained(vocabulary, model.w_embeddings.weight, options.output)
    print(f"saved to {options.output}")
    vectors = WordVectors(vocabulary.tokens, model.w_embeddings.weight.numpy())
    for word in words:
        nearest = vectors.most_similar(word, topn=options.topn)
        print(f"{word}: " + "  ".join(f"{other} {cosine:.2f}" for other, cosine in nearest))


def default_words(vocabulary: Vocabulary) -> list[str]:
    """Words to look at: of the embedded text, or of the novel; else the most frequent of middle length."""
    known = ["file", "list", "error", "class", "int", "first", "random", "socket", "观音", "悟空", "八戒"]
    return [w for w in known if w in vocabulary] or [w for w in vocabulary.tokens if len(w) > 4][:5]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--corpus", help="a text file, one sentence a line, words between spaces; else the embedded text"
    )
    parser.add_argument("--words", nargs="+", help="words whose neighbours are printed at the end")
    parser.add_argument("--output", default="sgns.vec", help="file for the vectors, in word2vec's text format")
    parser.add_argument("--dim", type=int, default=64, help="numbers in a vector")
    parser.add_argument("--window", type=int, default=2, help="contexts on each side")
    parser.add_argument("--batch-size", type=int, default=10240, help="words in a batch")
    parser.add_argument("--epochs", type=int, help="passes over the text (default: 10; over the embedded text 4)")
    parser.add_argument("--min-freq", type=int, default=3, help="rarer words are dropped")
    parser.add_argument("--negatives", type=int, default=10, help="noise words for each context (K)")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adagrad", help="rule of the step")
    parser.add_argument("--lr", type=float, help=f"step size (default: that of the optimizer, {STEP_SIZES})")
    parser.add_argument("--topn", type=int, default=8, help="neighbours to print")
    parser.add_argument("--seed", type=int, default=1, help="of everything random: the same seed, the same vectors")
    parser.add_argument(
        "--debug", action="store_true", help="name the first operation that makes a NaN; table of times"
    )
    options = parser.parse_args()
    if options.epochs is None:
        options.epochs = 10 if options.corpus else 4
    folder = Path(options.output).absolute().parent
    if not folder.is_dir():
        parser.error(f"--output: there is no folder {folder}")
    if options.lr is None:
        options.lr = STEP_SIZES[options.optimizer]
    return options


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, LookupError) as error:
        sys.exit(f"sgns.py: {str(error).strip(chr(34))}")  # a KeyError puts its message in quotes
