"""The table of operations: for each, how to call it, what NumPy says, and inputs to try.

It drives the checks of test_ops.py on every device. An operation that is not here fails the suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metagrad import Tensor
from metagrad import functional as F

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
        "distinct" draws entries that differ by far more than a difference step.
    smooth: second derivatives exist and are checked.
    """

    name: str
    call: Callable[..., Tensor]
    reference: Callable[..., np.ndarray]
    samples: list[Sample]
    domain: str = "real"
    smooth: bool = True

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
    return rng.choice([-1.0, 1.0], shape) * rng.uniform(0.3, 0.7, shape) + rng.integers(0, 2, shape)


def _elementwise(shapes: list = SHAPES, **constants: Any) -> list[Sample]:
    return [Sample((shape,), constants) for shape in shapes] + [Sample(((3, 2),), constants, layout="F")]


def _pairs() -> list[Sample]:
    return [Sample(pair) for pair in PAIRS]


def _along_axes(axes: list, keepdims: bool = True) -> list[Sample]:
    kept = [False, True] if keepdims else [None]
    return [
        Sample((shape,), {"axis": axis} if keep is None else {"axis": axis, "keepdims": keep})
        for shape, axis in axes
        for keep in kept
    ]


def _logsumexp(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


def _cross_entropy(x: np.ndarray, target: Any, reduction: str = "mean") -> np.ndarray:
    logs = np.log(_softmax(x, axis=1))
    losses = -np.take_along_axis(logs, np.asarray(target)[:, None], axis=1)[:, 0]
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](losses)


def _bce(x, target, weight=1.0, pos_weight=1.0, reduction="mean"):
    target, p = np.asarray(target), 1 / (1 + np.exp(-x))
    losses = -(pos_weight * target * np.log(p) + (1 - target) * np.log(1 - p)) * weight
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](losses)


def _index_samples() -> list[Sample]:
    indices = [
        1, -1, slice(0, 2), slice(None, None, -1), slice(None, None, 2), ..., None, (0, 1), (slice(None), 0),
        (..., 1), (None, 2), np.array([0, 2, 0, -1]), np.array([[0, 1], [1, 1]]), [2, 0], np.array([True, False, True]),
        (np.array([0, 2, 2]), np.array([1, 0, 0])), (slice(None), np.array([1, 1, 0])), (np.array([0, 0]), 1),
        np.ones((3, 2), dtype=bool), np.array([], dtype=np.int64), (slice(1, 1), 0), np.int64(1), (np.array([1, 1]), None, slice(0, 1)),
    ]  # fmt: skip
    return [Sample(((3, 2),), {"index": index}) for index in indices]


def _on(x: Tensor, value: Any) -> Any:
    """Index and target arrays on the device of x, as a user would put them there."""
    if isinstance(value, tuple):
        return tuple(_on(x, part) for part in value)
    return Tensor(value).to(x.device) if isinstance(value, np.ndarray) else value


IDS = np.array([[0, 2, 2], [1, 0, 2]])
LABELS = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
MASK = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 1.0]])
CONDITION = np.array([[True, False, True], [False, False, True]])
MATMULS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((2, 0), (0, 3)), ((0, 3), (3, 2)),
]  # fmt: skip
EINSUMS = [
    ("ij,jk->ik", ((2, 3), (3, 4))), ("be,bce->bc", ((2, 3), (2, 4, 3))), ("ij->ji", ((2, 3),)), ("ij->", ((2, 3),)),
    ("ii->i", ((3, 3),)), ("ii", ((3, 3),)), ("ij,ij->i", ((2, 3), (2, 3))), ("i,j->ij", ((2,), (3,))), ("ij,k->k", ((2, 3), (4,))),
    ("...ij,...jk->...ik", ((5, 2, 3), (5, 3, 4))), ("...i,i", ((2, 3), (3,))), ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 4))),
    ("iij->j", ((2, 2, 3),)), ("bij,bjk", ((2, 2, 3), (2, 3, 2))), ("i...->...", ((3, 2),)), ("...i,...i->...", ((4, 1, 3), (2, 3))),
]  # fmt: skip


