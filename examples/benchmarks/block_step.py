"""A training step on blocks beside the same step with its derivatives worked out by hand, on the same blocks.

By hand means: NumPy only, nothing recorded, no loss computed; rows are added into the tables by the same function,
which is half of the work. Both train tables of their own, in turn; times are medians.

    python examples/benchmarks/block_step.py --corpus text.txt
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import itertools

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from metagrad.optim import SGD
from metagrad.scatter import add_rows
from metagrad.word2vec import Corpus, NoiseSampler, embedded_text, keep_probability, noise_distribution
from metagrad.word2vec.blocks import BlockCutter, Blocks
from metagrad.word2vec.models import SGNS

LR = 0.01


def step_by_hand(W: np.ndarray, C: np.ndarray, blocks: Blocks) -> None:
    """∂loss/∂v = Σ (σ(v·u) − 1) u over contexts + Σ weight σ(v·n) n over noise, and so for u and n."""
    G, n, b, size = blocks.pairs.shape
    v, u, x = W[blocks.centres], C[blocks.contexts], C[blocks.noise]
    by_block, windows = v.reshape(G, n, b, -1), sliding_window_view(u, size, axis=1)[:, ::b]  # (G, n, dim, size)
    true = -LR * blocks.pairs * (np.tanh(by_block @ windows * 0.5) * 0.5 - 0.5)
    false = -LR * blocks.noise_weights * (np.tanh(v @ x.swapaxes(1, 2) * 0.5) * 0.5 + 0.5)
    dv = (true @ windows.swapaxes(2, 3)).reshape(v.shape)
    dv += false @ x
    dwindows, du = true.swapaxes(2, 3) @ by_block, np.zeros_like(u)
    for k in range(n):
        window = du[:, k * b : k * b + size]
        window += dwindows[:, k]
    for table, ids, rows in (
        (W, blocks.centres, dv),
        (C, blocks.contexts, du),
        (C, blocks.noise, false.swapaxes(1, 2) @ v),
    ):
        add_rows(table, ids.reshape(-1), rows.reshape(-1, rows.shape[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", help="a text file, one sentence a line; else the embedded text")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    corpus = Corpus.build(options.corpus or embedded_text(), min_count=5)
    counts = corpus.vocabulary.counts
    keep = keep_probability(counts, 1e-3).astype(np.float32)
    cutter = BlockCutter(NoiseSampler(noise_distribution(counts)), keep)
    print(f"{'centres':>8} {'metagrad µs':>12} {'by hand µs':>12} {'ratio':>7}   {'cutting µs':>10}")
    for centres in (256, 1024, 4096):
        model = SGNS(len(counts), options.dim)
        optimizer = SGD(model.parameters(), lr=LR)
        W, C = model.input.weight.numpy().copy(), model.output.weight.numpy().copy()
        steps = cutter.steps(corpus.ids, corpus.offsets, np.random.default_rng(0), (centres, 64))
        times: dict[str, list[float]] = {"metagrad": [], "hand": [], "cutting": []}
        for round in range(options.rounds):
            start = time.perf_counter()
            some = list(itertools.islice(steps, 20 * 1024 // centres))
            cut = time.perf_counter()
            for blocks in some:
                optimizer.zero_grad()
                model(*blocks).backward()
                optimizer.step()
            trained = time.perf_counter()
            for blocks in some:
                step_by_hand(W, C, blocks)
            done = time.perf_counter()
            if round == 0:  # they are the same step; later, training magnifies roundings
                np.testing.assert_allclose(model.input.weight.numpy(), W, rtol=1e-3, atol=1e-5)
            for name, seconds in zip(times, (trained - cut, done - trained, cut - start)):
                times[name].append(1e6 * seconds / max(len(some), 1))
            if len(some) < 20 * 1024 // centres:  # the text is at its end
                steps = cutter.steps(corpus.ids, corpus.offsets, np.random.default_rng(1), (centres, 64))
        ours, hand, cutting = (np.median(values) for values in times.values())
        print(f"{centres:>8} {ours:>12.0f} {hand:>12.0f} {ours / hand:>7.2f}   {cutting:>10.0f}")


if __name__ == "__main__":
    main()
