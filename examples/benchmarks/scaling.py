"""How data-parallel training of examples/sampled_softmax.py would grow with the number of ranks, and where it stops.

Measured here: the time of a step for several batch sizes, that of its update apart, the bytes of its gradients, and
the throughput of 1, 2, … ranks of this machine, one BLAS thread each. Computed from these: for p ranks with a batch of
B each on a network of given latency and bandwidth,

    step(p) = compute + update · rows(p) / rows(1) + latency · ceil(log2 p) · messages + bytes(p) / bandwidth

Every rank updates the rows of all ranks, p times its own until that is the whole table. Rows are gathered, so that a
rank receives those of all others, until a table is less; a table is reduced in a ring, which moves 2 (p − 1) / p
times its size, whatever p is. Throughput is p B / step(p).

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
V, DIM, K = 50_000, 128, 5  # words by Zipf's law, as in a text


def batches(batch: int, n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    p = 1 / (np.arange(V) + 2.7)
    draw = lambda shape: rng.choice(V, shape, p=p / p.sum()).astype(np.int32)  # noqa: E731
    return [(draw(batch), draw((batch, 1 + K))) for _ in range(n)]


class Step(NamedTuple):
    """Medians of a step: its seconds, those of the update in it; and the distinct rows of both tables' gradients."""

    seconds: float
    update: float
    rows: float

    @property
    def bytes(self) -> float:
        return self.rows * (8 + 4 * DIM)


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


def predicted(one: Step, ranks: int, latency: float, bandwidth: float) -> float:
    """Seconds a step."""
    tables, messages = 2 * V * DIM * 4, 5  # who has what, then index and values of each of two tables
    sent = min((ranks - 1) * one.bytes, 2 * (ranks - 1) / ranks * tables)
    update = one.update * min(ranks, 2 * V / one.rows)
    return one.seconds - one.update + update + messages * latency * math.ceil(math.log2(ranks)) + sent / bandwidth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--latency", type=float, default=20.0, help="of a message, µs (default: 20)")
    parser.add_argument("--bandwidth", type=float, default=1.25, help="of a rank's link, GB/s (default: 1.25)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2], help="to measure on this machine")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        with distributed.session():
            distributed.log(json.dumps(timed_steps(options.child)))
        return
    latency, bandwidth = options.latency * 1e-6, options.bandwidth * 1e9

    print(f"measured here: vocabulary {V:,}, dimension {DIM}, {K} noise words; each rank has the batch")
    print(f"{'batch':>8}{'ranks':>7}{'ms/step':>10}{'of it update':>14}{'MB/rank':>9}{'pairs/s':>12}{'efficiency':>12}")
    alone: dict[int, Step] = {}
    for batch in (1024, 4096, 16384):
        for ranks in options.ranks:
            found = measured(batch, ranks)
            share = alone.setdefault(batch, found).seconds / found.seconds
            print(
                f"{batch:>8,}{ranks:>7}{1e3 * found.seconds:>10.1f}{1e3 * found.update:>14.1f}{found.bytes / 1e6:>9.2f}"
                f"{ranks * batch / found.seconds:>12,.0f}{share:>12.2f}",
                flush=True,
            )
    print(f"\ncomputed for {options.latency:g} µs and {options.bandwidth:g} GB/s: thousand pairs/s (efficiency)")
    print(f"{'ranks':>8}" + "".join(f"{f'batch {batch:,}':>18}" for batch in alone))
    for ranks in (1, 2, 4, 8, 16, 32, 64, 128):
        steps = {batch: predicted(one, ranks, latency, bandwidth) for batch, one in alone.items()}
        cells = (f"{ranks * batch / s / 1e3:,.0f} ({alone[batch].seconds / s:.2f})" for batch, s in steps.items())
        print(f"{ranks:>8}" + "".join(f"{cell:>18}" for cell in cells))
    for batch, one in alone.items():
        limit = batch / (one.update + one.bytes / bandwidth) / 1e3
        print(f"batch {batch:,}: while each rank's rows are new to the others, at most {limit:,.0f} thousand pairs/s")


if __name__ == "__main__":
    main()
