"""Recurrent cells, and layers of them over sequences. Formulas and parameters are PyTorch's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import functional as F
from ..tensor import Tensor
from . import init
from .module import Module, Parameter


class Cell(Module):
    """One step of a recurrent layer, or, by `steps`, a whole sequence of them.

    weight_ih (gates·hidden, inputs), weight_hh (gates·hidden, hidden), bias_ih and bias_hh (gates·hidden,) start in
    U(−1/√hidden, 1/√hidden).
    """

    function: Callable[..., Tensor]  # of `functional`
    gates: int
    parts = 1  # of the state: an LSTM's are h and c

    def __init__(self, inputs: int, hidden: int, bias: bool = True, dtype: Any = np.float32) -> None:
        rows = self.gates * hidden
        self.weight_ih = Parameter(np.empty((rows, inputs), dtype))
        self.weight_hh = Parameter(np.empty((rows, hidden), dtype))
        self.bias_ih = Parameter(np.empty(rows, dtype)) if bias else None
        self.bias_hh = Parameter(np.empty(rows, dtype)) if bias else None
        for parameter in self.parameters():
            init.uniform_(parameter, -(hidden**-0.5), hidden**-0.5)

    @property
    def hidden(self) -> int:
        return self.weight_hh.shape[1]

    def steps(self, x: Tensor, state: Any = None, mask: Any = None) -> Tensor:
        """The states (T, B, parts·hidden) after each step of x (T, B, inputs), from a state (B, parts·hidden) or zeros.

        mask (T, B): 0 where a sequence has ended and keeps its state.
        """
        if state is None:
            state = Tensor.zeros(x.shape[1], self.parts * self.hidden, dtype=self.weight_hh.dtype, device=x.device)
        return self.function(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, mask)

    def forward(self, x: Any, state: Any = None) -> Any:
        """The state after x (B, inputs); x and the state may also come without the axis B."""
        x = x if isinstance(x, Tensor) else Tensor(x)
        state = self.joined(state)
        if x.ndim == 1:
            return self.split(self.steps(x[None, None], None if state is None else state[None])[0, 0])
        return self.split(self.steps(x[None], state)[0])

    def joined(self, state: Any) -> Any:
        """The state as one Tensor."""
        return state

    def split(self, state: Tensor) -> Any:
        """The state as its parts, where it has several."""
        return state

    def extra_repr(self) -> str:
        return f"{self.weight_ih.shape[1]}, {self.hidden}" + ("" if self.bias_ih is not None else ", bias=False")


class RNNCell(Cell):
    """h' = tanh(W x + b + V h + c), or max(0, …) with nonlinearity="relu". x (B, inputs), h (B, hidden) → h'."""

    gates = 1

    def __init__(
        self, inputs: int, hidden: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = np.float32
    ) -> None:
        super().__init__(inputs, hidden, bias, dtype)
        self.function = functools.partial(F.rnn, nonlinearity=nonlinearity)


class GRUCell(Cell):
    """A gated recurrent unit, see F.gru. x (B, inputs), h (B, hidden) → h'."""

    function = staticmethod(F.gru)
    gates = 3


class LSTMCell(Cell):
    """Long short-term memory, see F.lstm. x (B, inputs), (h, c) each (B, hidden) → (h', c')."""

    function = staticmethod(F.lstm)
    gates = 4
    parts = 2

    def joined(self, state: Any) -> Any:
        return None if state is None else F.concatenate(state, axis=-1)

    def split(self, state: Tensor) -> Any:
        return state[..., : self.hidden], state[..., self.hidden :]


class Recurrent(Module):
    """Cells over sequences: `layers` one on the other, each in one direction or in both.

    Called with x (T, B, inputs), or (B, T, inputs) if batch_first, or (T, inputs) for one sequence; a state, zeros
    unless given; and `lengths` (B,), where sequences are shorter than T. Returns the last layer's outputs, of x's form
    with hidden entries (twice as many, forward beside backward, if bidirectional) and zeros past a sequence's end; and
    the last state of every cell, (layers · directions, B, hidden), for an LSTM a pair: of that form is a state given.
    Between layers entries are dropped with probability `dropout` in training.
    """

    cell: type[Cell]

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **options: Any,
    ) -> None:
        self.directions = 2 if bidirectional else 1
        self.batch_first = batch_first
        self.dropout = dropout
        widths = [inputs] + [hidden * self.directions] * (layers - 1)
        self.cells = [self.cell(n, hidden, bias, **options) for n in widths for _ in range(self.directions)]

    def forward(self, x: Any, state: Any = None, lengths: Any = None) -> tuple[Tensor, Any]:
        x = x if isinstance(x, Tensor) else Tensor(x)
        single = x.ndim == 2
        x = x[:, None] if single else x.swapaxes(0, 1) if self.batch_first else x
        state = self.cells[0].joined(state)
        state = state[:, None] if state is not None and single else state
        mask, turned = self._order(x, lengths)
        last = []
        for k in range(0, len(self.cells), self.directions):
            if k:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for i, cell in enumerate(self.cells[k : k + self.directions], start=k):
                backward = i > k
                states = cell.steps(x[turned] if backward else x, None if state is None else state[i], mask)
                last.append(states[-1])
                h = states[..., : cell.hidden]
                outputs.append(h[turned] if backward else h)
            x = outputs[0] if len(outputs) == 1 else F.concatenate(outputs, axis=-1)
            x = x if mask is None else x * mask[:, :, None]
        x = x[:, 0] if single else x.swapaxes(0, 1) if self.batch_first else x
        final = F.stack(last)
        return x, self.cells[0].split(final[:, 0] if single else final)

    def _order(self, x: Tensor, lengths: Any) -> tuple[Any, Any]:
        """The mask of steps within each sequence, and the index that turns each one round within its length."""
        if lengths is None:
            return None, slice(None, None, -1)
        T, B = x.shape[:2]
        lengths = np.asarray(lengths)
        if lengths.shape != (B,) or lengths.dtype.kind not in "iu" or (lengths < 0).any() or (lengths > T).any():
            raise ValueError(f"lengths: one integer from 0 to {T} for each of {B} sequences, not {lengths.tolist()}")
        step = np.arange(T)[:, None]
        turned = np.where(step < lengths, lengths - 1 - step, step)
        mask = Tensor(step < lengths, dtype=x.dtype, device=x.device)
        return mask, (Tensor(turned, device=x.device), Tensor(np.arange(B), device=x.device))

    def extra_repr(self) -> str:
        return ", ".join(
            f"{name}={value}"
            for name, value in (
                ("batch_first", self.batch_first),
                ("dropout", self.dropout),
                ("bidirectional", self.directions == 2),
            )
            if value
        )


class RNN(Recurrent):
    """RNNCell over sequences; takes nonlinearity="relu" too. Arguments and results: see Recurrent."""

    cell = RNNCell


class GRU(Recurrent):
    """GRUCell over sequences. Arguments and results: see Recurrent."""

    cell = GRUCell


class LSTM(Recurrent):
    """LSTMCell over sequences; states are pairs (h, c). Arguments and results: see Recurrent."""

    cell = LSTMCell
