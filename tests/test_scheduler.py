"""Learning-rate schedules: their closed forms, PyTorch's values, resuming."""

from __future__ import annotations

import math

import numpy as np
import pytest

import metagrad
from metagrad import nn, optim

SCHEDULES = {
    "LambdaLR": (optim.LambdaLR, {"lr_lambda": lambda t: 1 / (1 + t)}),
    "LinearLR": (optim.LinearLR, {}),
    "LinearLR decay": (optim.LinearLR, {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 9}),
    "StepLR": (optim.StepLR, {"step_size": 3, "gamma": 0.5}),
    "CosineAnnealingLR": (optim.CosineAnnealingLR, {"T_max": 12, "eta_min": 0.05}),
    "CosineAnnealingWarmRestarts": (optim.CosineAnnealingWarmRestarts, {"T_0": 5, "eta_min": 0.01}),
}


def optimizer(*rates: float) -> optim.Optimizer:
    return optim.SGD([{"params": [nn.Parameter([0.0])], "lr": rate} for rate in rates or (1.0,)])


def rates(schedule: optim.Scheduler, steps: int) -> list[float]:
    """The rate of the first group at the start and after each step."""
    found = [schedule.optimizer.param_groups[0]["lr"]]
    for _ in range(steps):
        schedule.step()
        found.append(schedule.optimizer.param_groups[0]["lr"])
    return found


def test_every_schedule_has_a_row_in_the_table():
    found = {name for name, value in vars(optim).items() if isinstance(value, type)}
    found -= {"SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "Scheduler", "ReduceLROnPlateau"}
    assert found == {make.__name__ for make, _ in SCHEDULES.values()}


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_are_pytorchs_in_every_group(name):
    torch = pytest.importorskip("torch")
    make, options = SCHEDULES[name]
    ours = optimizer(1.0, 0.3)
    theirs = torch.optim.SGD([{"params": [torch.zeros(1)], "lr": lr} for lr in (1.0, 0.3)])
    schedule = make(ours, **options)
    reference = getattr(torch.optim.lr_scheduler, make.__name__)(theirs, **options)
    for _ in range(13):
        for group, expected in zip(ours.param_groups, theirs.param_groups, strict=True):
            assert group["lr"] == pytest.approx(expected["lr"], rel=1e-12, abs=1e-15)
        schedule.step()
        theirs.step()
        reference.step()


def test_closed_forms():
    assert rates(optim.LambdaLR(optimizer(2.0), lambda t: 0.5**t), 3) == [2, 1, 0.5, 0.25]
    assert rates(optim.LinearLR(optimizer(), 1.0, 0.0, 4), 6) == [1, 0.75, 0.5, 0.25, 0, 0, 0]
    assert rates(optim.LinearLR(optimizer(3.0)), 6) == pytest.approx([1, 1.4, 1.8, 2.2, 2.6, 3, 3])
    assert rates(optim.StepLR(optimizer(), 2), 5) == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    assert rates(optim.CosineAnnealingLR(optimizer(), 2), 4) == pytest.approx([1, 0.5, 0, 0, 0])
    assert rates(optim.CosineAnnealingWarmRestarts(optimizer(), 2), 4) == pytest.approx([1, 0.5, 1, 0.5, 1])


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_continues_where_its_state_was_taken(name, tmp_path):
    make, options = SCHEDULES[name]
    straight = rates(make(optimizer(0.8), **options), 9)
    schedule = make(optimizer(0.8), **options)
    rates(schedule, 4)
    metagrad.save({"s": schedule.state_dict(), "o": schedule.optimizer.state_dict()}, tmp_path / "x.npz")
    saved = metagrad.load(tmp_path / "x.npz")
    resumed = optimizer(123.0)
    resumed.load_state_dict(saved["o"])
    again = make(resumed, **options)
    again.load_state_dict(saved["s"])
    assert rates(again, 5) == straight[4:]


def test_rates_are_python_floats_whatever_the_schedule_returns():
    schedule = optim.LambdaLR(optimizer(), lambda t: np.float64(0.5))
    assert type(schedule.optimizer.param_groups[0]["lr"]) is float


def test_a_group_added_after_the_schedule_was_made_is_not_passed_over():
    schedule = optim.StepLR(optimizer(), 1)
    schedule.optimizer.add_param_group({"params": [nn.Parameter([0.0])]})
    with pytest.raises(RuntimeError, match="made for 1 parameter groups, the optimizer has 2"):
        schedule.step()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda o: optim.LinearLR(o, total_iters=0), "LinearLR: total_iters is 0"),
        (lambda o: optim.StepLR(o, 0), "StepLR: step_size is 0"),
        (lambda o: optim.CosineAnnealingLR(o, 0), "CosineAnnealingLR: T_max is 0"),
        (lambda o: optim.CosineAnnealingWarmRestarts(o, 0), "WarmRestarts: T_0 is 0"),
        (lambda o: optim.ReduceLROnPlateau(o, mode="low"), "'min' or 'max', not 'low'"),
        (lambda o: optim.ReduceLROnPlateau(o, factor=1.0), "factor is 1.0"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make, words):
    o = optimizer(0.7)
    with pytest.raises(ValueError, match=words):
        make(o)
    assert o.param_groups[0]["lr"] == 0.7