def _bce_samples() -> list[Sample]:
    options = [{}, {"reduction": "sum"}, {"reduction": "none"}, {"weight": MASK}, {"pos_weight": 2.5}, {"weight": MASK, "pos_weight": 0.5}]
    return [Sample(((2, 3),), {"target": LABELS, **option}) for option in options]


def _cross_entropy_samples() -> list[Sample]:
    plain = [Sample(((2, 3),), {"target": np.array([2, 0]), "reduction": r}) for r in ("mean", "sum", "none")]
    return [*plain, Sample(((2, 3, 2),), {"target": np.array([[2, 0], [1, 1]]), "reduction": "mean"})]


def _with_constants(function: Callable) -> Callable:
    """Call a function of F with its array constants moved to the first input's device."""

    def call(x: Tensor, *others: Tensor, **constants: Any) -> Tensor:
        return function(x, *others, **{name: _on(x, value) for name, value in constants.items()})

    return call


TABLE = [
    # arithmetic
    Op("add", lambda x, y: x + y, np.add, _pairs()),
    Op("add a number", lambda x: 2 + x + 0.5, lambda x: x + 2.5, _elementwise()),
    Op("sub", lambda x, y: x - y, np.subtract, _pairs()),
    Op("sub from a number", lambda x: 1.5 - x, lambda x: 1.5 - x, _elementwise()),
    Op("mul", lambda x, y: x * y, np.multiply, _pairs()),
    Op("mul by a number", lambda x: 3 * x, lambda x: 3 * x, _elementwise()),
    Op("mul by itself", lambda x: x * x, lambda x: x * x, _elementwise()),
    Op("div", lambda x, y: x / y, np.divide, _pairs()),
    Op("div a number", lambda x: 1 / x, lambda x: 1 / x, _elementwise()),
    Op("neg", lambda x: x.neg(), np.negative, _elementwise()),
    Op("pow", lambda x, y: x**y, np.power, _pairs(), domain="positive"),
    Op("pow by a number", lambda x: x**3, lambda x: x**3, _elementwise()),
    Op("pow by a fraction", lambda x: x**0.5, lambda x: x**0.5, _elementwise(), domain="positive"),
    Op("pow of a number", lambda x: 2.0**x, lambda x: 2.0**x, _elementwise()),
    Op("abs", F.abs, np.abs, _elementwise()),
    Op("sign", F.sign, np.sign, _elementwise()),
    Op("exp", F.exp, np.exp, _elementwise()),
    Op("expm1", F.expm1, np.expm1, _elementwise()),
    Op("log", F.log, np.log, _elementwise(), domain="positive"),
    Op("log1p", F.log1p, np.log1p, _elementwise(), domain="positive"),
    Op("sqrt", F.sqrt, np.sqrt, _elementwise(), domain="positive"),
    Op("maximum", F.maximum, np.maximum, _pairs()),
    Op("maximum of a number", lambda x: F.maximum(0.1, x), lambda x: np.maximum(x, 0.1), _elementwise()),
    Op("minimum", F.minimum, np.minimum, _pairs()),
    Op("clip", F.clip, lambda x, low, high: np.clip(x, low, high), _elementwise(low=-0.1, high=1.05)),
    Op("clip on one side", F.clip, lambda x, high: np.minimum(x, high), _elementwise(high=0.1)),
    Op("where", _with_constants(lambda x, y, condition: F.where(condition, x, y)),
       lambda x, y, condition: np.where(condition, x, y),
       [Sample(pair, {"condition": CONDITION}) for pair in [((2, 3), (2, 3)), ((), (2, 3)), ((3,), (2, 1))]]),
    Op("astype", lambda x: x.astype(np.float64), lambda x: x, _elementwise()),
    # activations
    Op("tanh", F.tanh, np.tanh, _elementwise()),
    Op("sigmoid", F.sigmoid, lambda x: 1 / (1 + np.exp(-x)), _elementwise()),
    Op("logsigmoid", F.logsigmoid, lambda x: -np.log1p(np.exp(-x)), _elementwise()),
    Op("relu", F.relu, lambda x: np.maximum(x, 0), _elementwise()),
    Op("softplus", F.softplus, lambda x: np.log1p(np.exp(x)), _elementwise()),
    Op("softmax", F.softmax, _softmax, _along_axes([((3,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 2), 1)], keepdims=False)),
    Op("log_softmax", F.log_softmax, lambda x, axis: np.log(_softmax(x, axis)),
       _along_axes([((3,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 2), 1)], keepdims=False)),
    # reductions
    Op("sum", F.sum, np.sum, _along_axes(AXES + EMPTY_AXES)),
    Op("mean", F.mean, np.mean, _along_axes(AXES)),
    Op("max", F.max, np.max, _along_axes(AXES), domain="distinct"),
    Op("min", F.min, np.min, _along_axes(AXES), domain="distinct"),
    Op("logsumexp", F.logsumexp, _logsumexp, _along_axes(AXES)),
    # shape
    Op("reshape", lambda x, shape: x.reshape(shape), lambda x, shape: x.reshape(shape),
       [Sample(((2, 3),), {"shape": s}) for s in [(6,), (3, 2), (-1,), (1, 2, 3)]] + [Sample(((0,),), {"shape": (2, 0)})]),
    Op("transpose", lambda x, axes: x.transpose(axes), np.transpose,
       [Sample(((2, 3, 4),), {"axes": a}) for a in [(2, 0, 1), (0, 1, 2), (-1, 0, 1)]]),
    Op("T", lambda x: x.T, np.transpose, [Sample(((2, 3),)), Sample(((3,),)), Sample(((),)), Sample(((2, 3, 4),))]),
    Op("swapaxes", lambda x, a, b: x.swapaxes(a, b), lambda x, a, b: x.swapaxes(a, b), [Sample(((2, 3, 4),), {"a": 0, "b": -1})]),
    Op("squeeze", lambda x, axis: x.squeeze(axis), lambda x, axis: x.squeeze(axis),
       [Sample(((1, 3, 1),), {"axis": a}) for a in [None, 0, -1, (0, 2)]]),
    Op("unsqueeze", lambda x, axis: x.unsqueeze(axis), np.expand_dims, [Sample(((2, 3),), {"axis": a}) for a in [0, 1, 2, -1, -3]]),
    Op("broadcast_to", lambda x, shape: F.broadcast_to(x, shape), lambda x, shape: np.broadcast_to(x, shape),
       [Sample(((3,),), {"shape": (2, 3)}), Sample(((2, 1),), {"shape": (4, 2, 3)}), Sample(((),), {"shape": (2,)})]),
    Op("unfold", lambda x, axis, size, step: x.unfold(axis, size, step),
       lambda x, axis, size, step: np.lib.stride_tricks.sliding_window_view(x, size, axis)[(slice(None),) * (axis % x.ndim) + (slice(None, None, step),)],
       [Sample(((9,),), {"axis": 0, "size": n, "step": k}) for n, k in [(3, 1), (3, 2), (2, 3), (9, 1), (1, 1), (5, 2)]]
       + [Sample(((2, 7, 3),), {"axis": a, "size": 3, "step": 2}) for a in (1, -1, -2)] + [Sample(((0, 4),), {"axis": 1, "size": 2, "step": 1})]),
    Op("concatenate", lambda *xs, axis: F.concatenate(xs, axis), lambda *xs, axis: np.concatenate(xs, axis),
       [Sample(((2, 3), (1, 3), (0, 3)), {"axis": 0}), Sample(((2, 1), (2, 3)), {"axis": -1}), Sample(((3,),), {"axis": 0})]),
    Op("stack", lambda *xs, axis: F.stack(xs, axis), lambda *xs, axis: np.stack(xs, axis),
       [Sample(((2, 3), (2, 3)), {"axis": a}) for a in (0, 1, -1)] + [Sample(((), ()), {"axis": 0})]),
    Op("to", lambda x: x.cpu() * 2, lambda x: x * 2, _elementwise()),
    # places
    Op("getitem", _with_constants(lambda x, index: x[index]), lambda x, index: x[index], _index_samples()),
    Op("gather", _with_constants(lambda x, axis, index: x.gather(axis, index)), lambda x, axis, index: np.take_along_axis(x, index, axis),
       [Sample(((2, 3),), {"axis": 1, "index": IDS}), Sample(((3, 3),), {"axis": 0, "index": IDS}), Sample(((2, 3),), {"axis": -1, "index": -IDS[:, :1]})]),
    Op("take_along_axis", _with_constants(F.take_along_axis), lambda x, axis, index: np.take_along_axis(x, index, axis), [Sample(((2, 3),), {"axis": 1, "index": IDS})]),
    Op("embedding", _with_constants(F.embedding), lambda w, ids, **_: w[ids],
       [Sample(((4, 2),), {"ids": IDS, "sparse": s}) for s in (True, False)] + [Sample(((4, 2),), {"ids": IDS[0, 0]}), Sample(((4, 2),), {"ids": IDS[:0]})]),
    Op("index_fill", _with_constants(F.index_fill), lambda x, axis, index, value: _filled(x, axis, index, value),
       [Sample(((2, 3),), {"axis": a, "index": np.array([0, 1, 1]), "value": 0.0}) for a in (0, 1, -1)]),
    Op("setitem", lambda x, y, index: _set(x, y, _on(x, index)), lambda x, y, index: _set_numpy(x, y, index),
       [Sample(((3, 2), (2,)), {"index": i}) for i in (0, slice(0, 2), np.array([2, 0]), ...)] + [Sample(((3, 2), ()), {"index": np.array([True, False, True])})]),
    # products
    Op("matmul", F.matmul, np.matmul, [Sample(pair) for pair in MATMULS]),
    Op("einsum", lambda *xs, subscripts: F.einsum(subscripts, *xs), lambda *xs, subscripts: np.einsum(subscripts, *xs),
       [Sample(shapes, {"subscripts": s}) for s, shapes in EINSUMS]),
    Op("linear", F.linear, lambda x, w, b: x @ w.T + b, [Sample(((2, 3), (4, 3), (4,))), Sample(((3,), (4, 3), (4,))), Sample(((5, 2, 3), (4, 3), (4,)))]),
    # losses
    Op("mse_loss", F.mse_loss, lambda x, y, reduction: {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction]((x - y) ** 2),
       [Sample(((2, 3), (2, 3)), {"reduction": r}) for r in ("mean", "sum", "none")]),
    Op("cross_entropy", _with_constants(F.cross_entropy), _cross_entropy, _cross_entropy_samples()),
    Op("binary_cross_entropy_with_logits of one target", F.binary_cross_entropy_with_logits,
       lambda x, target, reduction: _bce(x, np.full(x.shape, target), reduction=reduction),
       [Sample(((2, 3),), {"target": t, "reduction": r}) for t in (0, 1) for r in ("mean", "none")]),
    Op("binary_cross_entropy_with_logits", _with_constants(F.binary_cross_entropy_with_logits), _bce, _bce_samples()),
    # constants that rules need
    Op("zeros_like", lambda x: x + F.zeros_like(x), lambda x: x, _elementwise()),
]  # fmt: skip


def _filled(x: np.ndarray, axis: int, index: np.ndarray, value: float) -> np.ndarray:
    out = np.moveaxis(x.copy(), axis, 0)
    out[index] = value
    return np.moveaxis(out, 0, axis)


def _set(x: Tensor, y: Tensor, index: Any) -> Tensor:
    out = x * 1
    out[index] = y
    return out


def _set_numpy(x: np.ndarray, y: np.ndarray, index: Any) -> np.ndarray:
    out = x.copy()
    out[index] = y
    return out


def rows() -> Iterator[tuple[Op, Sample]]:
    for op in TABLE:
        for sample in op.samples:
            yield op, sample
