"""Data-parallel training over MPI: every rank holds the model and works on its share of each batch.

    mpiexec -n 2 python train.py

    with distributed.session():                     # a rank that fails ends the others, too
        distributed.broadcast(model)                # all begin with the parameters of rank 0
        optimizer = distributed.DistributedOptimizer(Adam(model.parameters()))
        for batch in loader:                        # a rank's share; its loss divided by the size of the whole batch
            ...
            optimizer.step()                        # adds the gradients of all ranks up, then steps

Alone, without mpiexec, all of this does nothing, and mpi4py is neither needed nor imported. Gradients are added up
after the walk, in few large pieces. MPI makes progress on a message only while somebody calls it, so on CPUs sending
during the walk would only move the waiting.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from tqdm import tqdm

from . import serialization
from .cuda import CPU, Array, to_device
from .nn import Module
from .optim import Optimizer
from .rows import Rows
from .tensor import Tensor

_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS")  # what launchers tell a rank
_BUCKET = 1 << 22  # bytes of dense gradients that travel together
_world: Any = None  # MPI's communicator of all ranks, once it was needed


def world() -> Any:
    """mpi4py's communicator of all ranks, or None where this process is alone.

    Raises ImportError where a launcher started several processes and mpi4py is missing.
    """
    global _world
    if _world is None and max(int(os.environ.get(name) or 1) for name in _SIZES) > 1:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise ImportError(
                "this process is one of several that a launcher started, and they need mpi4py to meet: "
                "pip install metagrad[mpi]"
            ) from error
        _world = MPI.COMM_WORLD
    return _world if _world is not None and _world.size > 1 else None


def rank() -> int:
    """The number of this process, from 0."""
    return 0 if world() is None else world().rank


def size() -> int:
    """The number of processes."""
    return 1 if world() is None else world().size


def is_main() -> bool:
    """Whether this is rank 0, which speaks and saves for all."""
    return rank() == 0


@contextlib.contextmanager
def session() -> Iterator[None]:
    """Whatever ends this block in one rank ends all: its message is printed, and nobody waits for it in vain.

    That a rank was killed the launcher notices itself.
    """
    comm = world()
    if comm is None:
        yield
        return
    try:
        yield
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code in (0, None):
            raise
        message = str(error) if isinstance(error, SystemExit) else "".join(traceback.format_exception(error))
        print(f"rank {comm.rank} of {comm.size} failed, so all end: {message}", file=sys.stderr, flush=True)
        comm.Abort(1)


def broadcast(module: Module) -> None:
    """Give every rank the parameters and buffers of rank 0's module, in place.

    ValueError where the ranks' modules differ in names, shapes or dtypes.
    """
    comm = world()
    if comm is None:
        return
    state = module.state_dict()
    traits = {name: (value.shape, str(value.dtype)) for name, value in state.items()}
    for other, theirs in enumerate(comm.allgather(traits)):
        if theirs != traits:
            name = next(n for n in {**traits, **theirs} if traits.get(n) != theirs.get(n))
            raise ValueError(
                f"the modules of ranks {comm.rank} and {other} differ: {name} is {traits.get(name)} here and "
                f"{theirs.get(name)} there"
            )
    for name, value in state.items():
        buffer = np.ascontiguousarray(to_device(getattr(value, "data", value), CPU))
        comm.Bcast(buffer, root=0)
        state[name] = buffer
    module.load_state_dict(state)


class DistributedOptimizer:
    """An optimizer whose `step` first adds the gradients of all ranks up. Everything else is the optimizer's own.

    Every rank's loss is to be its examples' sum divided by the size of the *whole* batch: then the sum is the gradient
    of one process on that batch, to rounding, and the same bits on every rank. A rank without a gradient for a
    parameter adds nothing to it. Rows travel as rows, each distinct one once, or as a whole table where all ranks
    together would send more than that; the optimizer gets Rows either way.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.optimizer, name)

    def step(self) -> None:
        add_up([p for group in self.optimizer.param_groups for p in group["params"]])
        self.optimizer.step()


