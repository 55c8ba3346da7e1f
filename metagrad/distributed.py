"""Data-parallel training over MPI: every rank holds the model and works on its share of each batch.

    mpiexec -n 2 python train.py

    with distributed.session():                     # a rank that fails, or leaves early, ends the others, too
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
import functools
import math
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from tqdm import tqdm

from . import serialization
from .cuda import CPU, Array, array_module, device_of, to_device
from .nn import Module
from .optim import Optimizer
from .rows import Rows
from .tensor import Tensor

# What launchers tell a rank: MPICH's and its heirs', Open MPI's, srun. Not SLURM_NTASKS: a batch script has it, too,
# and is one process.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_NOTHING, _WHOLE = -1, -2  # a gradient that is not so and so many rows
_BUCKET = 1 << 22  # bytes of whole gradients that travel together
_SAY = 0.5  # seconds: once it knows of an abort, MPICH's launcher drops what it has not passed on to the terminal yet
_world: Any = None  # MPI's communicator of all ranks, once it was needed
_in_session = False


def world() -> Any:
    """mpi4py's communicator of all ranks, or None where this process is alone.

    Where a launcher started several processes: ImportError if mpi4py is missing, RuntimeError if it is not the
    launcher's MPI.
    """
    global _world
    if _world is None:
        started = max(int(os.environ.get(name) or 1) for name in _SIZES)
        if started == 1:
            return None
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise ImportError(
                "this process is one of several that a launcher started, and they need mpi4py to meet: "
                "pip install metagrad[mpi]"
            ) from error
        if MPI.COMM_WORLD.size == 1:
            raise RuntimeError(
                f"a launcher started {started} processes, and each finds itself alone: the launcher is not of the MPI "
                f"that mpi4py uses, {MPI.get_vendor()[0]}; start them with the mpiexec that came with that"
            )
        _world = MPI.COMM_WORLD
    return _world


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

    At the end a rank waits for the others. If they are elsewhere, because it had fewer batches, say, all fail. That a
    rank was killed the launcher notices itself.
    """
    global _in_session
    comm = world()
    if comm is None:
        yield
        return
    before, _in_session = _in_session, True
    leaving: SystemExit | None = None
    try:
        try:
            yield
        except SystemExit as error:
            if error.code not in (0, None):
                raise
            leaving = error
        _together("the end of its session")
    except BaseException as error:
        message = str(error) if isinstance(error, SystemExit) else "".join(traceback.format_exception(error))
        sys.stdout.flush()  # what Python still holds would be lost with the process
        print(f"rank {comm.rank} of {comm.size} failed, so all end: {message}", file=sys.stderr, flush=True)
        time.sleep(_SAY)
        comm.Abort(1)
    _in_session = before
    if leaving is not None:
        raise leaving


def _together(place: str, mine: Any = None) -> list[Any]:
    """What each rank has to say, by rank; `place` says where in its work this one is.

    All that ranks do together begins with this. RuntimeError on every rank where they have come to different places,
    in which MPI would let them wait for each other forever.
    """
    comm = world()
    said = comm.allgather((place, mine))
    for other, (elsewhere, _) in enumerate(said):
        if elsewhere != said[0][0]:
            raise RuntimeError(
                f"rank 0 has come to {said[0][0]} and rank {other} to {elsewhere}: all ranks are to take the same "
                "steps, and equally many"
            )
    return [theirs for _, theirs in said]


def _check_alike(traits: list[dict[str, str]]) -> None:
    """ValueError naming the first parameter that is another one elsewhere. traits: by rank, {name: what it is}."""
    for other, theirs in enumerate(traits):
        for name in {**traits[0], **theirs}:
            here, there = traits[0].get(name, "missing"), theirs.get(name, "missing")
            if here != there:
                raise ValueError(f"the parameters differ: {name} is {here} on rank 0 and {there} on rank {other}")


