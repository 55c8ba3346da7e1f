"""A worker process: main() with the arguments FOLDER PART PARTS, started by trainer.py.

Several of them train on the same tables without locks (Hogwild, Niu et al. 2011): the folder holds the tables
and the text as files mapped into memory, so what one writes all see. The parent says "epoch N" on standard
input; the worker answers "done", or "error MESSAGE", on standard output.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .blocks import BlockCutter
from .models import make_model
from .sampling import NoiseSampler
from .training import Schedule, counted, run


def open_tables(folder: Path, mode: Any = "r+") -> dict[str, np.ndarray]:
    """The arrays that all workers share, mapped into memory."""
    names = ("input", "output", "progress")
    return {name: np.load(folder / f"{name}.npy", mmap_mode=mode) for name in names}


def share(model: Any, tables: dict[str, np.ndarray]) -> None:
    """Let the model work on shared memory instead of its own."""
    for name in ("input", "output"):
        getattr(model, name).weight.use_memory(tables[name].view(np.ndarray))


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    folder, part, parts = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    tables = open_tables(folder)
    progress = tables["progress"]  # (parts, 3): words, predictions and loss of each worker
    options = json.loads((folder / "options.json").read_text())
    places = {"ids": Path(options["text"]), "offsets": Path(options["text"])}
    names = ("ids", "offsets", "keep", "noise", "counts")
    fixed = {name: np.load(places.get(name, folder) / f"{name}.npy", mmap_mode="r").view(np.ndarray) for name in names}
    cutter = BlockCutter(NoiseSampler(fixed["noise"]), fixed["keep"], **options["cutter"])
    model, loss, dim = options["model"]
    trained = make_model(model, loss, fixed["counts"], dim)
    share(trained, tables)
    schedule = Schedule(**options["schedule"])

    def rate() -> float:
        return schedule.rate(progress[:, 0].sum())

    def sizes() -> tuple[int, int]:
        return schedule.sizes(progress[:, 0].sum())

    for line in sys.stdin:
        epoch = int(line.split()[1])
        generator = np.random.default_rng([options["seed"], epoch, part])
        steps = cutter.steps(fixed["ids"], fixed["offsets"], generator, sizes, part, parts)
        try:
            for step in run(trained, counted(steps, cutter.predicts), rate):
                progress[part] += step
            print("done", flush=True)
        except FloatingPointError as error:
            print(f"error {error}", flush=True)
