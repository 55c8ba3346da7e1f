"""What autograd costs beside PyTorch (one thread), HIPS autograd and JAX, in one run, forward and backward, float32.

    chain n×n      x = tanh(x * b + a), 20 times, and a sum: 61 operations; on 1×1 nearly all of it is the framework
    MLP            784-128-10, a batch of 32, cross-entropy, and a step of SGD
    GRU            a layer of 64 over 50 steps of 16 sequences
    GRU by hand    the same, written in single operations, which is how HIPS autograd and JAX have it
    attention      layer normalisation, then 4 heads, on 4×32×64, and a residual
    embedding      scores of 128 words with 6 others each, logsigmoid; tables 10 000×64, sparse gradients where possible

JAX runs operation by operation, as the others do, and once more compiled (jit), without the time of compiling.

    pip install metagrad[bench]
    python examples/benchmarks/autograd_overhead.py
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # read when NumPy is imported
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np  # noqa: E402

import metagrad  # noqa: E402
from metagrad import Tensor, nn  # noqa: E402
from metagrad import functional as F  # noqa: E402

LENGTH, STEPS, BATCH, HIDDEN, HEADS, LR = 20, 50, 16, 64, 4, 0.01
Step = Callable[[], Any]


def inputs(size: int) -> dict[str, list[np.ndarray]]:
    """The parameters and data of every workload; for each the parameters come first."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32)

    # factors near 1 keep the gradients of 20 steps away from denormal numbers, which are slow everywhere
    chain = [rng.uniform(0.5, 1.0, (size, size)).astype(np.float32) for _ in range(2)]
    gru = [normal(3 * HIDDEN, HIDDEN), normal(3 * HIDDEN, HIDDEN), normal(3 * HIDDEN), normal(3 * HIDDEN)]
    attention = [normal(64) + 1, normal(64), normal(192, 64), normal(192), normal(64, 64), normal(64)]
    mlp = [normal(128, 784), normal(128), normal(10, 128), normal(10)]
    embedding = [normal(10_000, 64), normal(10_000, 64)]
    return {
        "chain": chain,
        "MLP": [*mlp, normal(32, 784), rng.integers(0, 10, 32)],
        "GRU": [*gru, normal(STEPS, BATCH, HIDDEN)],
        "GRU by hand": [*gru, normal(STEPS, BATCH, HIDDEN)],
        "attention": [*attention, normal(4, 32, 64)],
        "embedding": [*embedding, rng.integers(0, 10_000, 128), rng.integers(0, 10_000, (128, 6))],
    }


PARAMETERS = {"chain": 2, "MLP": 4, "GRU": 4, "GRU by hand": 4, "attention": 6, "embedding": 2}

# One loss a workload for libraries that have NumPy's functions, `xp` --------------------------------------


def chain_loss(xp: Any, a: Any, b: Any) -> Any:
    x = a
    for _ in range(LENGTH):
        x = xp.tanh(x * b + a)
    return xp.sum(x)


def mlp_loss(xp: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, target: Any) -> Any:
    scores = xp.maximum(x @ w1.T + b1, 0) @ w2.T + b2
    shifted = scores - xp.max(scores, axis=1, keepdims=True)
    logs = shifted - xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
    return -xp.mean(logs[np.arange(len(target)), target])


def gru_loss(xp: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, x: Any) -> Any:
    h, total, n = x[0] * 0, 0.0, HIDDEN
    a = x @ w_ih.T + b_ih
    for t in range(STEPS):
        g, w = a[t], h @ w_hh.T + b_hh
        r_z = 0.5 * xp.tanh(0.5 * (g[:, : 2 * n] + w[:, : 2 * n])) + 0.5
        z, new = r_z[:, n:], xp.tanh(g[:, 2 * n :] + r_z[:, :n] * w[:, 2 * n :])
        h = new + z * (h - new)
        total = total + xp.sum(h)
    return total


