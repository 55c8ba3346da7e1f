"""The nonlinearities of networks."""

from __future__ import annotations

import math

import numpy as np

from metagrad import functional as F

from .samples import Op, Sample, along_axes, elementwise

erf = np.vectorize(math.erf, otypes=[float])


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


ACTIVATION = [
    Op("tanh", F.tanh, np.tanh, elementwise()),
    Op("sigmoid", F.sigmoid, lambda x: 1 / (1 + np.exp(-x)), elementwise()),
    Op("logsigmoid", F.logsigmoid, lambda x: -np.log1p(np.exp(-x)), elementwise()),
    Op("relu", F.relu, lambda x: np.maximum(x, 0), elementwise()),
    Op("softplus", F.softplus, lambda x: np.log1p(np.exp(x)), elementwise()),
    Op("softmax", F.softmax, softmax, along_axes([((3,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 2), 1)], keepdims=False)),
    Op("log_softmax", F.log_softmax, lambda x, axis: np.log(softmax(x, axis)),
       along_axes([((3,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 2), 1)], keepdims=False)),
    Op("gelu", F.gelu, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, elementwise()),
    Op("gelu by tanh", lambda x: F.gelu(x, approximate="tanh"),
       lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), elementwise()),
    Op("silu", F.silu, lambda x: x / (1 + np.exp(-x)), elementwise()),
    Op("elu", F.elu, lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))), elementwise() + elementwise(alpha=0.3)),
    Op("celu", F.celu, lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)), elementwise(alpha=0.3)),
    Op("selu", F.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))), elementwise()),
    Op("leaky_relu", F.leaky_relu, lambda x, slope=0.01: np.where(x > 0, x, slope * x), elementwise() + elementwise(slope=0.2)),
    Op("prelu", F.prelu, lambda x, w: np.where(x > 0, x, x * (w if w.size == 1 else w.reshape((-1,) + (1,) * (x.ndim - 2)))),
       [Sample(pair) for pair in [((2, 3), (1,)), ((2, 3), (3,)), ((2, 3, 4), (3,)), ((4,), (1,))]]),
    Op("hardtanh", F.hardtanh, lambda x: np.clip(x, -1, 1), elementwise()),
    Op("hardswish", F.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, elementwise()),
    Op("mish", F.mish, lambda x: x * np.tanh(np.log1p(np.exp(x))), elementwise()),
    Op("softsign", F.softsign, lambda x: x / (1 + abs(x)), elementwise()),
    Op("tanhshrink", F.tanhshrink, lambda x: x - np.tanh(x), elementwise()),
]  # fmt: skip
