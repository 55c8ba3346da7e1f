"""What autograd adds to a training step: the SGNS model of examples/sgns.py beside the same step by hand.

Both read the same rows, compute loss and gradients, and add into the tables with the same function; the
hand-written one has the derivatives worked out on paper. The batches are random, with Zipf's word counts.

    python examples/benchmarks/sgns_step.py
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from autograd_overhead import in_turn  # beside this file; it also sets one BLAS thread

from metagrad import Tensor
from metagrad.optim import SGD
from metagrad.scatter import add_rows

sys.path.append(str(Path(__file__).parents[1]))
from sgns import SGNSModel  # noqa: E402


def logsigmoid(x: np.ndarray) -> np.ndarray:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def step_by_hand(w_table, c_table, words, contexts, mask, negatives, lr):
    """Loss of a batch; the tables have moved. words (B,), contexts and mask (B, L), negatives (B, L, K)."""
    B, L, K = negatives.shape
    flat = negatives.reshape(B, L * K)
    w, c, n = (np.take(t, i, axis=0) for t, i in ((w_table, words), (c_table, contexts), (c_table, flat)))
    x = (c @ w[:, :, None])[:, :, 0]  # (B, L)
    y = (n @ w[:, :, None])[:, :, 0]  # (B, L·K)
    mask = mask.astype(np.float32)
    weight = mask / (mask.sum(axis=1, keepdims=True) * B)  # (B, L)
    log_p, log_q = logsigmoid(x), logsigmoid(-y)
    loss = -((log_p + log_q.reshape(B, L, K).sum(axis=2)) * weight).sum()
    dx = np.expm1(log_p) * weight  # σ(x) − 1
    dy = -np.expm1(log_q) * np.repeat(weight, K, axis=1)  # σ(y)
    dw = (dx[:, None, :] @ c + dy[:, None, :] @ n)[:, 0]
    dc, dn = dx[:, :, None] * w[:, None, :], dy[:, :, None] * w[:, None, :]
    for table, ids, grad in ((w_table, words, dw), (c_table, contexts, dc), (c_table, flat, dn)):
        add_rows(table, ids.reshape(-1), grad.reshape(-1, table.shape[1]), -lr)
    return loss


def random_batch(rng: np.random.Generator, V: int, B: int, L: int, K: int) -> tuple[np.ndarray, ...]:
    frequency = 1 / np.arange(1, V)
    frequency /= frequency.sum()
    words, contexts, negatives = (1 + rng.choice(V - 1, size, p=frequency) for size in ((B,), (B, L), (B, L, K)))
    mask = rng.random((B, L)) < 0.9
    mask[:, 0] = True
    return words, np.where(mask, contexts, 0), mask, negatives


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="runs of each, the median counts")
    parser.add_argument("--vocabulary", type=int, default=20_000)
    parser.add_argument("--window", type=int, default=2)
    parser.add_argument("--negatives", type=int, default=10)
    options = parser.parse_args()

    V, L, K = options.vocabulary, 2 * options.window, options.negatives
    print(f"{'dim':>5}{'batch':>8}{'metagrad ms':>14}{'by hand ms':>13}{'ratio':>8}{'loss apart':>13}")
    for dim, B in ((64, 128), (64, 1024), (64, 10240), (100, 1024)):
        rng = np.random.default_rng(0)
        batch = random_batch(rng, V, B, L, K)
        model = SGNSModel(V, dim, padding_idx=0)
        tables = [model.w_embeddings.weight.numpy().copy(), model.c_embeddings.weight.numpy().copy()]
        optimizer = SGD(model.parameters(), lr=1.0)
        losses: dict[str, float] = {}

        def with_autograd(model=model, optimizer=optimizer, batch=batch, losses=losses) -> None:
            loss = model(*(Tensor(array) for array in batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses["metagrad"] = loss.item()

        def by_hand(tables=tables, batch=batch, losses=losses) -> None:
            losses["by hand"] = float(step_by_hand(*tables, *batch, lr=1.0))

        times = in_turn({"metagrad": with_autograd, "by hand": by_hand}, options.rounds)
        ours, theirs = times["metagrad"] / 1e3, times["by hand"] / 1e3
        apart = abs(losses["metagrad"] - losses["by hand"])
        print(f"{dim:5}{B:8}{ours:14.2f}{theirs:13.2f}{ours / theirs:8.2f}{apart:13.1e}")


if __name__ == "__main__":
    main()
