"""Recurrent layers over a whole sequence. A step needs the one before it, so each layer is a rule of its own.

What a derivative needs of all steps is computed for all at once, from the states that the output holds; only
the gradient of the state runs back step by step. That takes 6 operations a step where a graph of single
operations takes 40.

Time is the first axis. `a` is the input's part of the gates, W x + b of all steps. `mask` (T, B, 1) is 0 where a
sequence has ended and its state stays what it is; None where all are of one length. Formulas, and the order of
the gates in the weights, are PyTorch's.
"""

from __future__ import annotations

from ..cuda import array_module
from ..function import Function


def _sigmoid(x):
    """σ(x) = ½ + ½ tanh(x/2), which overflows nowhere."""
    return array_module(x).tanh(x * 0.5) * 0.5 + 0.5


def _starts(first, states):
    """The state that each step started from."""
    return array_module(states).concatenate([first.reshape((1,) + first.shape), states[:-1]])


def _rows(x):
    """All steps of all sequences, one a row."""
    return x.reshape((-1, x.shape[-1]))


def _steps(last_first):
    """(T, B, ...) from the steps that a backward loop has collected."""
    steps = array_module(last_first[0]).concatenate(last_first[::-1])
    return steps.reshape((len(last_first), -1) + steps.shape[1:])


class RNN(Function):
    """h' = tanh(a + W h), or max(0, a + W h). a (T, B, H), h (B, H), W (H, H) → the states (T, B, H)."""

    saves_inputs = True
    saves_output = True

    def forward(self, a, h, weight, mask, relu):
        self.mask, self.relu = mask, relu
        xp = array_module(a)
        states = xp.empty(a.shape, dtype=a.dtype)
        columns = xp.ascontiguousarray(weight.T)  # made once: products with it are twice as fast
        for t in range(len(a)):
            new = a[t] + h @ columns
            new = xp.maximum(new, 0) if relu else xp.tanh(new)
            states[t] = h = new if mask is None else h + mask[t] * (new - h)
        return states

    def backward(self, grad, a, h, weight, states):
        slope = (states > 0).astype(grad.dtype) if self.relu else 1 - states * states
        if self.mask is not None:  # where it is 0 the state is no output of tanh, and the slope is 0
            slope = slope * self.mask
        da, carry = [], 0
        for t in reversed(range(len(a))):
            dh = grad[t] + carry
            da.append(dh * slope[t])
            carry = da[-1] @ weight
            if self.mask is not None:
                carry = carry + dh * (1 - self.mask[t])
        da = _steps(da)
        return da, carry, _rows(da).swapaxes(0, 1) @ _rows(_starts(h, states))


class GRU(Function):
    """h' = h + (1 − z)(n − h) with r, z = σ(a + W h + b) and n = tanh(a + r (W h + b)), each with its third of a, W, b.

    a (T, B, 3H), h (B, H), W (3H, H), b (3H,) → the states (T, B, H).
    """

    saves_inputs = True
    saves_output = True

    def forward(self, a, h, weight, bias, mask):
        self.mask = mask
        xp = array_module(a)
        states = xp.empty(a.shape[:2] + h.shape[1:], dtype=a.dtype)
        columns = xp.ascontiguousarray(weight.T)
        for t in range(len(a)):
            _, update, new, _ = self._gates(a[t], h, columns, bias, None if mask is None else mask[t])
            states[t] = h = h + update * (new - h)
        return states

    @staticmethod
    def _gates(a, h, columns, bias, mask):
        """r, 1 − z (0 where masked), n, and n's third of W h + b; of one step, or of all."""
        n = h.shape[-1]
        w = (_rows(h) @ columns + bias).reshape(a.shape)
        rz = _sigmoid(a[..., : 2 * n] + w[..., : 2 * n])
        reset, update = rz[..., :n], 1 - rz[..., n:]
        new = array_module(a).tanh(a[..., 2 * n :] + reset * w[..., 2 * n :])
        return reset, update if mask is None else update * mask, new, w[..., 2 * n :]

    def backward(self, grad, a, h, weight, bias, states):
        xp = array_module(grad)
        starts = _starts(h, states)
        reset, update, new, w = self._gates(a, starts, weight.T, bias, self.mask)
        # what the gates' gradients are of the state's, step by step: dr, dz, and W h's share of dn
        to_n = update * (1 - new * new)
        keep = 1 - update
        to_z = (starts - new) * update * keep
        to_r = to_n * w * reset * (1 - reset)
        slopes = xp.stack([to_r, to_z, to_n * reset], axis=2)  # (T, B, 3, H)
        da, dw, carry, n = [], [], 0, h.shape[-1]
        for t in reversed(range(len(a))):
            dh = grad[t] + carry
            dw.append((slopes[t] * dh[:, None]).reshape(a.shape[1:]))
            da.append(xp.concatenate([dw[-1][:, : 2 * n], dh * to_n[t]], axis=-1))
            carry = dh * keep[t] + dw[-1] @ weight
        dw = xp.concatenate(dw[::-1])
        return _steps(da), carry, dw.swapaxes(0, 1) @ _rows(starts), dw.sum(axis=0)


class LSTM(Function):
    """c' = f c + i g, h' = o tanh c' with i, f, o = σ(a + W h), g = tanh(a + W h); gates in the order i, f, g, o.

    a (T, B, 4H), the first state (B, 2H): h beside c, W (4H, H) → the states (T, B, 2H).
    """

    saves_inputs = True
    saves_output = True

    def forward(self, a, state, weight, mask):
        self.mask = mask
        xp, n = array_module(a), weight.shape[1]
        states = xp.empty(a.shape[:2] + (2 * n,), dtype=a.dtype)
        columns = xp.ascontiguousarray(weight.T)
        for t in range(len(a)):
            i, f, g, o = self._gates(a[t], state[:, :n], columns)
            c = f * state[:, n:] + i * g
            new = xp.concatenate([o * xp.tanh(c), c], axis=-1)
            states[t] = state = new if mask is None else state + mask[t] * (new - state)
        return states

    @staticmethod
    def _gates(a, h, columns):
        n = h.shape[-1]
        w = a + (_rows(h) @ columns).reshape(a.shape)
        i_f, o = _sigmoid(w[..., : 2 * n]), _sigmoid(w[..., 3 * n :])
        return i_f[..., :n], i_f[..., n:], array_module(a).tanh(w[..., 2 * n : 3 * n]), o

    def backward(self, grad, a, state, weight, states):
        xp, n = array_module(grad), weight.shape[1]
        starts = _starts(state, states)
        h, c = starts[..., :n], starts[..., n:]
        i, f, g, o = self._gates(a, h, weight.T)
        tanh = xp.tanh(f * c + i * g)
        to_c, to_o = o * (1 - tanh * tanh), tanh * o * (1 - o)
        slopes = xp.stack([g * i * (1 - i), c * f * (1 - f), i * (1 - g * g)], axis=2)  # of i, f, g by c'
        da, carry = [], 0
        for t in reversed(range(len(a))):
            new = held = grad[t] + carry
            if self.mask is not None:
                new, held = held * self.mask[t], held * (1 - self.mask[t])
            dh = new[:, :n]
            dc = new[:, n:] + dh * to_c[t]
            da.append(xp.concatenate([(slopes[t] * dc[:, None]).reshape((-1, 3 * n)), dh * to_o[t]], axis=-1))
            carry = xp.concatenate([da[-1] @ weight, dc * f[t]], axis=-1)
            if self.mask is not None:
                carry = carry + held
        da = _steps(da)
        return da, carry, _rows(da).swapaxes(0, 1) @ _rows(h)