def test_a_schedule_of_ones_own_needs_only_rate():
    class Halving(optim.Scheduler):
        def rate(self, start, t):
            return start / 2**t

    assert rates(Halving(optimizer()), 2) == [1, 0.5, 0.25]
    with pytest.raises(NotImplementedError, match="Scheduler must define rate"):
        optim.Scheduler(optimizer())


# ── ReduceLROnPlateau ────────────────────────────────────────────────────────────────────────────────


def plateau(values: list[float], **options) -> list[float]:
    o = optimizer(1.0)
    schedule = optim.ReduceLROnPlateau(o, **options)
    found = []
    for value in values:
        schedule.step(value)
        found.append(o.param_groups[0]["lr"])
    return found


def test_plateau_waits_for_its_patience_and_starts_to_wait_anew():
    assert plateau([3, 3, 3, 3, 3, 3, 3], patience=2, factor=0.5) == [1, 1, 1, 0.5, 0.5, 0.5, 0.25]
    assert plateau([3, 3, 2, 3, 3, 1], patience=1, factor=0.5) == [1, 1, 1, 1, 0.5, 0.5]
    assert plateau([1, 2, 2, 2], mode="max", patience=0, factor=0.5) == [1, 1, 0.5, 0.25]


def test_plateau_counts_only_changes_beyond_its_threshold_also_for_negative_values():
    assert plateau([1.0, 0.95], patience=0, threshold=0.1, factor=0.5) == [1, 0.5]
    assert plateau([1.0, 0.85], patience=0, threshold=0.1, factor=0.5) == [1, 1]
    assert plateau([-1.0, -1.05], patience=0, threshold=0.1, factor=0.5) == [1, 0.5]
    assert plateau([-1.0, -1.15], patience=0, threshold=0.1, factor=0.5) == [1, 1]


def test_plateau_ends_at_its_lowest_rate_and_never_raises_one():
    assert plateau([1, 1, 1, 1], patience=0, factor=0.1, min_lr=0.05) == pytest.approx([1, 0.1, 0.05, 0.05])
    assert plateau([1, 1], patience=0, min_lr=5.0) == [1, 1]


def test_plateau_takes_nan_for_no_improvement():
    assert plateau([1, math.nan, math.nan], patience=1, factor=0.5) == [1, 1, 0.5]
    assert plateau([math.nan, 5, 5], patience=1, factor=0.5) == [1, 1, 1]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_plateau_gives_pytorchs_rates(mode):
    torch = pytest.importorskip("torch")
    ours, theirs = optimizer(1.0, 0.5), torch.optim.SGD([torch.zeros(1)], lr=1.0)
    options = {"mode": mode, "factor": 0.5, "patience": 2, "threshold": 0.05, "min_lr": 1e-3}
    schedule = optim.ReduceLROnPlateau(ours, **options)
    reference = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    for value in np.random.default_rng(0).uniform(1, 2, 60):
        schedule.step(value)
        reference.step(value)
        assert ours.param_groups[0]["lr"] == pytest.approx(theirs.param_groups[0]["lr"], rel=1e-12)


def test_plateau_continues_from_its_state(tmp_path):
    values = [3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    straight = plateau(values, patience=1)
    o = optimizer(1.0)
    schedule = optim.ReduceLROnPlateau(o, patience=1)
    metagrad.save(schedule.state_dict(), tmp_path / "fresh.npz")
    assert metagrad.load(tmp_path / "fresh.npz")["best"] == math.inf
    for value in values[:4]:
        schedule.step(value)
    again = optim.ReduceLROnPlateau(o, patience=1)
    again.load_state_dict(schedule.state_dict())
    for value, expected in zip(values[4:], straight[4:], strict=True):
        again.step(value)
        assert o.param_groups[0]["lr"] == expected
