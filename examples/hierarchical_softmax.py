"""The hierarchical softmax: a probability for each of V words at the cost of log V.

The words are the leaves of a binary tree. From the root, at each node of a word's path, a vector decides between two
branches with σ(node · h), so that (Morin & Bengio 2005; Mikolov et al. 2013)

    P(word | h) = Π over its path of σ(± node · h)          loss = −log P

and the probabilities of all leaves sum to 1 without anybody adding them up. Huffman's tree (1952) gives frequent
words short paths, which makes the average path as short as can be.

    python examples/hierarchical_softmax.py                        # English about programming, in every Python
    python examples/hierarchical_softmax.py --corpus novel.txt     # a sentence a line, words between spaces
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from metagrad import Tensor, nn, no_grad
from metagrad import functional as F
from metagrad.word2vec import Corpus, Word2Vec, embedded_text
from metagrad.word2vec.huffman import HuffmanTree


class HierarchicalSoftmax(nn.Module):
    """−log P(word | h) along the word's path. One vector for each of the V − 1 inner nodes."""

    def __init__(self, tree: HuffmanTree, dim: int) -> None:
        self.tree = tree
        self.nodes = nn.Embedding(tree.inner, dim)
        nn.init.zeros_(self.nodes.weight)

    def forward(self, h: Tensor, words: np.ndarray) -> Tensor:
        """h (B, d), words (B,): the loss of each, (B,)."""
        nodes, branches, real = self.tree.paths(words)  # (B, L) each; shorter paths are filled up, real is 0 there
        scores = (self.nodes(nodes) @ h.unsqueeze(2)).squeeze(2)  # (B, L)
        # A branch of 1 has probability σ(score), a branch of 0 has σ(−score): that is a logistic loss at each node.
        at_nodes = F.binary_cross_entropy_with_logits(scores, branches, weight=real, reduction="none")
        return at_nodes.sum(axis=1)


def show_tree(tree: HuffmanTree, corpus: Corpus) -> None:
    """The paths of the most and the least frequent words, from the root down."""
    vocabulary = corpus.vocabulary
    for word in [*vocabulary.tokens[:3], vocabulary.tokens[-1]]:
        _, branches, real = tree.paths(np.array([vocabulary[word]]))
        path = "".join(str(int(branch)) for branch in branches[0][real[0] > 0][::-1])
        print(f"  {word:>12} ({vocabulary.counts[vocabulary[word]]:,} times): {path}")
    _, _, real = tree.paths(np.arange(len(vocabulary)))
    shares = vocabulary.counts / vocabulary.counts.sum()
    mean, entropy = (real.sum(axis=1) * shares).sum(), -(shares * np.log2(shares)).sum()
    print(
        f"  {mean:.2f} decisions a word on average; the entropy of the words, {entropy:.2f} bits, is the least possible"
    )


def show_sum(tree: HuffmanTree, dim: int, seed: int) -> None:
    """For any node vectors and any h, the probabilities of all words sum to 1."""
    layer = HierarchicalSoftmax(tree, dim)
    nn.init.normal_(layer.nodes.weight)
    words = np.arange(tree.inner + 1)
    h = np.random.default_rng(seed).standard_normal(dim).astype(np.float32)
    with no_grad():
        losses = layer(Tensor(np.tile(h, (len(words), 1))), words)
    print(f"  random vectors: the probabilities of all {len(words):,} words sum to {np.exp(-losses.numpy()).sum():.6f}")


def compare(corpus: Corpus, options: argparse.Namespace) -> None:
    """The package's models on the same words: seconds an epoch, and the loss of a prediction in the last one."""
    print(f"\n{'model':>10}{'loss':>14}{'s/epoch':>10}{'last loss':>11}")
    for loss in ("softmax", "hierarchical", "negatives"):
        for model in ("cbow", "skipgram"):
            trainer = Word2Vec(
                model, loss, dim=options.dim, window=options.window, sample=0, epochs=options.epochs, seed=options.seed
            )
            start = time.perf_counter()
            trainer.train(corpus, progress=False)
            seconds = (time.perf_counter() - start) / options.epochs
            print(f"{model:>10}{loss:>14}{seconds:>10.2f}{trainer.losses[-1]:>11.4f}", flush=True)
    guess = (1 + trainer.negatives) * np.log(2)
    print(f"The losses of the first two are −log P(word); a guess by frequency alone has {_entropy(corpus):.4f}.")
    print(f"Negative sampling's is of a word and its noise words, {guess:.4f} for a guess.")


def _entropy(corpus: Corpus) -> float:
    shares = corpus.vocabulary.counts / corpus.vocabulary.counts.sum()
    return float(-(shares * np.log(shares)).sum())


def main() -> None:
    options = parse_options()
    corpus = Corpus.build(options.corpus or embedded_text(), max_size=options.max_vocab).beginning(options.most)
    print(f"{len(corpus.ids):,} words of a vocabulary of {len(corpus.vocabulary):,}")
    tree = HuffmanTree(corpus.vocabulary.counts)
    show_tree(tree, corpus)
    show_sum(tree, options.dim, options.seed)
    compare(corpus, options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--corpus", help="a text file, one sentence a line, words between spaces; else the embedded text"
    )
    parser.add_argument("--most", type=int, default=60_000, help="words of the text that are used")
    parser.add_argument(
        "--max-vocab", type=int, default=3000, help="the most frequent words, of which the others vanish"
    )
    parser.add_argument("--dim", type=int, default=64, help="numbers in a vector")
    parser.add_argument("--window", type=int, default=3, help="contexts on each side")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the text")
    parser.add_argument("--seed", type=int, default=1, help="of everything random: the same seed, the same vectors")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, LookupError) as error:
        sys.exit(f"hierarchical_softmax.py: {str(error).strip(chr(34))}")
