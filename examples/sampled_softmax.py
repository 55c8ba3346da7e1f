"""Skip-gram with a sampled softmax, in the form that accelerators like, on one process or many.

Of each pair (target word, context word), the context is to win against K noise words (Jean et al. 2015, after
TensorFlow's tutorial): with C = 1 + K candidates, the true one first,

    scores = einsum("be,bce->bc", target, candidates)          loss = cross-entropy of scores with label 0

Batches are powers of two, windows and noise are made by whole-array code, and a thread makes them ahead of time, so
that the model need not wait; how long it does is printed. Data-parallel: every rank works on its share of each batch
and divides its loss by the size of the *whole* batch, so that the ranks' gradients add up to that of one process.

    python examples/sampled_softmax.py                      # English about programming, which every Python carries
    mpiexec -n 2 python examples/sampled_softmax.py         # the same on two ranks; needs metagrad[mpi]
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import metagrad
from metagrad import Tensor, cuda, distributed, nn
from metagrad import functional as F
from metagrad.data import DataLoader, Dataset
from metagrad.files import check_target
from metagrad.optim import Adam
from metagrad.word2vec import (
    Corpus,
    NoiseSampler,
    WordVectors,
    embedded_text,
    keep_probability,
    noise_distribution,
    subsample,
    windows,
)


class Pairs(Dataset):
    """All (target, context) pairs of a text, made once; noise words are drawn for each batch."""

    def __init__(self, corpus: Corpus, window: int, k: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        keep = keep_probability(corpus.vocabulary.counts, 1e-3)
        ids, offsets = subsample(corpus.ids, corpus.offsets, keep, rng)
        contexts, mask = windows(ids, offsets, window, rng)
        self.targets, self.contexts = np.repeat(ids, mask.sum(axis=1)), contexts[mask]  # (N,) each
        self.noise = NoiseSampler(noise_distribution(corpus.vocabulary.counts), rng)
        self.k = k

    def __len__(self) -> int:
        return len(self.targets)

    def __getitems__(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """targets (B,), candidates (B, 1 + K), the context first: of a batch, this rank's share.

        Every rank draws the noise of the whole batch, from the same stream, so that their batches together are those
        of one process.
        """
        contexts = self.contexts[indices][:, None]
        candidates = np.concatenate([contexts, self.noise.draw_excluding(contexts, self.k)], axis=1)
        return distributed.share(self.targets[indices]), distributed.share(candidates)


class SampledSoftmax(nn.Module):
    def __init__(self, vocab_size: int, dim: int, dtype: str = "float32") -> None:
        self.targets = nn.Embedding(vocab_size, dim, dtype=dtype)
        self.contexts = nn.Embedding(vocab_size, dim, dtype=dtype)
        for table in self.parameters():
            nn.init.uniform_(table, -0.5 / dim, 0.5 / dim)

    def forward(self, targets: Tensor, candidates: Tensor, whole: int) -> Tensor:
        """The sum of the losses of these pairs over the number of pairs in the whole batch."""
        scores = F.einsum("be,bce->bc", self.targets(targets), self.contexts(candidates))
        labels = Tensor.zeros(len(targets), dtype=np.int64, device=scores.device)
        return F.cross_entropy(scores, labels, reduction="sum") / whole


def train(model: SampledSoftmax, loader: DataLoader, options: argparse.Namespace, device: cuda.Device) -> None:
    optimizer = distributed.DistributedOptimizer(Adam(model.parameters(), lr=options.lr))
    for epoch in range(options.epochs):
        losses, waited, start = [], 0.0, time.perf_counter()
        batches = iter(distributed.progress(loader, desc=f"epoch {epoch + 1}", leave=False))
        for _ in range(len(loader)):
            asked = time.perf_counter()
            targets, candidates = next(batches)
            waited += time.perf_counter() - asked
            loss = model(Tensor(targets, device=device), Tensor(candidates, device=device), options.batch_size)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seconds = time.perf_counter() - start
        loss = distributed.mean(np.mean(losses)) * distributed.size()  # each rank has its share of the sum
        distributed.log(
            f"epoch {epoch + 1:2}  loss {loss:.4f}  {len(loader) * options.batch_size / seconds:,.0f} pairs/s, "
            f"waiting for data {100 * waited / seconds:.1f} % of the time"
        )


def main() -> None:
    options = parse_options()
    if options.output:
        check_target(options.output)  # said now, not after training
    metagrad.manual_seed(options.seed)
    # Launchers number the ranks of a machine one after another, so its GPUs are taken in turn.
    gpus = cuda.device_count()
    device = cuda.get_device(f"cuda:{distributed.rank() % gpus}" if gpus else "cpu")
    corpus = Corpus.build(options.corpus or embedded_text(), min_count=options.min_count)
    vocabulary = corpus.vocabulary
    pairs = Pairs(corpus, options.window, options.negatives, options.seed)
    distributed.log(
        f"{len(corpus.ids):,} words, {len(vocabulary):,} different, {len(pairs):,} pairs; "
        f"{distributed.size()} rank(s) on {device.kind}"
    )
    if len(pairs) < options.batch_size:
        raise ValueError(
            f"the text has {len(pairs):,} pairs, less than a batch: give more text or a smaller --batch-size"
        )
    loader = DataLoader(
        pairs, options.batch_size, shuffle=True, drop_last=True, generator=options.seed, prefetch=options.prefetch
    )
    model = SampledSoftmax(len(vocabulary), options.dim, options.dtype).to(device)
    distributed.broadcast(model)
    train(model, loader, options, device)

    if distributed.is_main():
        vectors = WordVectors(vocabulary.tokens, model.targets.weight, vocabulary.counts)
        if options.output:
            vectors.save(options.output)
        for word in [w for w in options.words if w in vocabulary]:
            nearest = vectors.most_similar(word, topn=6)
            print(f"{word}: " + "  ".join(f"{other} {cosine:.2f}" for other, cosine in nearest))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--corpus", help="a text file, one sentence a line, words between spaces; else the embedded text"
    )
    parser.add_argument("--dim", type=int, default=128, help="numbers in a vector")
    parser.add_argument("--window", type=int, default=3, help="the largest radius")
    parser.add_argument("--negatives", type=int, default=5, help="noise words for each pair (K)")
    parser.add_argument("--batch-size", type=int, default=2048, help="pairs in a batch of all ranks, a power of two")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the text (published: 20)")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32", help="of the tables")
    parser.add_argument("--lr", type=float, default=1e-3, help="Adam's step size")
    parser.add_argument("--min-count", type=int, default=5, help="rarer words are dropped")
    parser.add_argument("--prefetch", type=int, default=4, help="batches made ahead of time")
    parser.add_argument(
        "--words", nargs="+", default=["list", "error", "int", "first"], help="whose neighbours to print"
    )
    parser.add_argument("--output", help="file for the vectors (.vec, .bin, .npz)")
    parser.add_argument("--seed", type=int, default=1, help="of everything random: the same seed, the same vectors")
    options = parser.parse_args()
    if options.batch_size < 1 or options.batch_size & (options.batch_size - 1):
        parser.error(f"--batch-size: {options.batch_size} is no power of two")
    return options


if __name__ == "__main__":
    with distributed.session():
        try:
            main()
        except (OSError, ValueError, LookupError) as error:
            sys.exit(f"sampled_softmax.py: {str(error).strip(chr(34))}")
