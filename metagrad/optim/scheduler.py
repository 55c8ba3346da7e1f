"""Learning-rate schedules: each a closed form of the number of steps t, so it can start anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .optimizer import Optimizer


class Scheduler:
    """The base: sets every group's lr at once, and again at each step(). One optimizer, one schedule.

    Subclasses define rate(start, t): the rate after t steps of a group that started at `start`.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.starts = [float(group["lr"]) for group in optimizer.param_groups]
        self.t = 0
        self._set_rates()

    def rate(self, start: float, t: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} must define rate(self, start, t)")

    def step(self) -> None:
        """Go on by one."""
        self.t += 1
        self._set_rates()

    def _set_rates(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.starts):
            raise RuntimeError(
                f"{type(self).__name__}: made for {len(self.starts)} parameter groups, the optimizer has "
                f"{len(groups)}: add groups before the schedule is made"
            )
        for group, start in zip(groups, self.starts, strict=True):
            group["lr"] = float(self.rate(start, self.t))

    def state_dict(self) -> dict[str, Any]:
        return {"t": self.t, "starts": list(self.starts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state_dict; the schedule's own arguments are not in it."""
        self.t, self.starts = state["t"], list(state["starts"])
        self._set_rates()


class LambdaLR(Scheduler):
    """start · lr_lambda(t)."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer)

    def rate(self, start, t):
        return start * self.lr_lambda(t)


class LinearLR(Scheduler):
    """From start · start_factor to start · end_factor in total_iters equal steps, and there it stays.

    The defaults warm up; LinearLR(optimizer, 1.0, 0.0, steps) decays to 0, as word2vec does.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        _at_least_one("LinearLR: total_iters", total_iters)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def rate(self, start, t):
        done = min(t / self.total_iters, 1.0)
        return start * (self.start_factor * (1 - done) + self.end_factor * done)


class StepLR(Scheduler):
    """start · gamma^⌊t / step_size⌋."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        _at_least_one("StepLR: step_size", step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def rate(self, start, t):
        return start * self.gamma ** (t // self.step_size)


class CosineAnnealingLR(Scheduler):
    """eta_min + (start − eta_min)(1 + cos(π t / T_max)) / 2; eta_min from T_max on.

    Loshchilov and Hutter 2017.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        _at_least_one("CosineAnnealingLR: T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, start, t):
        return _cosine(start, self.eta_min, min(t / self.T_max, 1.0))


class CosineAnnealingWarmRestarts(Scheduler):
    """CosineAnnealingLR that starts again every T_0 steps: it never takes the value eta_min itself."""

    def __init__(self, optimizer: Optimizer, T_0: int, *, eta_min: float = 0.0) -> None:
        _at_least_one("CosineAnnealingWarmRestarts: T_0", T_0)
        self.T_0, self.eta_min = T_0, eta_min
        super().__init__(optimizer)

    def rate(self, start, t):
        return _cosine(start, self.eta_min, t % self.T_0 / self.T_0)


class ReduceLROnPlateau:
    """Multiply the rate by `factor` when a value has not improved for more than `patience` steps.

    mode: "min" or "max", which of them is better. threshold: the least relative change that counts.
    min_lr: where it ends. A NaN is no improvement. The rate itself is in the optimizer's state_dict.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        *,
        min_lr: float = 0.0,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode is 'min' or 'max', not {mode!r}")
        if not 0 < factor < 1:
            raise ValueError(f"ReduceLROnPlateau: factor is {factor}, it must lie between 0 and 1")
        self.optimizer, self.mode, self.factor = optimizer, mode, factor
        self.patience, self.threshold, self.min_lr = patience, threshold, min_lr
        self.best = math.inf if mode == "min" else -math.inf
        self.waited = 0

    def step(self, value: float) -> None:
        """Take note of the value, and reduce the rate where it has not improved for long enough."""
        if self._improves(float(value)):
            self.best, self.waited = float(value), 0
            return
        self.waited += 1
        if self.waited > self.patience:
            self.waited = 0
            for group in self.optimizer.param_groups:
                group["lr"] = min(group["lr"], max(group["lr"] * self.factor, self.min_lr))

    def _improves(self, value: float) -> bool:
        margin = self.threshold * abs(self.best) if math.isfinite(self.best) else 0.0
        return value < self.best - margin if self.mode == "min" else value > self.best + margin

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best, self.waited = state["best"], state["waited"]


def _cosine(high: float, low: float, done: float) -> float:
    """From high to low along half a wave, done of the way."""
    return low + (high - low) * (1 + math.cos(math.pi * done)) / 2


def _at_least_one(what: str, steps: int) -> None:
    if steps < 1:
        raise ValueError(f"{what} is {steps}, it must be at least 1")