def attention_loss(xp: Any, scale: Any, shift: Any, w: Any, b: Any, w_out: Any, b_out: Any, x: Any) -> Any:
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    y = centred * (xp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) ** -0.5 * scale + shift
    parts = xp.transpose(xp.reshape(y @ w.T + b, (4, 32, 3, HEADS, 16)), (2, 0, 3, 1, 4))
    scores = xp.exp(parts[0] @ xp.swapaxes(parts[1], 2, 3) * 0.25)
    seen = scores / xp.sum(scores, axis=-1, keepdims=True) @ parts[2]
    return xp.sum(x + xp.reshape(xp.swapaxes(seen, 1, 2), (4, 32, 64)) @ w_out.T + b_out)


def embedding_loss(xp: Any, centres: Any, others: Any, i: Any, j: Any) -> Any:
    return -xp.mean(-xp.log(1 + xp.exp(-xp.einsum("be,bce->bc", centres[i], others[j]))))


LOSSES = {
    "chain": chain_loss,
    "MLP": mlp_loss,
    "GRU": gru_loss,
    "GRU by hand": gru_loss,
    "attention": attention_loss,
    "embedding": embedding_loss,
}


def hips_step(name: str, arrays: list[np.ndarray]) -> Step:
    import autograd
    import autograd.numpy as anp

    n = PARAMETERS[name]
    gradient = autograd.grad(lambda parameters, *data: LOSSES[name](anp, *parameters, *data))
    return lambda: _stepped(name, arrays, gradient(tuple(arrays[:n]), *arrays[n:]))


def jax_step(name: str, arrays: list[np.ndarray], compiled: bool = False) -> Step:
    import jax

    n, values = PARAMETERS[name], [jax.numpy.asarray(a) for a in arrays]
    gradient = jax.grad(lambda parameters, *data: LOSSES[name](jax.numpy, *parameters, *data))
    gradient = jax.jit(gradient) if compiled else gradient
    return lambda: jax.block_until_ready(_stepped(name, values, gradient(tuple(values[:n]), *values[n:])))


def _stepped(name: str, arrays: list, gradients: Any) -> Any:
    """The step of SGD that belongs to the MLP; its values are thrown away, so that all runs are alike."""
    return [a - LR * g for a, g in zip(arrays, gradients)] if name == "MLP" else gradients


# PyTorch and metagrad, with the layers they offer -----------------------------------------------------------


def torch_step(name: str, arrays: list[np.ndarray]) -> Step:
    import torch

    torch.set_num_threads(1)
    f, n = torch.nn.functional, PARAMETERS[name]
    ps = [torch.tensor(a, requires_grad=True) for a in arrays[:n]]
    data = [torch.tensor(a) for a in arrays[n:]]
    optimizer = torch.optim.SGD(ps, lr=LR if name == "MLP" else 0.0)
    layer: Any = None
    if name == "GRU":
        layer = torch.nn.GRU(HIDDEN, HIDDEN)
        ps = _given(torch.no_grad(), layer.parameters(), ps)
    if name == "attention":
        layer = torch.nn.MultiheadAttention(64, HEADS, batch_first=True)
        ps[2:] = _given(torch.no_grad(), layer.parameters(), ps[2:])

    def loss() -> Any:
        if name == "chain":
            x = ps[0]
            for _ in range(LENGTH):
                x = torch.tanh(x * ps[1] + ps[0])
            return x.sum()
        if name == "MLP":
            return f.cross_entropy(f.linear(f.relu(f.linear(data[0], *ps[:2])), *ps[2:]), data[1])
        if name == "GRU":
            return layer(data[0])[0].sum()
        if name == "GRU by hand":
            return gru_loss(torch, *ps, data[0])
        if name == "attention":
            y = f.layer_norm(data[0], (64,), *ps[:2])
            return (data[0] + layer(y, y, y, need_weights=False)[0]).sum()
        scores = torch.einsum(
            "be,bce->bc", f.embedding(data[0], ps[0], sparse=True), f.embedding(data[1], ps[1], sparse=True)
        )
        return -f.logsigmoid(scores).mean()

    def step() -> None:
        for p in ps:
            p.grad = None
        loss().backward()
        if name == "MLP":
            optimizer.step()

    return step


