"""A step of examples/masked_skipgram.py beside the same step in PyTorch: same start, same batches, one thread each.

The published recipe has Adam move both whole tables at every step; with sparse gradients it moves only the rows that
a batch read. Both ways, in both libraries, which take turns batch by batch. Words are centres; making the batches is
not part of the time. "apart" is the largest difference to PyTorch's loss on any batch: rounding for whole tables; for
rows, PyTorch's SparseAdam adds its eps before it corrects for the start at 0, so that the first steps differ.

    pip install metagrad[bench]
    python examples/benchmarks/masked_skipgram.py --corpus ptb     # or a file in its format; else the embedded text
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # read when NumPy is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402

import metagrad  # noqa: E402
from metagrad import Tensor  # noqa: E402
from metagrad.data import DataLoader  # noqa: E402
from metagrad.optim import Adam  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1]))
import masked_skipgram as recipe  # noqa: E402  the example, not this file, whose folder now comes second

Step = Callable[[recipe.Batch], float]


def metagrad_step(start: list[np.ndarray], lr: float, sparse: bool) -> Step:
    model = recipe.MaskedSkipGram(*start[0].shape, sparse=sparse)
    model.load_state_dict({"centres.weight": start[0], "contexts.weight": start[1]})
    optimizer = Adam(model.parameters(), lr=lr)

    def step(batch: recipe.Batch) -> float:
        loss = model(*map(Tensor, batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def torch_step(start: list[np.ndarray], lr: float, sparse: bool) -> Step:
    tables = [torch.nn.Embedding(*table.shape, sparse=sparse) for table in start]
    for table, values in zip(tables, start):
        table.weight.data.copy_(torch.from_numpy(values))
    optimizer = (torch.optim.SparseAdam if sparse else torch.optim.Adam)([table.weight for table in tables], lr=lr)

    def step(batch: recipe.Batch) -> float:
        centres, contexts_negatives, masks, labels = map(torch.from_numpy, batch)
        scores = torch.bmm(tables[0](centres), tables[1](contexts_negatives).permute(0, 2, 1)).squeeze(1)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels, weight=masks, reduction="none")
        loss = (losses.mean(dim=1) * masks.shape[1] / masks.sum(dim=1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", help="a file in the Penn Treebank's format, or its name; else the embedded text")
    parser.add_argument("--batches", type=int, default=200, help="steps of each; the median counts")
    options = parser.parse_args()
    torch.set_num_threads(1)

    corpus = recipe.read_corpus(options.corpus, min_freq=10)
    rng = np.random.default_rng(0)
    drawn = recipe.centres_and_contexts(recipe.thin_out(corpus, 1e-4, rng), 5, rng)
    dataset = recipe.MaskedDataset(*drawn, 5, recipe.CachedNoise(corpus.vocabulary, seed=0))
    batches = list(itertools.islice(DataLoader(dataset, 512, shuffle=True, generator=0), options.batches))
    width = np.mean([batch.masks.shape[1] for batch in batches])
    print(f"{len(corpus.vocabulary):,} words, dimension 100, {len(batches)} batches of 512 rows, {width:.0f} wide")

    metagrad.manual_seed(0)
    start = [p.numpy().copy() for p in recipe.MaskedSkipGram(len(corpus.vocabulary), 100).parameters()]
    steps = {
        (library, tables): make(start, 0.002, sparse=tables == "rows read")
        for tables in ("whole tables", "rows read")
        for library, make in (("metagrad", metagrad_step), ("PyTorch", torch_step))
    }
    times: dict[tuple[str, str], list[float]] = {key: [] for key in steps}
    losses: dict[tuple[str, str], list[float]] = {key: [] for key in steps}
    for batch in batches:
        for key, step in steps.items():
            began = time.perf_counter()
            losses[key].append(step(batch))
            times[key].append(time.perf_counter() - began)

    print(f"{'Adam moves':>14}{'library':>10}{'words/s':>10}{'ms':>8}{'of PyTorch':>12}{'loss':>9}{'apart':>10}")
    for (library, tables), taken in times.items():
        peer = ("PyTorch", tables)
        seconds, ratio = np.median(taken), np.median(taken) / np.median(times[peer])
        loss = np.mean(losses[library, tables][-20:])
        apart = np.max(np.abs(np.subtract(losses[library, tables], losses[peer])))
        speed = len(batches[0].centres) / seconds
        print(f"{tables:>14}{library:>10}{speed:10,.0f}{1e3 * seconds:8.2f}{ratio:12.2f}{loss:9.4f}{apart:10.0e}")


if __name__ == "__main__":
    main()