def add_up(parameters: list[Tensor]) -> None:
    """Replace the gradient of each parameter by its sum over all ranks. All ranks call it with the same parameters.

    ValueError where they do not. Gradients of a GPU travel through the host's memory: a CUDA-aware MPI could take them
    where they are, but none was at hand to try that on.
    """
    comm = world()
    if comm is None:
        return
    mine = [p.grad.coalesce() if isinstance(p.grad, Rows) else p.grad for p in parameters]
    # What each rank has: -1 nothing, -2 a dense gradient, or a number of rows. All then do the same.
    kinds = [-1 if g is None else len(g.index) if isinstance(g, Rows) else -2 for g in mine]
    shapes = [p.shape for p in parameters]
    everywhere = comm.allgather((shapes, kinds))
    for other, (theirs, _) in enumerate(everywhere):
        if theirs != shapes:
            raise ValueError(
                f"the parameters of ranks {comm.rank} and {other} differ: {shapes} here and {theirs} there; "
                "every rank is to give its optimizer the same ones"
            )
    counts = np.array([kinds for _, kinds in everywhere])
    whole: dict[Any, list[int]] = {}
    for i, p in enumerate(parameters):
        have, grad = counts[:, i], mine[i]
        if (have == -1).all():
            continue
        if (have == -2).any() or have.clip(0).sum() > p.shape[0]:
            whole.setdefault(p.dtype, []).append(i)
        else:
            index, values = _own_rows(grad, p)
            p.grad = _rows(_gathered(comm, index, have), _gathered(comm, values, have), p)
    for dtype, places in whole.items():
        for bucket in _buckets(places, parameters):
            flat = np.concatenate([_dense(mine[i], parameters[i]).reshape(-1) for i in bucket], dtype=dtype)
            total = np.empty_like(flat)
            comm.Allreduce(flat, total)
            start = 0
            for i in bucket:
                p, have = parameters[i], counts[:, i]
                table = total[start : start + p.size].reshape(p.shape)
                start += p.size
                if (have == -2).any():
                    p.grad = Tensor(to_device(table, p.device))
                else:  # it travelled as a table, but which rows were read still matters to the optimizer
                    index = np.unique(_gathered(comm, _own_rows(mine[i], p)[0], have))
                    p.grad = _rows(index, table[index], p)


def _own_rows(grad: Any, p: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The index and values of a rank's Rows, on the host; of none, empty ones."""
    if grad is None:
        return np.empty(0, np.int64), np.empty((0, *p.shape[1:]), p.dtype)
    return to_device(grad.index, CPU).astype(np.int64), np.ascontiguousarray(to_device(grad.values, CPU))


def _gathered(comm: Any, mine: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The arrays of all ranks, one behind the other in the order of the ranks. counts: their lengths, -1 for none."""
    counts = counts.clip(0)
    width = math.prod(mine.shape[1:])
    everything = np.empty((counts.sum(), *mine.shape[1:]), mine.dtype)
    comm.Allgatherv(mine, (everything, counts * width))
    return everything


def _rows(index: np.ndarray, values: np.ndarray, p: Tensor) -> Rows:
    return Rows(to_device(index, p.device), to_device(values, p.device), p.shape)


def _dense(grad: Tensor | Rows | None, p: Tensor) -> np.ndarray:
    """The whole gradient, on the host."""
    if grad is None:
        return np.zeros(p.shape, p.dtype)
    data: Array = grad.dense() if isinstance(grad, Rows) else grad.data
    return to_device(data, CPU)


def _buckets(places: list[int], parameters: list[Tensor]) -> Iterator[list[int]]:
    """Parameters in groups of about _BUCKET bytes: a message costs time of its own, a long one also memory."""
    bucket, held = [], 0
    for i in places:
        bucket.append(i)
        held += parameters[i].data.nbytes
        if held >= _BUCKET:
            yield bucket
            bucket, held = [], 0
    if bucket:
        yield bucket


def share(batch: Any) -> Any:
    """This rank's part of a batch: every size()-th entry, from the rank()-th on.

    ValueError where some rank would get nothing.
    """
    if len(batch) < size():
        raise ValueError(
            f"a batch of {len(batch)} has nothing for one of {size()} ranks: use larger ones, or drop_last"
        )
    return batch[rank() :: size()]


class DistributedSampler:
    """The batches of a batch sampler, of each this rank's share. On all ranks it must draw from the same seed."""

    def __init__(self, batch_sampler: Iterable[Any]) -> None:
        self.batch_sampler = batch_sampler

    def __iter__(self) -> Iterator[Any]:
        return map(share, iter(self.batch_sampler))

    def __len__(self) -> int:
        return len(self.batch_sampler)  # type: ignore[arg-type]


def progress(iterable: Iterable[Any], *args: Any, **options: Any) -> tqdm:
    """tqdm, which rank 0 alone shows."""
    disable = options.pop("disable", None)
    return tqdm(iterable, *args, disable=disable if is_main() else True, **options)


def log(*values: Any) -> None:
    """print, of rank 0 alone."""
    if is_main():
        print(*values, flush=True)


def mean(value: float) -> float:
    """The mean of a number over all ranks."""
    return value if world() is None else world().allreduce(value) / size()


def save(state: Any, path: str | os.PathLike[str]) -> None:
    """metagrad.save by rank 0. All ranks wait for it, and all raise where it fails."""
    comm = world()
    failure: Exception | None = None
    if is_main():
        try:
            serialization.save(state, path)
        except Exception as error:
            failure = error
    if comm is not None:
        failure = comm.bcast(failure, root=0)
    if failure is not None:
        raise failure
