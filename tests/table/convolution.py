"""Convolution and pooling, against loops over the windows."""

from __future__ import annotations

import math

import numpy as np

from metagrad import functional as F

from .samples import Op, Sample


def _over_windows(function, x, outputs, size, stride, padding, dilation=1, fill=0.0):
    """out[:, o, place] = function(the entries (N, C, *size) of the window at that place, o), one after the other."""
    axes = x.ndim - 2
    size, stride, padding, dilation = (v if isinstance(v, tuple) else (v,) * axes for v in (size, stride, padding, dilation))
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)], constant_values=fill)
    number = [(n - g * (k - 1) - 1) // s + 1 for n, k, s, g in zip(x.shape[2:], size, stride, dilation)]
    out = np.zeros((len(x), outputs, *number))
    for place in np.ndindex(*number):
        entries = x[(..., *(slice(i * s, i * s + g * (k - 1) + 1, g) for i, k, s, g in zip(place, size, stride, dilation)))]
        for o in range(outputs):
            out[(slice(None), o, *place)] = function(entries, o)
    return out


def _convolution(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    outputs, channels, *size = weight.shape

    def output(entries, o):
        first = o // (outputs // groups) * channels  # of the group's channels
        products = entries[:, first : first + channels] * weight[o]
        return products.reshape(len(x), -1).sum(axis=1) + (0 if bias is None else bias[o])

    return _over_windows(output, x, outputs, tuple(size), stride, padding, dilation)


def _pooling(reduce, fill):
    def run(x, size, stride=None, padding=0):
        return _over_windows(lambda entries, o: reduce(entries[:, o].reshape(len(x), math.prod(entries.shape[2:])), axis=1),
                             x, x.shape[1], size, size if stride is None else stride, padding, fill=fill)

    return run


POOLS_1D = [Sample(((2, 3, 7),), options) for options in (
    {"size": 2}, {"size": 3, "stride": 1}, {"size": 3, "stride": 2, "padding": 1}, {"size": (7,)}, {"size": 2, "stride": 3, "padding": (1,)})]
POOLS_2D = [Sample(((2, 2, 5, 4),), options) for options in (
    {"size": 2}, {"size": (3, 2), "stride": 1}, {"size": 3, "stride": (2, 1), "padding": 1}, {"size": (1, 4), "padding": (0, 2)})] + [Sample(((0, 2, 4, 4),), {"size": 2})]

CONVOLUTION = [
    Op("conv1d", F.conv1d, _convolution,
       [Sample(((2, 3, 7), (4, 3, 3), (4,)), options) for options in ({}, {"padding": 1}, {"stride": 2}, {"dilation": 2}, {"stride": 3, "padding": (2,), "dilation": 3})]
       + [Sample(((2, 4, 5), (6, 2, 2)), {"groups": 2}), Sample(((2, 3, 5), (3, 1, 2), (3,)), {"groups": 3}), Sample(((1, 2, 3), (2, 2, 3))), Sample(((2, 2, 4), (1, 2, 1), (1,)))]),
    Op("conv2d", F.conv2d, _convolution,
       [Sample(((2, 2, 5, 4), (3, 2, 3, 2), (3,)), options) for options in ({}, {"padding": (1, 2)}, {"stride": (2, 1), "padding": 1}, {"dilation": (2, 3)}, {"stride": 2, "padding": 2, "dilation": 2})]
       + [Sample(((2, 4, 3, 3), (2, 2, 2, 2), (2,)), {"groups": 2, "padding": 1}), Sample(((1, 2, 3, 3), (2, 2, 1, 1)))]
       + [Sample(((2, 2, 4, 3), (3, 2, 2, 2), (3,)), layout="F")]),
    Op("max_pool1d", F.max_pool1d, _pooling(np.max, -np.inf), POOLS_1D, domain="distinct"),
    Op("max_pool2d", F.max_pool2d, _pooling(np.max, -np.inf), POOLS_2D, domain="distinct"),
    Op("avg_pool1d", F.avg_pool1d, _pooling(np.mean, 0.0), POOLS_1D),
    Op("avg_pool2d", F.avg_pool2d, _pooling(np.mean, 0.0), POOLS_2D),
]  # fmt: skip
