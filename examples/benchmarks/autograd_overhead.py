"""What an operation costs, beside PyTorch (one thread) and HIPS autograd, in one run.

The chain x = tanh(x * b + a), 20 times, summed: 61 operations forward and backward, float32. On 1×1
nearly all of the time is the framework's own.

    pip install metagrad[bench]
    python examples/benchmarks/autograd_overhead.py
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # read when NumPy is imported

import numpy as np  # noqa: E402

from metagrad import Tensor  # noqa: E402

LENGTH = 20


def metagrad_chain(a: np.ndarray, b: np.ndarray) -> Callable[[], None]:
    first, factor = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)

    def step() -> None:
        x = first
        for _ in range(LENGTH):
            x = (x * factor + first).tanh()
        x.sum().backward()
        first.grad = factor.grad = None

    return step


def torch_chain(a: np.ndarray, b: np.ndarray) -> Callable[[], None]:
    import torch

    torch.set_num_threads(1)
    first, factor = (torch.tensor(x, requires_grad=True) for x in (a, b))

    def step() -> None:
        x = first
        for _ in range(LENGTH):
            x = torch.tanh(x * factor + first)
        x.sum().backward()
        first.grad = factor.grad = None

    return step


def hips_chain(a: np.ndarray, b: np.ndarray) -> Callable[[], None]:
    import autograd
    import autograd.numpy as anp

    def chain(first, factor):
        x = first
        for _ in range(LENGTH):
            x = anp.tanh(x * factor + first)
        return anp.sum(x)

    gradient = autograd.grad(chain, (0, 1))
    return lambda: gradient(a, b)


def numpy_forward(a: np.ndarray, b: np.ndarray) -> Callable[[], None]:
    """The forward kernels alone: what no framework can save."""

    def step() -> None:
        x = a
        for _ in range(LENGTH):
            x = np.tanh(x * b + a)
        x.sum()

    return step


def in_turn(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """The median microseconds of each step; they take turns, so that noise meets all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) * 1e6 for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=400, help="runs of each, the median counts")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 8, 32, 64], help="n of n×n")
    options = parser.parse_args()

    makers = {
        "metagrad": metagrad_chain,
        "PyTorch": torch_chain,
        "HIPS autograd": hips_chain,
        "NumPy forward": numpy_forward,
    }
    rng = np.random.default_rng(0)
    missing = set()
    print(f"{'size':>7}" + "".join(f"{name + ' µs':>18}" for name in makers) + f"{'of PyTorch':>13}{'of HIPS':>10}")
    for n in options.sizes:
        # factors near 1 keep the gradients of 20 steps away from denormal numbers, which are slow everywhere
        a, b = (rng.uniform(0.5, 1.0, (n, n)).astype(np.float32) for _ in range(2))
        steps = {}
        for name, make in makers.items():
            try:
                steps[name] = make(a, b)
            except ImportError:
                missing.add(name)
        times = in_turn(steps, options.rounds)
        row = "".join(f"{times[name]:18.0f}" if name in times else f"{'-':>18}" for name in makers)
        for peer, width in (("PyTorch", 13), ("HIPS autograd", 10)):
            row += f"{times['metagrad'] / times[peer]:{width}.2f}" if peer in times else f"{'-':>{width}}"
        print(f"{n:>3}×{n:<3}" + row)
    if missing:
        print(f"not installed, so not measured: {', '.join(sorted(missing))} (pip install metagrad[bench])")


if __name__ == "__main__":
    main()
