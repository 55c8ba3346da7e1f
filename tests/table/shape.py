"""Operations that move entries."""

from __future__ import annotations

import numpy as np

from metagrad import functional as F

from .samples import Op, Sample, elementwise

SHAPE = [
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
    Op("to", lambda x: x.cpu() * 2, lambda x: x * 2, elementwise()),
]  # fmt: skip
