"""Operations that move entries."""

from __future__ import annotations

import numpy as np

from metagrad import functional as F

from .samples import Op, Sample, elementwise


def _weighed(parts):
    """A sum in which each part has a weight of its own."""
    return sum((part * (i + 1)).sum() for i, part in enumerate(parts))


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
    Op("ravel", F.ravel, np.ravel, elementwise()),
    Op("reshape, the function", lambda x, to: F.reshape(x, to), lambda x, to: np.reshape(x, to), [Sample(((2, 3),), {"to": (3, -1)})]),
    Op("swapaxes, the function", F.swapaxes, np.swapaxes, [Sample(((2, 3, 4),), {"axis1": 0, "axis2": -1})]),
    Op("moveaxis", F.moveaxis, np.moveaxis,
       [Sample(((2, 3, 4),), {"source": s, "destination": d}) for s, d in [(0, -1), (2, 0), ((0, 1), (-1, -2)), ((2, 0), (0, 1))]]),
    Op("expand_dims", F.expand_dims, np.expand_dims, [Sample(((2, 3),), {"axis": a}) for a in (0, -1)]),
    Op("split", lambda x, sections, axis: _weighed(F.split(x, sections, axis)), lambda x, sections, axis: _weighed(np.split(x, sections, axis)),
       [Sample(((4, 6),), {"sections": n, "axis": a}) for n, a in [(2, 0), (3, 1), (3, -1), ([1, 3], 1), ([2], 0), (1, 0)]]),
    Op("split, one part used", lambda x: F.split(x, 3, 1)[1], lambda x: np.split(x, 3, 1)[1], [Sample(((2, 6),))]),
    Op("chunk", lambda x, chunks, axis: _weighed(F.chunk(x, chunks, axis)), lambda x, chunks, axis: _weighed(np.split(x, range(-(-x.shape[axis] // chunks), x.shape[axis], -(-x.shape[axis] // chunks)), axis)),
       [Sample(((5, 4),), {"chunks": n, "axis": a}) for n, a in [(2, 0), (3, 0), (4, 1), (3, -1), (1, 0)]]),
    Op("flip", F.flip, np.flip, [Sample(((2, 3),), {"axis": a}) for a in (None, 0, -1, (0, 1))] + [Sample(((0,),))]),
    Op("roll", F.roll, np.roll, [Sample(((4, 3),), {"shift": n, "axis": a}) for n, a in [(1, 0), (-1, 1), (5, 0), (2, None), ((1, 2), (0, 1)), (0, 0)]]
       + [Sample(((0, 2),), {"shift": 1, "axis": 0})]),
    Op("repeat", F.repeat, np.repeat, [Sample(((2, 3),), {"repeats": n, "axis": a}) for n, a in [(2, 0), (3, 1), ([1, 0, 2], 1), (2, None), (0, 0)]]),
    Op("tile", F.tile, np.tile, [Sample(((2, 3),), {"reps": n}) for n in (2, (2, 1), (2, 1, 3), (1, 2), (0, 1))] + [Sample(((),), {"reps": 3})]),
    Op("pad", F.pad, np.pad, [Sample(((3, 4),), {"pad_width": w, "mode": m}) for w in (1, (1, 2), ((0, 2), (1, 0))) for m in ("constant", "edge", "reflect", "symmetric", "wrap")]
       + [Sample(((2, 2),), {"pad_width": 1, "constant_values": 2.5})]),
    Op("diagonal", F.diagonal, np.diagonal, [Sample(((3, 4),), {"offset": k}) for k in (0, 1, -2, 5)] + [Sample(((2, 3, 4),), {"axis1": -1, "axis2": 0})]),
    Op("tril", F.tril, np.tril, [Sample(((3, 4),), {"k": k}) for k in (0, 1, -1)] + [Sample(((2, 3, 3),))]),
    Op("triu", F.triu, np.triu, [Sample(((3, 4),), {"k": k}) for k in (0, 1, -1)] + [Sample(((2, 3, 3),))]),
]  # fmt: skip
