"""What the rows of the table are made of: operations, samples, and the inputs that are drawn for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metagrad import Tensor

SHAPES = [(), (3,), (2, 3), (1, 3), (0,), (2, 0)]
PAIRS = [
    ((), ()), ((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 3)), ((2, 3), ()),
    ((2, 3), (1, 3)), ((0,), (1,)), ((2, 0), (2, 1)), ((2, 1, 3), (4, 1)),
]  # fmt: skip
AXES = [
    ((), None), ((3,), None), ((3,), 0), ((3,), -1), ((2, 3), None), ((2, 3), 0), ((2, 3), -1), ((2, 3), (0, 1)),
    ((1, 3), 0), ((2, 3, 2), (0, -1)), ((2, 3, 2), 1),
]  # fmt: skip
EMPTY_AXES = [((0,), None), ((2, 0), -1), ((2, 0), None), ((0, 3), 0)]


@dataclass
class Sample:
    """Float inputs of these shapes, drawn from the operation's domain, and keyword constants."""

    shapes: tuple[tuple[int, ...], ...]
    constants: dict[str, Any] = field(default_factory=dict)
    layout: str = "C"  # "F": the memory of a transposed array


@dataclass
class Op:
    """call(*Tensors, **constants) is to equal reference(*arrays, **constants).

    domain: "real" keeps away from 0 and from integers; "positive"; "small" for exponents;
        "distinct" draws entries that differ by far more than a difference step; "zeros" makes half of them 0;
        "regular" draws square matrices that have an inverse.
    smooth: second derivatives exist and are checked. constant: nothing is differentiated, only values are checked.
    """

    name: str
    call: Callable[..., Tensor]
    reference: Callable[..., np.ndarray]
    samples: list[Sample]
    domain: str = "real"
    smooth: bool = True
    constant: bool = False

    def inputs(self, sample: Sample, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [np.asarray(_draw(rng, shape, self.domain), order=sample.layout) for shape in sample.shapes]


def _draw(rng: np.random.Generator, shape: tuple[int, ...], domain: str) -> np.ndarray:
    if domain == "positive":
        return rng.uniform(0.5, 2.0, shape)
    if domain == "small":
        return rng.uniform(-0.4, 0.4, shape)
    if domain == "distinct":
        size = int(np.prod(shape))
        return (rng.permutation(size) + rng.uniform(0, 0.5, size)).reshape(shape) / max(size, 1)
    if domain == "regular":
        return rng.uniform(-0.3, 0.3, shape) + (np.eye(shape[-1]) if len(shape) > 1 else 0)
    real = rng.choice([-1.0, 1.0], shape) * rng.uniform(0.3, 0.7, shape) + rng.integers(0, 2, shape)
    return real * rng.integers(0, 2, shape) if domain == "zeros" else real


def elementwise(shapes: list = SHAPES, **constants: Any) -> list[Sample]:
    return [Sample((shape,), constants) for shape in shapes] + [Sample(((3, 2),), constants, layout="F")]


def pairs() -> list[Sample]:
    return [Sample(pair) for pair in PAIRS]


def along_axes(axes: list, keepdims: bool = True) -> list[Sample]:
    kept = [False, True] if keepdims else [None]
    return [
        Sample((shape,), {"axis": axis} if keep is None else {"axis": axis, "keepdims": keep})
        for shape, axis in axes
        for keep in kept
    ]


def on(x: Tensor, value: Any) -> Any:
    """Index and target arrays on the device of x, as a user would put them there."""
    if isinstance(value, tuple):
        return tuple(on(x, part) for part in value)
    return Tensor(value).to(x.device) if isinstance(value, np.ndarray) else value


def with_constants(function: Callable) -> Callable:
    """Call a function of F with its array constants moved to the first input's device."""

    def call(x: Tensor, *others: Tensor, **constants: Any) -> Tensor:
        return function(x, *others, **{name: on(x, value) for name, value in constants.items()})

    return call
