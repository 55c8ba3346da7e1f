"""Recurrent layers over sequences, by PyTorch's formulas.

x (T, B, inputs), the state (B, H), weight_ih (gates·H, inputs), weight_hh (gates·H, H), both biases (gates·H,) or
None → the states after each step, (T, B, H). With `mask` (T, B), a sequence's state stays where its mask is 0.
"""

from __future__ import annotations

from typing import Any

from ..ops import recurrence
from ..tensor import Tensor, record
from .arguments import as_tensor, constant_like
from .linalg import linear


def rnn(
    x: Any,
    h: Any,
    weight_ih: Any,
    weight_hh: Any,
    bias_ih: Any = None,
    bias_hh: Any = None,
    mask: Any = None,
    nonlinearity: str = "tanh",
) -> Tensor:
    """h' = tanh(W x + b + V h + c), or max(0, …) with nonlinearity="relu"."""
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"rnn: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
    a, mask = _input_part("rnn", x, h, weight_ih, weight_hh, _sum(bias_ih, bias_hh), mask, gates=1)
    return record(recurrence.RNN, a, h, weight_hh, mask=mask, relu=nonlinearity == "relu")


def gru(
    x: Any, h: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any = None, bias_hh: Any = None, mask: Any = None
) -> Tensor:
    """h' = (1 − z) n + z h; r, z = σ(W x + b + V h + c), n = tanh(W x + b + r (V h + c)); gates in order r, z, n."""
    a, mask = _input_part("gru", x, h, weight_ih, weight_hh, bias_ih, mask, gates=3)
    bias_hh = Tensor.zeros(weight_hh.shape[0], dtype=a.dtype, device=a.device) if bias_hh is None else bias_hh
    return record(recurrence.GRU, a, h, weight_hh, bias_hh, mask=mask)


def lstm(
    x: Any, state: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any = None, bias_hh: Any = None, mask: Any = None
) -> Tensor:
    """c' = f c + i g, h' = o tanh c'; i, f, o = σ(W x + b + V h + c), g = tanh(…); gates in the order i, f, g, o.

    The state, and the states returned, are (…, 2H): h beside c.
    """
    a, mask = _input_part("lstm", x, state, weight_ih, weight_hh, _sum(bias_ih, bias_hh), mask, gates=4)
    return record(recurrence.LSTM, a, state, weight_hh, mask=mask)


def _sum(bias_ih: Any, bias_hh: Any) -> Any:
    return bias_ih if bias_hh is None else bias_hh if bias_ih is None else bias_ih + bias_hh


def _input_part(
    name: str, x: Any, state: Any, weight_ih: Any, weight_hh: Any, bias: Any, mask: Any, gates: int
) -> tuple[Tensor, Any]:
    """W x + b of all steps, and the mask as numbers that every entry of a state meets. Checks the shapes."""
    x, state = as_tensor(x), as_tensor(state)
    hidden = weight_hh.shape[-1]
    parts = 2 if name == "lstm" else 1
    if x.ndim != 3 or not len(x) or state.shape != (x.shape[1], parts * hidden):
        raise ValueError(
            f"{name}: needs x (T, B, inputs) of at least one step and a state (B, {parts * hidden}), "
            f"got {x.shape} and {state.shape}"
        )
    if weight_hh.shape != (gates * hidden, hidden) or weight_ih.shape[0] != gates * hidden:
        raise ValueError(
            f"{name}: weights are ({gates}H, inputs) and ({gates}H, H), not {weight_ih.shape} and {weight_hh.shape}"
        )
    if mask is not None:
        mask = constant_like(mask, x)[:, :, None]
        if mask.shape[:2] != x.shape[:2]:
            raise ValueError(f"{name}: the mask has shape {mask.shape[:2]}, the sequences {x.shape[:2]}")
    return linear(x, weight_ih, bias), mask
