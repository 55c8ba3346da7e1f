"""Peak memory of a deep network's forward and backward: metagrad and PyTorch, each in a process of its own.

Measured is how far the process's resident memory rises above what it was with libraries, model and input in place (the
kernel's VmHWM, reset before the step): what the step takes, whoever allocates it, holes in the heap included. Linux
with glibc. Beside it what cannot be avoided: the input of each layer, kept for its gradient, or, as these go while
those come, the gradients, whichever is more.

    pip install metagrad[bench]
    python examples/benchmarks/memory.py
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np


def step_of_metagrad(layers: int, width: int, batch: int):
    from metagrad import Tensor, nn

    model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)])
    x = Tensor(np.ones((batch, width), np.float32))
    return lambda: model(x).sum().backward()


def step_of_torch(layers: int, width: int, batch: int):
    import torch

    torch.set_num_threads(1)
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    model = torch.nn.Sequential(*[torch.nn.Sequential(linear(width, width), relu()) for _ in range(layers)])
    x = torch.ones(batch, width)
    return lambda: model(x).sum().backward()


STEPS = {"metagrad": step_of_metagrad, "PyTorch": step_of_torch}


def memory(name: str) -> float:
    """A line of /proc/self/status, in MB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def child(library: str, layers: int, width: int, batch: int) -> None:
    STEPS[library](2, 8, 4)()  # what libraries set up at a first step
    step = STEPS[library](layers, width, batch)
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # free memory goes back, so that none is there to be used again unseen
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = memory("VmRSS")
    step()
    print(memory("VmHWM") - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=100)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], *map(int, options.child[1:]))
        return
    print(f"{options.layers} layers of {options.width}; MB, the median of {options.rounds}")
    print(f"{'batch':>6}{'metagrad':>10}{'PyTorch':>10}{'ratio':>7}{'least':>8}")
    for batch in options.batches:
        found = {}
        for library in STEPS:
            command = [sys.executable, __file__, "--child", library, *map(str, (options.layers, options.width, batch))]
            runs = [subprocess.run(command, capture_output=True, text=True) for _ in range(options.rounds)]
            if any(run.returncode for run in runs):
                sys.exit(f"{library}: not measured: {runs[0].stderr.strip().splitlines()[-1]}")
            found[library] = np.median([float(run.stdout) for run in runs])
        least = 4 / 2**20 * options.layers * options.width * max(batch, options.width + 1)
        ours, theirs = found["metagrad"], found["PyTorch"]
        print(f"{batch:>6}{ours:>10.1f}{theirs:>10.1f}{ours / theirs:>7.2f}{least:>8.1f}")


if __name__ == "__main__":
    main()
