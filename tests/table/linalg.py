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

LINALG = [
    Op("matmul", F.matmul, np.matmul, [Sample(pair) for pair in MATMULS]),
    Op("einsum", lambda *xs, subscripts: F.einsum(subscripts, *xs), lambda *xs, subscripts: np.einsum(subscripts, *xs),
       [Sample(shapes, {"subscripts": s}) for s, shapes in EINSUMS]),
    Op("linear", F.linear, lambda x, w, b=0.0: x @ w.T + b, [Sample(((2, 3), (4, 3), (4,))), Sample(((3,), (4, 3), (4,))), Sample(((5, 2, 3), (4, 3), (4,))), Sample(((5, 2, 3), (4, 3))), Sample(((2, 0), (4, 0), (4,))), Sample(((0, 3), (4, 3), (4,)))]),
]  # fmt: skip
