"""Products of matrices."""

from __future__ import annotations

import numpy as np

from metagrad import functional as F

from .samples import Op, Sample

MATMULS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((2, 0), (0, 3)), ((0, 3), (3, 2)),
]  # fmt: skip
EINSUMS = [
    ("ij,jk->ik", ((2, 3), (3, 4))), ("be,bce->bc", ((2, 3), (2, 4, 3))), ("ij->ji", ((2, 3),)), ("ij->", ((2, 3),)),
    ("ii->i", ((3, 3),)), ("ii", ((3, 3),)), ("ij,ij->i", ((2, 3), (2, 3))), ("i,j->ij", ((2,), (3,))), ("ij,k->k", ((2, 3), (4,))),
    ("...ij,...jk->...ik", ((5, 2, 3), (5, 3, 4))), ("...i,i", ((2, 3), (3,))), ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 4))),
    ("iij->j", ((2, 2, 3),)), ("bij,bjk", ((2, 2, 3), (2, 3, 2))), ("i...->...", ((3, 2),)), ("...i,...i->...", ((4, 1, 3), (2, 3))),
]  # fmt: skip

def _definite(x):
    return x @ x.swapaxes(-1, -2)


LINALG = [
    Op("matmul", F.matmul, np.matmul, [Sample(pair) for pair in MATMULS]),
    Op("einsum", lambda *xs, subscripts: F.einsum(subscripts, *xs), lambda *xs, subscripts: np.einsum(subscripts, *xs),
       [Sample(shapes, {"subscripts": s}) for s, shapes in EINSUMS]),
    Op("linear", F.linear, lambda x, w, b=0.0: x @ w.T + b, [Sample(((2, 3), (4, 3), (4,))), Sample(((3,), (4, 3), (4,))), Sample(((5, 2, 3), (4, 3), (4,))), Sample(((5, 2, 3), (4, 3))), Sample(((2, 0), (4, 0), (4,))), Sample(((0, 3), (4, 3), (4,)))]),
    Op("einsum of lists", lambda x, y: F.einsum(x, [0, 1], y, [1, 2], [2, 0]), lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), [Sample(((2, 3), (3, 4)))]),
    Op("dot", F.dot, np.dot, [Sample(pair) for pair in [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 2)), ((5, 2, 3), (4, 3, 2)), ((), (3,)), ((2, 3), ())]]),
    Op("inner", F.inner, np.inner, [Sample(pair) for pair in [((3,), (3,)), ((2, 3), (4, 3)), ((2, 3), (3,)), ((), (2,))]]),
    Op("outer", F.outer, np.outer, [Sample(pair) for pair in [((3,), (2,)), ((2, 2), (3,)), ((), (2,))]]),
    Op("tensordot", F.tensordot, np.tensordot,
       [Sample(((2, 3, 4), (3, 4, 2)), {"axes": a}) for a in (2, 0, ([1, 2], [0, 1]), ([0, -1], [2, 1]))] + [Sample(((2, 3), (3, 4)), {"axes": (1, 0)})]),
    Op("trace", F.trace, np.trace, [Sample(((3, 3),)), Sample(((3, 4),), {"offset": 1}), Sample(((2, 3, 3),), {"axis1": 1, "axis2": 2})]),
    Op("inv", F.inv, np.linalg.inv, [Sample(((3, 3),)), Sample(((2, 2, 2),)), Sample(((1, 1),)), Sample(((0, 0),))], domain="regular"),
    Op("solve", F.solve, np.linalg.solve,
       [Sample(pair) for pair in [((3, 3), (3,)), ((3, 3), (3, 3)), ((2, 3, 3), (1, 3, 3))]], domain="regular"),
    Op("det", F.det, np.linalg.det, [Sample(((3, 3),)), Sample(((2, 2, 2),)), Sample(((1, 1),))], domain="regular"),
    Op("slogdet", lambda x: F.slogdet(x).logabsdet, lambda x: np.linalg.slogdet(x)[1], [Sample(((3, 3),)), Sample(((2, 2, 2),))], domain="regular"),
    Op("cholesky", lambda x: F.cholesky(_definite(x)), lambda x: np.linalg.cholesky(_definite(x)), [Sample(((3, 3),)), Sample(((2, 2, 2),)), Sample(((1, 1),))], domain="regular"),
]  # fmt: skip
