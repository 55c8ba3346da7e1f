"""PyTorch's expression for each row of the table; imported only where PyTorch is installed.

Every row is in EQUIVALENTS, or in NONE with the reason why there is none. EXCEPT names the samples that PyTorch
refuses, or for which its definition is another one, each with the reason.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from . import TABLE

f = torch.nn.functional

# What differs ------------------------------------------------------------------------------------------

_LAYERS = "PyTorch has it as a layer only: test_recurrent.py compares with that"

NONE = {
    "rnn": _LAYERS,
    "rnn with relu": _LAYERS,
    "gru": _LAYERS,
    "lstm": _LAYERS,
    "batch_norm": "PyTorch gives running statistics no gradient: test_normalization.py compares with its layer",
}

# name → (which samples, why)
EXCEPT = {
    "pad": (lambda s: s.constants.get("mode") == "symmetric", "PyTorch pads by no mode of that kind"),
    "getitem": (lambda s: str(s.constants["index"]) == "slice(None, None, -1)", "PyTorch has no steps backward"),
    "scaled_dot_product_attention": (
        lambda s: "mask" in s.constants, "a query that sees no key has zeros here; in PyTorch NaN or zeros, by kernel"
    ),
    "max_pool2d": (lambda s: 0 in s.shapes[0], "PyTorch refuses an empty batch there"),
}  # fmt: skip

# PyTorch's expressions ----------------------------------------------------------------------------------

RENAMED = {"axis": "dim", "axis1": "dim1", "axis2": "dim2", "low": "min", "high": "max", "k": "diagonal",
           "slope": "negative_slope", "shape": "normalized_shape", "size": "kernel_size"}  # fmt: skip


def named(function):
    """PyTorch's function, which takes the row's options by its own names."""
    return lambda *xs, **options: function(*xs, **{RENAMED.get(k, k): v for k, v in options.items()})


def over(function):
    """A function of the last axis as a reduction over any axes."""

    def reduction(x, axis=None, keepdims=False, **options):
        axes = range(x.ndim) if axis is None else [a % x.ndim for a in np.atleast_1d(axis)]
        rest = [a for a in range(x.ndim) if a not in axes]
        out = function(
            x.permute((*rest, *axes)).reshape(*(x.shape[a] for a in rest), math.prod(x.shape[a] for a in axes)),
            **options,
        )
        return out.reshape([1 if a in axes else n for a, n in enumerate(x.shape)]) if keepdims else out

    return reduction


def weighed(parts):
    return sum((part * (i + 1)).sum() for i, part in enumerate(parts))


def flat_or_along(function):
    """cumsum and its like: of all entries in a row where no axis is given."""
    return lambda x, axis: function(x.reshape(-1), 0) if axis is None else function(x, axis)


def padded(x, pad_width, mode="constant", constant_values=0.0):
    (top, bottom), (left, right) = np.broadcast_to(pad_width, (2, 2)).tolist()
    mode = {"edge": "replicate", "wrap": "circular"}.get(mode, mode)
    value = {"value": constant_values} if mode == "constant" else {}
    return f.pad(x[None, None], (left, right, top, bottom), mode=mode, **value)[0, 0]


def written(x, y, index):
    out = x.clone()
    out[index] = y
    return out


def beside(index, values):
    """The values that an index, smaller than they are, names a place for."""
    return values[tuple(map(slice, index.shape))]


def dot(x, y):
    return x * y if not x.ndim or not y.ndim else torch.tensordot(x, y, ([x.ndim - 1], [max(y.ndim - 2, 0)]))


def layer_norm(x, weight=None, bias=None, *, shape):
    return f.layer_norm(x, (shape,) if isinstance(shape, int) else shape, weight, bias)


def pool(function):
    return lambda x, size, stride=None, padding=0: function(x, size, stride, padding)


# rows whose own call uses operators and methods that both libraries have
ITS_OWN = """
add|add a number|sub|sub from a number|mul|mul by a number|mul by itself|div|div a number|neg|pow|pow by a number
pow by a fraction|pow of a number|reshape|swapaxes|unsqueeze|unfold|to
""".replace("\n", "|").strip("|").split("|")

# and those that have one name in both
SAME_NAME = """
abs sign exp expm1 log log1p sqrt maximum minimum log2 log10 logaddexp square reciprocal floor ceil round erf isnan
isinf isfinite logical_not sin cos tan arcsin arccos arctan arctan2 hypot sinh cosh arcsinh arctanh tanh sigmoid
tanhshrink relu softplus gelu silu elu selu leaky_relu prelu hardtanh hardswish mish softsign softmax log_softmax
broadcast_to ravel moveaxis diagonal tril triu roll matmul inner linear index_select mse_loss l1_loss huber_loss nll_loss
cross_entropy kl_div hinge_embedding_loss cosine_embedding_loss
triplet_margin_loss dropout conv1d conv2d
""".split()  # noqa: SIM905, a list of words

EQUIVALENTS = {
    **{op.name: op.call for op in TABLE if op.name in ITS_OWN},
    **{name: named(getattr(f, name, None) or getattr(torch, name)) for name in SAME_NAME},
    "maximum of a number": lambda x: torch.maximum(x, torch.tensor(0.1, dtype=x.dtype)),
    "clip": named(torch.clamp), "clip on one side": named(torch.clamp),
    "where": lambda x, y, condition: torch.where(condition, x, y),
    "astype": lambda x: x.double(), "zeros_like": lambda x: x + torch.zeros_like(x),
    "logical_and": lambda x, y: (x > 0) & (y > 0), "logical_or": lambda x, y: (x > 0) | (y > 0),
    "logical_xor": lambda x, y: (x > 0) ^ (y > 0),
    "broadcast_to": lambda x, shape: torch.broadcast_to(x, shape),
    "arccosh": lambda x: torch.arccosh(x + 1), "cosine_similarity": lambda x, y, axis=-1: f.cosine_similarity(x, y, axis),
    "celu": lambda x, alpha: f.elu(x / alpha) * alpha,  # f.celu rounds alpha to float32
    "logsigmoid": f.logsigmoid, "gelu by tanh": lambda x: f.gelu(x, approximate="tanh"),
    # reductions
    "sum": over(lambda x: x.sum(-1)), "mean": over(lambda x: x.mean(-1)), "max": over(lambda x: x.amax(-1)),
    "min": over(lambda x: x.amin(-1)), "logsumexp": over(lambda x: x.logsumexp(-1)), "prod": over(lambda x: x.prod(-1)),
    "prod with zeros": over(lambda x: x.prod(-1)), "var": over(lambda x, ddof=0: x.var(-1, correction=ddof)),
    "std": over(lambda x, ddof=0: x.std(-1, correction=ddof)),
    "norm": over(lambda x, ord=2: torch.linalg.vector_norm(x, ord, -1)), "norm, largest": lambda x: x.abs().amax(),
    "cumsum": flat_or_along(torch.cumsum), "cumprod": flat_or_along(torch.cumprod),
    "cumprod with zeros": flat_or_along(torch.cumprod),
    "median": over(lambda x: x.quantile(0.5, -1)),  # torch.median is the lower of the two middle ones
    "argmax": over(lambda x: x.argmax(-1)), "argmin": over(lambda x: x.argmin(-1)),
    "any": over(lambda x: (x > 0.6).any(-1)), "all": over(lambda x: (x > 0.3).all(-1)),
    "count_nonzero": over(lambda x: torch.count_nonzero(x > 0.6, -1)),
    # shape
    "transpose": lambda x, axes: x.permute(axes), "T": lambda x: x.permute(tuple(range(x.ndim))[::-1]),
    "squeeze": lambda x, axis: x.squeeze() if axis is None else x.squeeze(axis),
    "concatenate": lambda *xs, axis: torch.cat(xs, axis), "stack": lambda *xs, axis: torch.stack(xs, axis),
    "reshape, the function": lambda x, to: x.reshape(to),
    "swapaxes, the function": lambda x, axis1, axis2: x.swapaxes(axis1, axis2),
    "moveaxis": lambda x, source, destination: torch.movedim(x, source, destination),
    "expand_dims": lambda x, axis: x.unsqueeze(axis),
    "split": lambda x, sections, axis: weighed(torch.tensor_split(x, sections, axis)),
    "split, one part used": lambda x: torch.tensor_split(x, 3, 1)[1],
    "chunk": lambda x, chunks, axis: weighed(torch.chunk(x, chunks, axis)),
    "flip": lambda x, axis=None: x.flip(tuple(range(x.ndim)) if axis is None else np.atleast_1d(axis).tolist()),
    "roll": lambda x, shift, axis: torch.roll(x, shift, axis),
    "repeat": lambda x, repeats, axis: torch.repeat_interleave(x, torch.as_tensor(repeats), axis),
    "tile": lambda x, reps: torch.tile(x, (reps,) if isinstance(reps, int) else reps), "pad": padded,
    # indexing
    "getitem": lambda x, index: x[index], "gather": lambda x, axis, index: x.gather(axis, index % x.shape[axis]),
    "take_along_axis": lambda x, axis, index: torch.take_along_dim(x, index, axis),
    "embedding": lambda w, ids, **_: f.embedding(torch.as_tensor(ids), w), "setitem": written,
    "index_fill": lambda x, axis, index, value: x.index_fill(axis, index, value),
    "index_add": lambda x, y, axis, index: x.index_add(
        axis, index, y if y.ndim else y.expand(*[len(index) if a == axis % x.ndim else n for a, n in enumerate(x.shape)])),
    "scatter": lambda x, y, axis, index: x.scatter(axis, index, beside(index, y)),
    "scatter_add": lambda x, y, axis, index: x.scatter_add(axis, index, beside(index, y)),
    "masked_select": lambda x, mask: x.masked_select(mask),
    "masked_fill": lambda x, mask, value: x.masked_fill(mask, value),
    "sort": lambda x, axis=-1: x.sort(axis).values, "argsort": lambda x, axis: x.argsort(axis),
    "topk": lambda x, k, axis, largest: x.topk(k, axis, largest).values,
    "nonzero": lambda x: (x > 0.5).nonzero(as_tuple=True)[-1],
    # linear algebra
    "einsum": lambda *xs, subscripts: torch.einsum(subscripts, *xs),
    "einsum of lists": lambda x, y: torch.einsum(x, [0, 1], y, [1, 2], [2, 0]), "dot": dot,
    "outer": lambda x, y: torch.outer(x.reshape(-1), y.reshape(-1)),
    "tensordot": lambda x, y, axes: torch.tensordot(
        x, y, axes if isinstance(axes, int) else [np.atleast_1d(a).tolist() for a in axes]),
    "trace": lambda x, offset=0, axis1=0, axis2=1: x.diagonal(offset, axis1, axis2).sum(-1),
    "inv": torch.linalg.inv, "solve": torch.linalg.solve, "det": torch.linalg.det,
    "slogdet": lambda x: torch.linalg.slogdet(x).logabsdet, "cholesky": lambda x: torch.linalg.cholesky(x @ x.mT),
    # losses and layers
    "binary_cross_entropy": lambda x, **options: f.binary_cross_entropy(x.sigmoid(), **options),
    "binary_cross_entropy_with_logits": lambda x, target, pos_weight=None, **options: f.binary_cross_entropy_with_logits(
        x, target, pos_weight=None if pos_weight is None else torch.as_tensor(pos_weight), **options),
    "binary_cross_entropy_with_logits of one target":
        lambda x, target, **options: f.binary_cross_entropy_with_logits(x, torch.full_like(x, target), **options),
    "layer_norm": layer_norm,
    "batch_norm in training": lambda x, *affine, eps=1e-5: f.batch_norm(x, None, None, *affine, training=True, eps=eps),
    "scaled_dot_product_attention":
        lambda q, k, v, causal=False, scale=None: f.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale),
    "max_pool1d": pool(f.max_pool1d), "max_pool2d": pool(f.max_pool2d),
    "avg_pool1d": pool(f.avg_pool1d), "avg_pool2d": pool(f.avg_pool2d),
}  # fmt: skip
