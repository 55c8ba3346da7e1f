"""A worker process: `python -m metagrad.word2vec.worker FOLDER PART PARTS`, started by trainer.py.

Several of them train on the same tables without locks (Hogwild, Niu et al. 2011): the folder holds the tables
and the text as files mapped into memory, so what one writes all see. The parent says "epoch N" on standard
input; the worker answers "done", or "error MESSAGE", on standard output.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .blocks import BlockCutter
from .models import SGNS
from .sampling import NoiseSampler
from .training import counted, run


def open_tables(folder: Path, mode: Any = "r+") -> dict[str, np.ndarray]:
    """The arrays that all workers share, mapped into memory."""
    names = ("input", "output", "progress")
    return {name: np.load(folder / f"{name}.npy", mmap_mode=mode) for name in names}


def share(model: SGNS, tables: dict[str, np.ndarray]) -> None:
    """Let the model work on shared memory instead of its own."""
    for name in ("input", "output"):
        getattr(model, name).weight.use_memory(tables[name].view(np.ndarray))


def main(folder: Path, part: int, parts: int) -> None:
    tables = open_tables(folder)
    progress = tables["progress"]  # (parts, 3): words, pairs and loss of each worker
    options = json.loads((folder / "options.json").read_text())
    fixed = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("ids", "offsets", "keep", "noise")}
    cutter = BlockCutter(NoiseSampler(fixed["noise"]), fixed["keep"].view(np.ndarray), **options["cutter"])
    model = SGNS(1, 1)
    share(model, tables)
    total, lr, least = options["total"], options["lr"], options["min_lr"]

    def rate() -> float:
        return max(lr * (1 - progress[:, 0].sum() / total), least)

    for line in sys.stdin:
        epoch = int(line.split()[1])
        generator = np.random.default_rng([options["seed"], epoch, part])
        steps = cutter.steps(fixed["ids"], fixed["offsets"], generator, part, parts)
        try:
            for step in run(model, counted(steps), rate):
                progress[part] += step
            print("done", flush=True)
        except FloatingPointError as error:
            print(f"error {error}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
