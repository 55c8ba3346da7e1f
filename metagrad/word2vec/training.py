"""The loop over steps: what one process does, alone or as one of several workers on the same tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..cuda import CPU, to_device
from ..nn import Module
from ..optim import SGD
from .blocks import Blocks


class Counted(NamedTuple):
    """A step with what the schedule and the report need of it."""

    blocks: Blocks
    words: int
    pairs: int


class Step(NamedTuple):
    """What a step did: centres trained on, their pairs, the sum of the pairs' losses."""

    words: int
    pairs: int
    loss: float


def run(model: Module, steps: Iterable[Counted], rate: Callable[[], float]) -> Iterator[Step]:
    """Train `model` on each step, at the learning rate that `rate` gives for it.

    Raises FloatingPointError at the first loss that is not finite: the tables are then spoilt.
    """
    optimizer = SGD(model.parameters())
    (group,) = optimizer.param_groups
    device = model.device
    for number, (blocks, words, pairs) in enumerate(steps):
        group["lr"] = rate()
        loss = model(*blocks) if device == CPU else model(*(to_device(array, device) for array in blocks))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        if not math.isfinite(value):
            raise FloatingPointError(not_finite(model, number, group["lr"]))
        yield Step(words, pairs, value)


def not_finite(model: Module, step: int, lr: float) -> str:
    """One sentence for a run that went out of bounds."""
    largest = max(float(np.max(np.abs(p.numpy()), initial=0, where=np.isfinite(p.numpy()))) for p in model.parameters())
    return (
        f"the loss is no longer finite at step {step} of this epoch, at learning rate {lr:.4g}; the largest weight "
        f"that is finite is {largest:.3g}: lower lr, and go on from the last checkpoint"
    )


def counted(steps: Iterable[Blocks]) -> Iterator[Counted]:
    """Steps with their numbers of words and pairs."""
    for blocks in steps:
        contexts = blocks.contexts_of_each()
        yield Counted(blocks, int(np.count_nonzero(contexts)), int(contexts.sum()))