def broadcast(module: Module) -> None:
    """Give every rank the parameters of rank 0's module, in place.

    ValueError where the ranks' modules differ in names, shapes or dtypes.
    """
    comm = world()
    if comm is None:
        return
    state = {name: np.array(value, order="C") for name, value in module.state_dict().items()}
    _check_alike(_together("broadcast", {name: f"{value.dtype} {value.shape}" for name, value in state.items()}))
    for value in state.values():
        comm.Bcast(value, root=0)
    module.load_state_dict(state)


class DistributedOptimizer:
    """An optimizer whose `step` first adds the gradients of all ranks up. Everything else is the optimizer's own.

    Every rank's loss is to be its examples' sum divided by the size of the *whole* batch: then the sum is the gradient
    of one process on that batch, to rounding, and the same bits on every rank. A rank without a gradient for a
    parameter adds nothing to it. Rows travel as rows, each distinct one once, or as a whole table where all ranks
    together would send more than that; the optimizer gets Rows either way.

    To clip the sum, say, before the step, call `add_up` and then the plain optimizer's `step`.
    RuntimeError outside of a session, in which alone a rank that fails is noticed.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        if world() is not None and not _in_session:
            raise RuntimeError(
                "several ranks train within `with distributed.session():`, else the others would wait forever for one "
                "that fails"
            )
        self.optimizer = optimizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.optimizer, name)

    def step(self) -> None:
        add_up([p for group in self.optimizer.param_groups for p in group["params"]])
        self.optimizer.step()


def add_up(parameters: list[Tensor]) -> None:
    """Replace the gradient of each parameter by its sum over all ranks. All ranks call it with the same parameters.

    ValueError names the first that differs. Gradients of a GPU are sent from where they are if MPI says that it reads
    a GPU's memory, through the host's otherwise. The former was tried with a stand-in only, never on a cluster.
    """
    comm = world()
    if comm is None:
        return
    mine = [_each_row_once(p) for p in parameters]
    counts = _what_each_has(parameters, mine)
    whole: dict[Any, list[int]] = {}
    for i, p in enumerate(parameters):
        have = counts[:, i]
        if (have == _NOTHING).all():
            continue
        if (have == _WHOLE).any() or have.clip(0).sum() > p.shape[0]:
            whole.setdefault((p.dtype, p.device), []).append(i)
        else:
            with p.device.active():
                index, values = _own_rows(mine[i], p)
                p.grad = Rows(_gathered(comm, index, have, p), _gathered(comm, values, have, p), p.shape)
    for places in whole.values():
        for bucket in _buckets(places, parameters):
            with parameters[bucket[0]].device.active():
                sums = _sums(comm, [_dense(mine[i], parameters[i]) for i in bucket])
                for i, table in zip(bucket, sums, strict=True):
                    p, have = parameters[i], counts[:, i]
                    if (have == _WHOLE).any():
                        p.grad = Tensor(table)
                    else:  # it travelled as a table, but which rows were read still matters to the optimizer
                        index = array_module(table).unique(_gathered(comm, _own_rows(mine[i], p)[0], have, p))
                        p.grad = Rows(index, table[index], p.shape)


def _each_row_once(p: Tensor) -> Any:
    """p's gradient; of Rows, each row once."""
    with p.device.active():
        return p.grad.coalesce() if isinstance(p.grad, Rows) else p.grad


def _what_each_has(parameters: list[Tensor], mine: list[Tensor | Rows | None]) -> np.ndarray:
    """(ranks, parameters): a number of rows, _WHOLE or _NOTHING. By it all ranks decide alike how to send."""
    kinds = [_NOTHING if g is None else len(g.index) if isinstance(g, Rows) else _WHOLE for g in mine]
    traits = {f"parameter {i} of the optimizer": f"{p.dtype} {p.shape}" for i, p in enumerate(parameters)}
    said = _together("the sum of the gradients", (traits, kinds))
    _check_alike([theirs for theirs, _ in said])
    return np.array([theirs for _, theirs in said])


