"""The loop over steps: what one process does, alone or as one of several workers on the same tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cuda import CPU, to_device
from ..nn import Module
from ..optim import SGD
from .blocks import Blocks

# A step's gradients add up: a row that is in n of its predictions moves n times as far in one direction. How many
# predictions, times lr, may concern the most frequent word; a word on average; the root of a tree, where the
# gradients of most of them cancel. (1024 words of English at lr 0.025 and window 5 have 1.9, 0.2, 150.)
_MOST, _AVERAGE, _ROOT = 2.1, 0.3, 36.0


@dataclass(frozen=True)
class Schedule:
    """How to learn after so many words: at a rate that falls linearly from lr to min_lr over `total` words, in steps
    of up to `longest` centres and as many as keep rate · centres within `bound`: steps grow as the rate falls."""

    lr: float
    min_lr: float
    total: float
    longest: int
    bound: float

    @classmethod
    def of(
        cls, lr: float, min_lr: float, epochs: int, longest: int, kept: NDArray[np.floating], predictions: float,
        tree: bool = False,
    ) -> Schedule:  # fmt: skip
        """kept (V,): the occurrences of each word that an epoch trains on. predictions: by each word, or of it.

        tree: whether words are predicted along the paths of a tree.
        """
        words = max(float(kept.sum()), 1.0)
        shares = np.maximum(kept / words, 1e-12)
        bound = min(_MOST / shares.max(), _AVERAGE / (shares**2).sum(), _ROOT if tree else np.inf)
        return cls(lr, min_lr, words * epochs, longest, float(bound / predictions))

    def rate(self, words: float) -> float:
        return max(self.lr * (1 - words / self.total), self.min_lr)

    def step(self, words: float) -> int:
        return max(int(min(self.longest, self.bound / self.rate(words))), 1)


class Counted(NamedTuple):
    """A step with what the schedule and the report need of it: centres that have contexts, and predictions."""

    blocks: Blocks
    words: int
    predictions: int


class Step(NamedTuple):
    """What a step did: centres trained on, predictions, the sum of their losses."""

    words: int
    predictions: int
    loss: float


def run(model: Module, steps: Iterable[Counted], rate: Callable[[], float]) -> Iterator[Step]:
    """Train `model` on each step, at the learning rate that `rate` gives for it.

    Raises FloatingPointError at the first loss that is not finite: the tables are then spoilt.
    """
    optimizer = SGD(model.parameters())
    (group,) = optimizer.param_groups
    device = model.device
    for number, (blocks, words, predictions) in enumerate(steps):
        group["lr"] = rate()
        loss = model(*blocks) if device == CPU else model(*(to_device(array, device) for array in blocks))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        if not math.isfinite(value):
            raise FloatingPointError(not_finite(model, number, group["lr"]))
        yield Step(words, predictions, value)


def not_finite(model: Module, step: int, lr: float) -> str:
    """One sentence for a run that went out of bounds."""
    largest = max(float(np.max(np.abs(p.numpy()), initial=0, where=np.isfinite(p.numpy()))) for p in model.parameters())
    return (
        f"the loss is no longer finite at step {step} of this epoch, at learning rate {lr:.4g}; the largest weight "
        f"that is finite is {largest:.3g}: lower lr, and go on from the last checkpoint"
    )


def counted(steps: Iterable[Blocks], predicts: str) -> Iterator[Counted]:
    """Steps with their numbers of words and of predictions: of contexts by each centre, or of the centre by all."""
    for blocks in steps:
        contexts = blocks.contexts_of_each()
        words = int(np.count_nonzero(contexts))
        yield Counted(blocks, words, int(contexts.sum()) if predicts == "contexts" else words)
