"""Products of matrices."""

from __future__ import annotations

import math
import operator

import numpy as np

from ..cuda import array_module
from ..function import Function


class MatMul(Function):
    """x @ y for vectors, matrices and stacks of matrices, as numpy.matmul.

    For matrices dx = dz yᵀ and dy = xᵀ dz; a vector is a row on the left and a column on the right.
    Where y is a transposed view (x @ w.T), dy is made as one too, so that w's gradient lies in memory as w does.
    """

    saves_inputs = True

    def forward(self, x, y):
        self.transposed = y.ndim > 1 and y.strides[-1] > y.strides[-2]
        try:
            return x @ y
        except ValueError:
            raise ValueError(
                f"matmul: shapes {x.shape} and {y.shape} do not fit: the last axis of the first must be as long as the "
                "last but one of the second, and the axes before them equal or 1"
            ) from None

    def backward(self, grad, x, y):
        to_x, to_y = self.edges
        if x.ndim > 1 and y.ndim > 1:
            return to_x and _product(grad, y.swapaxes(-1, -2)), to_y and _product_of_rows(
                x, grad, y.ndim, self.transposed
            )
        row = x.reshape((1, -1)) if x.ndim == 1 else x
        column = y.reshape((-1, 1)) if y.ndim == 1 else y
        lost = ((-2,) if x.ndim == 1 else ()) + ((-1,) if y.ndim == 1 else ())
        grad = _restore(grad, lost)
        dx = dy = None
        if to_x:
            dx = _product(grad, column.swapaxes(-1, -2))
            dx = dx.reshape(dx.shape[:-2] + dx.shape[-1:]) if x.ndim == 1 else dx
        if to_y:
            dy = _product(row.swapaxes(-1, -2), grad)
            dy = dy.reshape(dy.shape[:-1]) if y.ndim == 1 else dy
        return dx, dy


def _product_of_rows(x, grad, ndim, transposed):
    """xᵀ grad; where y was one matrix for a stack of x, one product over all rows of the stack."""
    if ndim == 2 and x.ndim > 2:
        x, grad = _rows(x), _rows(grad)
    if transposed:
        return _product(grad.swapaxes(-1, -2), x).swapaxes(-1, -2)
    return _product(x.swapaxes(-1, -2), grad)


def _rows(x):
    """(..., n) as a matrix of n columns."""
    return x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))


def _product(x, y):
    """x @ y for matrices; a column times a row is an outer product, for which `*` is twice as fast."""
    return x * y if x.shape[-1] == 1 else x @ y


def _times_transposed(rows, weight):
    """rows Wᵀ. Few rows are multiplied the other way round, in two thirds of the time, if the result is small."""
    if 4 * len(rows) <= len(weight) and len(rows) * len(weight) <= 1 << 15:
        return array_module(rows).ascontiguousarray((weight @ rows.T).T)
    return rows @ weight.T


def _restore(grad, axes):
    """grad with axes of length 1 put back at the places -2 and -1."""
    shape = list(grad.shape)
    if -1 in axes:
        shape.append(1)
    if -2 in axes:
        shape.insert(len(shape) - 1, 1)
    return grad.reshape(tuple(shape))


class Linear(Function):
    """x Wᵀ + b, b optional: a product, to which b is added in place. x (..., n), W (m, n), b (m,).

    One rule, because a composition keeps two arrays of the output's size where one is enough.
    """

    saves_inputs = True

    def forward(self, x, weight, *bias):
        if weight.ndim != 2 or x.shape[-1:] != weight.shape[1:] or any(b.shape != weight.shape[:1] for b in bias):
            shapes = " and ".join(str(b.shape) for b in (weight, *bias))
            raise ValueError(
                f"linear: values (..., n) need a weight (m, n) and a bias (m,), or none; got {x.shape} with {shapes}"
            )
        y = _times_transposed(_rows(x), weight)  # one product, also for a stack of matrices
        for b in bias:
            y = operator.iadd(y, b) if b.dtype == y.dtype else y + b
        return y.reshape(x.shape[:-1] + (len(weight),))

    def backward(self, grad, x, weight, *bias):
        to_x, to_weight, *to_bias = self.edges
        rows = _rows(grad)
        dx = to_x and (rows @ weight).reshape(x.shape)
        dw = to_weight and rows.swapaxes(0, 1) @ _rows(x)
        return dx, dw, *(edge and rows.sum(axis=0) for edge in to_bias)


class Inv(Function):
    """Y = X⁻¹ of square matrices;  dX = −Yᵀ dY Yᵀ."""

    saves_output = True

    def forward(self, x):
        return _solved("inv", array_module(x).linalg.inv, x)

    def backward(self, grad, y):
        turned = y.swapaxes(-1, -2)
        return -(turned @ grad @ turned)


class Solve(Function):
    """Y with A Y = B, for columns B;  dB = A⁻ᵀ dY, dA = −dB Yᵀ."""

    saves_inputs = True
    saves_output = True

    def forward(self, a, b):
        return _solved("solve", array_module(a).linalg.solve, a, b)

    def backward(self, grad, a, b, y):
        db = array_module(grad).linalg.solve(a.swapaxes(-1, -2), grad)
        return -(db @ y.swapaxes(-1, -2)), db


