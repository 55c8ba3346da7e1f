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

# A step's gradients add up: a row that is in n of its predictions moves n times as far in one direction. So rate times
# the number of predictions is bounded that concern, in one step, the most frequent word; a word on average; the root
# of a tree, where the gradients of most of them cancel; one draw of a noise word. (1024 words of English at rate 0.025
# and window 5 have 1.9, 0.2 and 150; a noise word that serves 32 of them 1.5.) Beyond twice these numbers training
# was seen to diverge. Processes that work on the same tables do not see each other's steps, so that these add up too.
_MOST, _AVERAGE, _ROOT, _NOISE = 2.1, 0.3, 36.0, 1.5
_RUNAWAY = 1000.0  # a mean loss of a prediction that only a training out of control has; a guess has ln V or 6 ln 2


@dataclass(frozen=True)
class Schedule:
    """How to learn after so many words: at a rate that falls linearly from lr to min_lr over `total` words, and in
    steps and stretches that grow as it falls, up to `longest`.

    bounds: what rate · centres of a step and rate · words of a stretch are to stay below.
    """

    lr: float
    min_lr: float
    total: float
    longest: tuple[int, int]
    bounds: tuple[float, float]

    @classmethod
    def of(
        cls,
        lr: float,
        min_lr: float,
        epochs: int,
        kept: NDArray[np.floating],
        *,
        longest: tuple[int, int],
        predictions: float = 1.0,
        draws: float = 0.0,
        tree: bool = False,
        workers: int = 1,
    ) -> Schedule:
        """kept (V,): the occurrences of each word that an epoch trains on. predictions: by each centre, or of it.

        draws: for how many draws a noise word stands in each prediction, K/K'. tree: whether words are predicted
        along the paths of a tree. longest: the words of a step of all workers together, and of a stretch: each
        worker looks at tables that the others change meanwhile, which is like a longer step.
        """
        words = max(float(kept.sum()), 1.0)
        shares = np.maximum(kept / words, 1e-12)
        step = min(_MOST / shares.max(), _AVERAGE / (shares**2).sum(), _ROOT if tree else math.inf)
        stretch = _NOISE / draws if draws else math.inf
        bounds = float(step / predictions / workers), float(stretch / predictions)
        return cls(lr, min_lr, words * epochs, (max(longest[0] // workers, 1), longest[1]), bounds)

    def rate(self, words: float) -> float:
        return max(self.lr * (1 - words / self.total), self.min_lr)

    def sizes(self, words: float) -> tuple[int, int]:
        """The centres of a step and the words of a stretch."""
        rate = self.rate(words)
        step, stretch = (max(int(min(most, bound / rate)), 1) for most, bound in zip(self.longest, self.bounds))
        return step, stretch


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

    Raises FloatingPointError at the first loss that is not finite or absurd: the tables are then spoilt.
    """
    optimizer = SGD(model.parameters())
    (group,) = optimizer.param_groups
    device = model.device
    for number, (blocks, words, predictions) in enumerate(steps):
        group["lr"] = rate()
        with np.errstate(over="ignore", invalid="ignore"):  # it is said below, in one sentence
            loss = model(*blocks) if device == CPU else model(*(to_device(array, device) for array in blocks))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        value = loss.item()
        if not value <= _RUNAWAY * max(predictions, 1):  # nor NaN
            raise FloatingPointError(out_of_bounds(model, value / max(predictions, 1), number, group["lr"]))
        yield Step(words, predictions, value)


def out_of_bounds(model: Module, loss: float, step: int, lr: float) -> str:
    """One sentence for a run that went out of bounds."""
    largest = max(float(np.max(np.abs(p.numpy()), initial=0, where=np.isfinite(p.numpy()))) for p in model.parameters())
    return (
        f"the loss of a prediction is {loss:.3g} at step {step} of this epoch, at learning rate {lr:.4g}; the largest "
        f"weight that is finite is {largest:.3g}: begin again with a lower lr, or go on so from the last checkpoint"
    )


def counted(steps: Iterable[Blocks], predicts: str) -> Iterator[Counted]:
    """Steps with their numbers of words and of predictions: of contexts by each centre, or of the centre by all."""
    for blocks in steps:
        contexts = blocks.contexts_of_each()
        words = int(np.count_nonzero(contexts))
        yield Counted(blocks, words, int(contexts.sum()) if predicts == "contexts" else words)