def metagrad_step(name: str, arrays: list[np.ndarray]) -> Step:
    n = PARAMETERS[name]
    ps: list[Any] = [nn.Parameter(a) for a in arrays[:n]]
    data = [Tensor(a) for a in arrays[n:]]
    optimizer = metagrad.optim.SGD(ps, lr=LR)
    layer: Any = None
    if name == "GRU":
        layer = nn.GRU(HIDDEN, HIDDEN)
        ps = _given(metagrad.no_grad(), layer.parameters(), ps)
    if name == "attention":
        layer = nn.MultiheadAttention(64, HEADS)
        ps[2:] = _given(metagrad.no_grad(), layer.parameters(), ps[2:])

    def loss() -> Tensor:
        if name == "chain":
            x = ps[0]
            for _ in range(LENGTH):
                x = (x * ps[1] + ps[0]).tanh()
            return x.sum()
        if name == "MLP":
            return F.cross_entropy(F.linear(F.relu(F.linear(data[0], *ps[:2])), *ps[2:]), data[1])
        if name == "GRU":
            return layer(data[0])[0].sum()
        if name == "GRU by hand":
            return gru_loss(F, *ps, data[0])
        if name == "attention":
            return (data[0] + layer(F.layer_norm(data[0], 64, *ps[:2]))).sum()
        scores = F.einsum("be,bce->bc", F.embedding(ps[0], data[0]), F.embedding(ps[1], data[1]))
        return -F.logsigmoid(scores).mean()

    def step() -> None:
        for p in ps:
            p.grad = None
        loss().backward()
        if name == "MLP":
            optimizer.step()

    return step


def _given(no_grad: Any, parameters: Any, values: list) -> list:
    """The parameters of a layer, with these values copied into them."""
    parameters = list(parameters)
    with no_grad:
        for parameter, value in zip(parameters, values):
            parameter.copy_(value)
    return parameters


CONTENDERS: dict[str, Callable[[str, list[np.ndarray]], Step]] = {
    "metagrad": metagrad_step,
    "PyTorch": torch_step,
    "HIPS": hips_step,
    "JAX": jax_step,
    "JAX jit": lambda name, arrays: jax_step(name, arrays, compiled=True),
}


def in_turn(steps: dict[str, Step], seconds: float) -> dict[str, float]:
    """The median microseconds of each step; they take turns, so that noise meets all of them alike.

    Each gets about as many seconds, and at least five runs.
    """
    cost = {name: min(_timed(step) for _ in range(3)) for name, step in steps.items()}
    rounds = {name: max(5, min(400, int(seconds / cost[name]))) for name in steps}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for k in range(max(rounds.values())):
        for name, step in steps.items():
            if k < rounds[name]:
                times[name].append(_timed(step))
    return {name: float(np.median(values)) * 1e6 for name, values in times.items()}


def _timed(step: Step) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=1.5, help="for each contender and workload")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 8, 32, 64], help="n of n×n for the chain")
    parser.add_argument("--only", nargs="+", choices=PARAMETERS, default=list(PARAMETERS), help="some workloads")
    options = parser.parse_args()
    workloads = [(f"chain {n}×{n}", "chain", n) for n in options.sizes if "chain" in options.only]
    workloads += [(name, name, 1) for name in options.only if name != "chain"]
    missing = set()
    print(
        f"{'µs':<14}" + "".join(f"{name:>10}" for name in CONTENDERS) + f"{'of PyTorch':>12}{'of HIPS':>9}{'of JAX':>8}"
    )
    for title, name, size in workloads:
        steps = {}
        for contender, make in CONTENDERS.items():
            try:
                steps[contender] = make(name, inputs(size)[name])
            except ImportError:
                missing.add(contender)
        times = in_turn(steps, options.seconds)
        row = "".join(f"{times[c]:10.0f}" if c in times else f"{'-':>10}" for c in CONTENDERS)
        for peer, width in (("PyTorch", 12), ("HIPS", 9), ("JAX", 8)):
            row += f"{times['metagrad'] / times[peer]:{width}.2f}" if peer in times else f"{'-':>{width}}"
        print(f"{title:<14}" + row, flush=True)
    if missing:
        print(f"not installed, so not measured: {', '.join(sorted(missing))} (pip install metagrad[bench])")


if __name__ == "__main__":
    main()
