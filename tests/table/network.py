"""Normalisation, recurrent layers and attention, against loops written plainly."""

from __future__ import annotations

from typing import Any

import numpy as np

from metagrad import functional as F

from .activation import softmax
from .samples import Op, Sample, with_constants


def _layer_norm(x, weight=1.0, bias=0.0, *, shape: Any, eps: float = 1e-5):
    axes = tuple(range(-np.size(shape), 0))
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps) * weight + bias


def _batch_norm(x, mean=None, var=None, weight=None, bias=None, eps=1e-5):
    """Channel by channel; by the batch's own mean and variance where none are given."""
    out = np.empty_like(x)
    for c in range(x.shape[1]):
        m, v = (x[:, c].mean(), x[:, c].var()) if mean is None else (mean[c], var[c])
        out[:, c] = (x[:, c] - m) / np.sqrt(v + eps) * (1 if weight is None else weight[c]) + (0 if bias is None else bias[c])
    return out


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _over_time(step):
    """The states of a recurrent step, one after the other; a masked sequence keeps its state."""

    def run(x, state, wi, wh, bi=0.0, bh=0.0, mask=None, **options):
        states = []
        for t in range(len(x)):
            new = step(x[t] @ wi.T + bi, state, wh, bh, **options)
            state = new if mask is None else np.where(np.asarray(mask)[t][:, None] > 0, new, state)
            states.append(state)
        return np.stack(states)

    return run


def _rnn(a, h, w, b, nonlinearity="tanh"):
    return {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}[nonlinearity](a + h @ w.T + b)


def _gru(a, h, w, b):
    (ar, az, an), (hr, hz, hn) = np.split(a, 3, axis=-1), np.split(h @ w.T + b, 3, axis=-1)
    z, n = _sigmoid(az + hz), np.tanh(an + _sigmoid(ar + hr) * hn)
    return (1 - z) * n + z * h


def _lstm(a, state, w, b):
    h, c = np.split(state, 2, axis=-1)
    i, f, g, o = np.split(a + h @ w.T + b, 4, axis=-1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return np.concatenate([_sigmoid(o) * np.tanh(c), c], axis=-1)


def _attention(q, k, v, mask=True, causal=False, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    seen = np.broadcast_to(np.asarray(mask) & (np.tri(*scores.shape[-2:], dtype=bool) | (not causal)), scores.shape)
    weights = np.where(seen, softmax(np.where(seen, scores, -1e30), -1), 0)
    return weights @ v


ENDED = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 0, 0]])  # 4 steps of 3 sequences
SEEN = np.array([[True, True, False, True], [False, True, True, True], [False, False, False, False]])


def _sequences(gates: int, hidden: int = 2, parts: int = 1, **options: Any) -> list[Sample]:
    x, state, wi, wh = (4, 3, 2), (3, parts * hidden), (gates * hidden, 2), (gates * hidden, hidden)
    bias = (gates * hidden,)
    return [
        Sample((x, state, wi, wh), options), Sample((x, state, wi, wh, bias, bias), options),
        Sample((x, state, wi, wh, bias, bias), {"mask": ENDED, **options}), Sample(((1, 3, 2), state, wi, wh, bias, bias), options),
    ]  # fmt: skip


NETWORK = [
    Op("layer_norm", lambda x, *affine, **options: F.layer_norm(x, options["shape"], *affine), _layer_norm,
       [Sample(((2, 4), (4,), (4,)), {"shape": 4}), Sample(((4,),), {"shape": (4,)}), Sample(((3, 2, 4), (2, 4)), {"shape": (2, 4)})]),
    Op("batch_norm", F.batch_norm, _batch_norm, [Sample((shape, (3,), (3,), (3,), (3,))) for shape in ((2, 3), (2, 3, 2), (2, 3, 2, 2), (0, 3))]
       + [Sample(((2, 3, 2), (3,), (3,)), {"eps": 0.1})], domain="positive"),
    Op("batch_norm in training", lambda x, *affine, **options: F.batch_norm(x, None, None, *affine, training=True, **options),
       lambda x, *affine, **options: _batch_norm(x, None, None, *affine, **options),
       [Sample((shape, (3,), (3,))) for shape in ((4, 3), (2, 3, 2), (2, 3, 2, 2))] + [Sample(((4, 3, 2),), {"eps": 0.1})]),
    Op("rnn", with_constants(F.rnn), _over_time(_rnn), _sequences(1)),
    Op("rnn with relu", with_constants(lambda *xs, **options: F.rnn(*xs, nonlinearity="relu", **options)),
       _over_time(lambda *args: _rnn(*args, nonlinearity="relu")), _sequences(1), domain="positive"),
    Op("gru", with_constants(F.gru), _over_time(_gru), _sequences(3)),
    Op("lstm", with_constants(F.lstm), _over_time(_lstm), _sequences(4, parts=2)),
    Op("scaled_dot_product_attention", with_constants(F.scaled_dot_product_attention), _attention,
       [Sample(((3, 2), (4, 2), (4, 5))), Sample(((2, 1, 3, 2), (4, 4, 2), (4, 4, 3)), {"scale": 0.3}), Sample(((3, 2), (3, 2), (3, 2)), {"causal": True}),
        Sample(((3, 2), (4, 2), (4, 2)), {"mask": SEEN}), Sample(((2, 3, 2), (2, 4, 2), (2, 4, 2)), {"mask": SEEN, "causal": True})]),
]  # fmt: skip
