"""How data-parallel training of examples/sampled_softmax.py would grow with the number of ranks, and where it stops.

Measured here, one BLAS thread a rank: the time of a step for several batch sizes, that of its update apart, the bytes
of its gradients, and the throughput of 1, 2, … ranks of this machine. Computed from these, for p ranks of b pairs each
on a network of given latency and bandwidth:

    step(b, p) = compute(b) + update of min(p · rows(b), V) rows of each table + messages · latency + bytes / bandwidth

The times of compute and update lie on lines between the measured points, and rows is the expected number of different
words; every rank updates the rows of all. Messages and bytes are those of metagrad.distributed: rows are gathered in a
ring, p − 1 messages of what each has, until together they would be more than the table, which is then reduced:
2 (p − 1) / p times its size.

    python examples/benchmarks/scaling.py --latency 20 --bandwidth 1.25      # µs, and GB/s of a 10-Gbit network
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metagrad import Rows, Tensor, distributed
from metagrad.optim import Adam

sys.path.insert(0, str(Path(__file__).parents[1]))
from sampled_softmax import SampledSoftmax  # noqa: E402  (the examples are no package)

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
V, DIM, K = 50_000, 128, 5
BATCHES, RANKS = (1024, 4096, 16384), (1, 2, 4, 8, 16, 32, 64, 128)
INDEX, VALUES = 8, 4 * DIM  # bytes of a row
SHARES = 1 / (np.arange(V) + 2.7)  # of the words, by Zipf's law, as in a text
SHARES /= SHARES.sum()


def batches(batch: int, n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    shapes = [(batch,), (batch, 1 + K)]
    return [tuple(rng.choice(V, shape, p=SHARES).astype(np.int32) for shape in shapes) for _ in range(n)]


class Step(NamedTuple):
    """Medians of a step: its seconds, those of the update in it; and the distinct rows of both tables' gradients."""

    seconds: float
    update: float
    rows: float


def timed_steps(batch: int, steps: int = 20) -> Step:
    """Of all ranks together, each with `batch` pairs a step."""
    model = SampledSoftmax(V, DIM)
    distributed.broadcast(model)
    optimizer = Adam(model.parameters())
    found = []
    for targets, candidates in batches(batch, steps, distributed.rank()):
        start = time.perf_counter()
        optimizer.zero_grad()
        model(Tensor(targets), Tensor(candidates), batch * distributed.size()).backward()
        rows = sum(len(p.grad.coalesce().index) for p in model.parameters() if isinstance(p.grad, Rows))
        distributed.add_up(list(model.parameters()))
        added = time.perf_counter()
        optimizer.step()
        done = time.perf_counter()
        found.append((done - start, done - added, rows))
    return Step(*(distributed.mean(float(value)) for value in np.median(found, axis=0)))


def measured(batch: int, ranks: int) -> Step:
    launcher = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks)] if ranks > 1 else []
    command = [*launcher, sys.executable, __file__, "--child", str(batch)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **THREADS}, check=True)
    return Step(*json.loads(done.stdout.strip().splitlines()[-1]))


class Network(NamedTuple):
    latency: float  # seconds a message
    bandwidth: float  # bytes a second

    def exchange(self, pairs: float, ranks: int) -> float:
        """Seconds to add up the gradients of both tables."""
        rounds = math.ceil(math.log2(ranks))
        messages, sent = float(rounds), 0.0  # who has what
        for rows in distinct_rows(pairs):
            if ranks * rows <= V:
                messages += 2 * (ranks - 1)
                sent += (ranks - 1) * rows * (INDEX + VALUES)
            else:
                messages += 2 * rounds + ranks - 1
                sent += 2 * (ranks - 1) / ranks * V * VALUES + (ranks - 1) * rows * INDEX
        return messages * self.latency + sent / self.bandwidth


def distinct_rows(pairs: float) -> list[float]:
    """The expected number of different words among the targets, and among the candidates, of so many pairs."""
    return [float(-np.expm1(draws * np.log1p(-SHARES)).sum()) for draws in (pairs, pairs * (1 + K))]


class Machine:
    """A rank, from the steps measured alone, by batch size."""

    def __init__(self, alone: dict[int, Step]) -> None:
        self.compute = {float(batch): step.seconds - step.update for batch, step in alone.items()}
        self.update = {step.rows: step.update for step in alone.values()}

    def step(self, pairs: float, ranks: int, network: Network) -> float:
        """Seconds of a step in which each rank has so many pairs."""
        updated = sum(min(ranks * rows, V) for rows in distinct_rows(pairs))
        return between(self.compute, pairs) + between(self.update, updated) + network.exchange(pairs, ranks)


def between(measured: dict[float, float], x: float) -> float:
    """y at x, on the lines from (0, 0) through the measured points, and beyond the last in proportion to it."""
    last = max(measured)
    return float(np.interp(x, [0, *measured], [0, *measured.values()])) * max(x / last, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--latency", type=float, default=20.0, help="of a message, µs (default: 20)")
    parser.add_argument("--bandwidth", type=float, default=1.25, help="of a rank's link, GB/s (default: 1.25)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2], help="to measure on this machine, besides 1")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        with distributed.session():
            distributed.log(json.dumps(timed_steps(options.child)))
        return
    print(f"measured here: vocabulary {V:,}, dimension {DIM}, {K} noise words; each rank has the batch")
    print(f"{'batch':>8}{'ranks':>7}{'ms/step':>10}{'of it update':>14}{'MB/rank':>9}{'pairs/s':>12}{'efficiency':>12}")
    alone: dict[int, Step] = {}
    for batch in BATCHES:
        for ranks in sorted({1, *options.ranks}):
            found = measured(batch, ranks)
            share = alone.setdefault(batch, found).seconds / found.seconds
            print(
                f"{batch:>8,}{ranks:>7}{1e3 * found.seconds:>10.1f}{1e3 * found.update:>14.1f}"
                f"{found.rows * (INDEX + VALUES) / 1e6:>9.2f}{ranks * batch / found.seconds:>12,.0f}{share:>12.2f}",
                flush=True,
            )

    machine, network = Machine(alone), Network(options.latency * 1e-6, options.bandwidth * 1e9)
    print(f"\ncomputed for {options.latency:g} µs and {options.bandwidth:g} GB/s: thousand pairs/s (efficiency)")
    for title, pairs_of in (("each rank has", lambda whole, p: whole), ("all share", lambda whole, p: whole / p)):
        print(f"{'ranks':>8}" + "".join(f"{f'{title} {batch:,}':>24}" for batch in BATCHES))
        best = dict.fromkeys(BATCHES, (0.0, 1))
        for ranks in RANKS:
            cells = []
            for batch in BATCHES:
                pairs = pairs_of(batch, ranks)
                rate = ranks * pairs / machine.step(pairs, ranks, network)
                best[batch] = max(best[batch], (rate, ranks))
                share = rate / ranks / (batch / machine.step(batch, 1, network))
                cells.append(f"{rate / 1e3:,.0f} ({share:.2f})")
            print(f"{ranks:>8}" + "".join(f"{cell:>24}" for cell in cells))
        print("  most at" + "".join(f"{ranks:>18} ranks" for _, ranks in best.values()) + "\n")


if __name__ == "__main__":
    main()