class Det(Function):
    """|X|;  dX = |X| X⁻ᵀ, so that a matrix without inverse has no derivative here."""

    saves_inputs = True
    saves_output = True

    def forward(self, x):
        return array_module(x).linalg.det(x)

    def backward(self, grad, x, y):
        inverse = array_module(grad).linalg.inv(x)
        return (grad * y).reshape(y.shape + (1, 1)) * inverse.swapaxes(-1, -2)


class LogAbsDet(Function):
    """log ||X||, which overflows where |X| would not fit;  dX = X⁻ᵀ."""

    saves_inputs = True

    def forward(self, x):
        return array_module(x).linalg.slogdet(x)[1]

    def backward(self, grad, x):
        return grad.reshape(grad.shape + (1, 1)) * array_module(grad).linalg.inv(x).swapaxes(-1, -2)


class Cholesky(Function):
    """L, lower triangular, with L Lᵀ = X symmetric;  dX = (S + Sᵀ)/2 with S = L⁻ᵀ Φ(Lᵀ dL) L⁻¹.

    Φ takes the lower triangle and half of the diagonal (Murray 2016, "Differentiation of the Cholesky decomposition").
    """

    saves_output = True

    def forward(self, x):
        return _solved("cholesky", array_module(x).linalg.cholesky, x)

    def backward(self, grad, y):
        xp = array_module(grad)
        turned = y.swapaxes(-1, -2)
        inner = turned @ grad
        inner = (xp.tril(inner) + xp.tril(inner, -1)) / 2
        half = xp.linalg.solve(turned, inner)
        s = xp.linalg.solve(turned, half.swapaxes(-1, -2))
        return (s + s.swapaxes(-1, -2)) / 2


def _solved(name, function, *matrices):
    try:
        return function(*matrices)
    except np.linalg.LinAlgError as error:
        shapes = " and ".join(str(x.shape) for x in matrices)
        raise np.linalg.LinAlgError(
            f"{name}: {str(error).rstrip('.').lower()}; the matrices have shape {shapes}"
        ) from None


class Einsum(Function):
    """Einstein's sum by a subscript string, as numpy.einsum; also ... and repeated labels.

    The gradient of an operand is the einsum of the output's gradient and the other operands, with the
    labels exchanged. A label that only this operand has is summed away in the output, so its gradient
    repeats along it; a label twice in one operand reads a diagonal, so its gradient is written on one.
    """

    saves_inputs = True

    def forward(self, *operands, subscripts):
        self.xp = array_module(operands[0])
        self.inputs, self.output = _spell_out(subscripts, [x.ndim for x in operands])
        return self.xp.einsum(",".join(self.inputs) + "->" + self.output, *operands, optimize=True)

    def backward(self, grad, *operands):
        return tuple(edge and self._gradient(i, grad, operands) for i, edge in enumerate(self.edges))

    def _gradient(self, i, grad, operands):
        shape = operands[i].shape
        terms, factors = [self.output], [grad]
        for j, (term, x) in enumerate(zip(self.inputs, operands)):
            if j != i:
                terms.append(term)
                factors.append(x)
        present = set("".join(terms))
        fresh = iter(_unused("".join([*self.inputs, self.output])))
        target = ""
        for label, n in zip(self.inputs[i], shape):
            if label in target:  # a diagonal: δ(label, twin) puts the gradient on it
                twin = next(fresh)
                terms.append(label + twin)
                factors.append(self.xp.eye(n, dtype=grad.dtype))
                present |= {label, twin}
                label = twin
            target += label
        found = "".join(label for label in target if label in present)
        total = array_module(grad).einsum(",".join(terms) + "->" + found, *factors, optimize=True)
        # Along a label that only this operand has, and along one that is of length 1 elsewhere, it was summed
        # over: there its gradient repeats.
        sizes = iter(total.shape)
        kept = tuple(next(sizes) if label in present else 1 for label in target)
        whole = tuple(max(n, m) for n, m in zip(kept, shape))
        return total if total.shape == whole else array_module(grad).broadcast_to(total.reshape(kept), whole)


def _unused(labels: str) -> list[str]:
    return [c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in labels]


def _spell_out(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """Explicit subscripts, with letters for '...': '...i,i' of 3 and 1 axes → ['abi', 'i'], 'ab'."""
    given, arrow, output = subscripts.replace(" ", "").partition("->")
    inputs = given.split(",")
    if len(inputs) != len(ndims):
        raise ValueError(f"einsum: {subscripts!r} names {len(inputs)} operands, {len(ndims)} were given")
    letters = _unused(subscripts)
    extras = []
    for term, ndim in zip(inputs, ndims):
        extra = ndim - len(term.replace("...", ""))
        if extra < 0 or ("..." not in term and extra):
            raise ValueError(f"einsum: {term!r} in {subscripts!r} does not fit an operand of {ndim} axes")
        extras.append(extra)
    widest = max(extras)
    dots = "".join(letters[:widest])
    if not arrow:
        everything = "".join(inputs).replace("...", "")
        output = "..." * ("..." in given) + "".join(sorted(c for c in set(everything) if everything.count(c) == 1))
    inputs = [term.replace("...", dots[widest - extra :]) for term, extra in zip(inputs, extras)]
    return inputs, output.replace("...", dots)
