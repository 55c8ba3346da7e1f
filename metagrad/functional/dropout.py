"""Dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import random
from ..tensor import Tensor
from .arguments import as_tensor


def dropout(x: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Each entry 0 with probability p, else divided by 1 − p, so that its mean stays (Srivastava et al. 2014).

    Drawn from the random stream of x's device. Where not training, or p is 0, it is x itself.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is a probability, from 0 to 1, not {p}")
    x = as_tensor(x)
    if not training or p == 0:
        return x
    with x.device.active():
        kept = random.generator(x.device).random(x.shape, dtype=np.float32) >= p
        scale = kept * x.dtype.type(1 / (1 - p) if p < 1 else 0)
    return x * scale
