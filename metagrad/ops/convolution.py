"""The windows that convolution and pooling look at."""

from __future__ import annotations

import numpy as np

from ..cuda import array_module
from ..function import Function


class Windows(Function):
    """The windows of x (N, C, *lengths) along all axes behind the channels, as a view (C, *size, N, *number).

    Neighbouring windows begin `stride` places apart, the entries of one are `dilation` apart. Laid out as a matrix
    (C·size, N·number) it is what is called im2col. One rule for all axes: an Unfold for each would, on the way back,
    add up one axis after the other across memory, which takes four times as long.
    """

    is_view = True

    def forward(self, x, size, stride, dilation):
        self.shape_in, self.stride, self.dilation = x.shape, stride, dilation
        (batch, channels, *lengths), (of_batch, of_channel, *of_place) = x.shape, x.strides
        number = [(n - gap * (k - 1) - 1) // step + 1 for n, k, step, gap in zip(lengths, size, stride, dilation)]
        within = [place * gap for place, gap in zip(of_place, dilation)]
        between = [place * step for place, step in zip(of_place, stride)]
        as_strided = array_module(x).lib.stride_tricks.as_strided
        return as_strided(x, (channels, *size, batch, *number), (of_channel, *within, of_batch, *between))

    def backward(self, grad):
        return AddWindows.apply(grad, shape=self.shape_in, stride=self.stride, dilation=self.dilation)


class AddWindows(Function):
    """The adjoint of Windows: (C, *size, N, *number) added up, where windows overlap, to a shape (N, C, *lengths)."""

    def forward(self, windows, shape, stride, dilation):
        axes = len(shape) - 2
        self.size, self.stride, self.dilation = windows.shape[1 : 1 + axes], stride, dilation
        number = windows.shape[2 + axes :]
        total = array_module(windows).zeros(shape, dtype=windows.dtype)
        by_channel = total.swapaxes(0, 1)
        for place in np.ndindex(self.size):  # of all windows, the entries at this place
            reached = tuple(
                slice(at * gap, at * gap + n * step, step) for at, n, step, gap in zip(place, number, stride, dilation)
            )
            entries = by_channel[(...,) + reached]
            entries += windows[(slice(None),) + place]
        return total

    def backward(self, grad):
        return Windows.apply(grad, size=self.size, stride=self.stride, dilation=self.dilation)
