"""The nonlinearities of networks."""

from __future__ import annotations

import numpy as np

from metagrad import functional as F

from .samples import Op, along_axes, elementwise


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
]  # fmt: skip
