"""Operations that move entries without changing them."""

from __future__ import annotations

from ..cuda import array_module, device_of, to_device
from ..function import Function


class Reshape(Function):
    """x in another shape of the same size."""

    is_view = True

    def forward(self, x, shape):
        self.shape_in = x.shape
        return x.reshape(shape)

    def backward(self, grad):
        return grad.reshape(self.shape_in)


class Transpose(Function):
    """x with its axes in the order `axes`."""

    is_view = True

    def forward(self, x, axes):
        self.axes = tuple(a % x.ndim for a in axes)
        return x.transpose(self.axes)

    def backward(self, grad):
        inverse = [0] * len(self.axes)
        for to, start in enumerate(self.axes):
            inverse[start] = to
        return grad.transpose(tuple(inverse))


class Swapaxes(Function):
    """x with two axes exchanged."""

    is_view = True

    def forward(self, x, axis1, axis2):
        self.axis1, self.axis2 = axis1, axis2
        return x.swapaxes(axis1, axis2)

    def backward(self, grad):
        return grad.swapaxes(self.axis1, self.axis2)


class BroadcastTo(Function):
    """x repeated to a larger shape; the engine sums the gradient back."""

    is_view = True

    def forward(self, x, shape):
        return array_module(x).broadcast_to(x, shape)

    def backward(self, grad):
        return grad


class Unfold(Function):
    """The windows of `size` entries that begin at every `step`-th place of an axis: (…, windows, …, size)."""

    is_view = True

    def forward(self, x, axis, size, step):
        self.axis, self.step, self.length = axis, step, x.shape[axis]
        shape, strides = list(x.shape), list(x.strides)
        shape[axis], strides[axis] = (self.length - size) // step + 1, strides[axis] * step
        as_strided = array_module(x).lib.stride_tricks.as_strided
        return as_strided(x, (*shape, size), (*strides, x.strides[axis]))

    def backward(self, grad):
        return Fold.apply(grad, axis=self.axis, step=self.step, length=self.length)


class Fold(Function):
    """The adjoint of Unfold: windows added up where they overlap, on an axis of this length."""

    def forward(self, windows, axis, step, length):
        self.axis, self.size, self.step = axis, windows.shape[-1], step
        xp, before = array_module(windows), (slice(None),) * axis
        windows = xp.moveaxis(windows, -1, axis + 1)  # (…, n, size, …)
        n, shape = windows.shape[axis], windows.shape
        total = xp.zeros(shape[:axis] + (length,) + shape[axis + 2 :], dtype=windows.dtype)
        rest = shape[axis + 2 :]

        def along(*index):  # an index of this axis and those behind it
            return before + index

        for start in range(0, self.size, step):
            part = windows[along(slice(None), slice(start, start + step))]  # of these no two overlap
            long = part.shape[axis + 1]
            whole = min(n, (length - start) // step)  # windows that a whole step follows: all, or all but the last
            places = total[along(slice(start, start + whole * step))].reshape(shape[:axis] + (whole, step) + rest)
            places = places[along(slice(None), slice(0, long))]
            if start == 0:
                places[...] = part[along(slice(0, whole))]
            else:
                places += part[along(slice(0, whole))]
            if whole < n:
                places = total[along(slice(start + whole * step, start + whole * step + long))]
                places += part[along(whole)]
        return total

    def backward(self, grad):
        return Unfold.apply(grad, axis=self.axis, size=self.size, step=self.step)


class Concatenate(Function):
    """The inputs one after the other along an axis that they have."""

    def forward(self, *xs, axis):
        self.axis = axis
        self.lengths = [x.shape[axis] for x in xs]
        return array_module(xs[0]).concatenate(xs, axis=axis)

    def backward(self, grad):
        before = (slice(None),) * (self.axis % grad.ndim)
        parts, start = [], 0
        for length in self.lengths:
            parts.append(grad[before + (slice(start, start + length),)])
            start += length
        return tuple(parts)


class Stack(Function):
    """The inputs, of one shape, one after the other along a new axis."""

    def forward(self, *xs, axis):
        self.axis = axis
        return array_module(xs[0]).stack(xs, axis=axis)

    def backward(self, grad):
        before = (slice(None),) * (self.axis % grad.ndim)
        return tuple(grad[before + (i,)] for i in range(grad.shape[self.axis]))


class ToDevice(Function):
    """x on another device; the gradient travels back."""

    def forward(self, x, device):
        self.source = device_of(x)
        return to_device(x, device)

    def backward(self, grad):
        return ToDevice.apply(grad, device=self.source)
