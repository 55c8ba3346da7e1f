"""Attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor
from .activation import softmax
from .arguments import as_tensor, constant
from .arithmetic import where


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    """softmax(q kᵀ · scale) v. query (..., L, d), key (..., S, d), value (..., S, e) → (..., L, e).

    mask: booleans that broadcast to (..., L, S); where it is False a query does not see a key. causal: query i sees
        keys 0 … i only. A query that sees no key gets zeros.
    scale: 1/√d unless said.
    """
    query, key, value = as_tensor(query), as_tensor(key), as_tensor(value)
    if key.shape[:-1] != value.shape[:-1] or query.shape[-1:] != key.shape[-1:] or min(query.ndim, key.ndim) < 2:
        raise ValueError(
            "scaled_dot_product_attention: needs query (..., L, d), key (..., S, d) and value (..., S, e), "
            f"got {query.shape}, {key.shape} and {value.shape}"
        )
    scores = query * (query.shape[-1] ** -0.5 if scale is None else scale) @ key.swapaxes(-1, -2)
    seen = _seen(scores, mask, causal)
    if seen is None:
        return softmax(scores) @ value
    # the smallest number rather than −∞: a row of −∞ alone would be NaN; what is not seen then weighs 0
    lowest = float(np.finfo(scores.dtype).min)
    return where(seen, softmax(where(seen, scores, lowest)), 0.0) @ value


def _seen(scores: Tensor, mask: Any, causal: bool) -> Any:
    """Which keys each query sees: booleans, or None where it is all of them."""
    seen = None if mask is None else constant(mask, scores)
    if seen is not None and seen.dtype != bool:
        raise TypeError(
            f"scaled_dot_product_attention: a mask is of booleans, True where a key is seen; not {seen.dtype}"
        )
    if causal:
        length, keys = scores.shape[-2:]
        with scores.device.active():
            lower = scores.device.library.tri(length, keys, dtype=bool)
            seen = lower if seen is None else seen & lower
    return seen