def _own_rows(grad: Any, p: Tensor) -> tuple[Array, Array]:
    """The index and values of a rank's Rows; of none, empty ones."""
    xp = array_module(p.data)
    if grad is None:
        return xp.empty(0, xp.int64), xp.empty((0, *p.shape[1:]), p.dtype)
    return grad.index.astype(xp.int64), grad.values


def _dense(grad: Any, p: Tensor) -> Array:
    if grad is None:
        return array_module(p.data).zeros(p.shape, p.dtype)
    return grad.dense() if isinstance(grad, Rows) else grad.data


def _gathered(comm: Any, mine: Array, counts: np.ndarray, p: Tensor) -> Array:
    """The arrays of all ranks, one behind the other by rank, where p is. counts: their lengths, below 0 for none."""
    mine, counts = _sendable(mine), counts.clip(0)
    width = math.prod(mine.shape[1:])
    everything = array_module(mine).empty((int(counts.sum()), *mine.shape[1:]), mine.dtype)
    comm.Allgatherv(mine, (everything, counts * width))
    return to_device(everything, p.device)


def _sums(comm: Any, arrays: list[Array]) -> list[Array]:
    """Each array's sum over all ranks, where the array is; they travel as one message."""
    flat = _sendable(array_module(arrays[0]).concatenate([array.reshape(-1) for array in arrays]))
    total = array_module(flat).empty_like(flat)
    comm.Allreduce(flat, total)
    total = to_device(total, device_of(arrays[0]))
    ends = np.cumsum([array.size for array in arrays]).tolist()
    return [total[end - array.size : end].reshape(array.shape) for array, end in zip(arrays, ends, strict=True)]


def _sendable(array: Array) -> Array:
    """The array in one piece where MPI can read it."""
    if device_of(array) != CPU and not _reads_gpu_memory():
        array = to_device(array, CPU)
    xp = array_module(array)
    array = xp.ascontiguousarray(array)
    if xp is not np:
        xp.cuda.get_current_stream().synchronize()  # MPI knows nothing of kernels that are still at work
    return array


@functools.cache
def _reads_gpu_memory() -> bool:
    """Whether MPI says so: in MPI 4.1's way, which `mpiexec -memory-alloc-kinds` asks for, or by Open MPI's switch."""
    kinds = world().Get_info().get("mpi_memory_alloc_kinds") or ""
    switch = "OMPI_MCA_opal_cuda_support"
    return "cuda" in kinds or os.environ.get(switch, "").lower() in ("1", "true")


def _buckets(places: list[int], parameters: list[Tensor]) -> Iterator[list[int]]:
    """Parameters in groups of about _BUCKET bytes: a message costs time of its own, a long one also memory."""
    bucket: list[int] = []
    held = 0
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
    """The batches of a batch sampler, of each this rank's share. On all ranks it must draw from the same seed.

    ValueError, when an epoch begins, where the ranks' first batches differ. An epoch is to begin in the thread of the
    training loop, as a DataLoader's does.
    """

    def __init__(self, batch_sampler: Iterable[Any]) -> None:
        self.batch_sampler = batch_sampler

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.batch_sampler)
        if world() is not None:
            first: Any = next(batches, ())
            drawn = _together("an epoch of a DistributedSampler", list(first))
            for other, theirs in enumerate(drawn):
                if theirs != drawn[0]:
                    raise ValueError(
                        f"ranks 0 and {other} draw different batches: give their samplers the same data and seed"
                    )
            batches = chain([first] if len(first) else [], batches)
        return map(share, batches)

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
    return value if world() is None else sum(_together("a mean", value)) / size()


def save(state: Any, path: str | os.PathLike[str]) -> None:
    """metagrad.save by rank 0. All ranks wait for it, and all raise where it fails."""
    failure: Exception | None = None
    if is_main():
        try:
            serialization.save(state, path)
        except Exception as error:
            failure = error
    if world() is not None:
        failure = _together("saving", failure)[0]
    if failure is not None:
        raise failure
