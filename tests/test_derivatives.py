"""Matrices of derivatives and their products with vectors, against closed forms."""

import numpy as np
import pytest

from metagrad import Tensor, hessian, hvp, jacobian, jvp
from metagrad import functional as F

rng = np.random.default_rng(0)
A, B = rng.normal(size=(3, 3)), rng.normal(size=(3, 2))
X, V = rng.normal(size=3), rng.normal(size=3)


def quadratic(x):
    return x @ Tensor(A) @ x


def test_the_jacobian_of_a_product_is_its_matrix(device):
    x = Tensor(X, device=device)
    J = jacobian(lambda x: Tensor(A).to(x.device) @ x, x)
    assert J.shape == (3, 3) and str(J.device) == device and not x.requires_grad
    np.testing.assert_allclose(J.numpy(), A, rtol=1e-12)


def test_the_jacobian_has_the_shape_of_the_output_then_of_the_input():
    J, K, unused = jacobian(lambda w, b, c: F.tanh(w * 2 + b), B, rng.normal(size=2), X)
    assert J.shape == (3, 2, 3, 2) and K.shape == (3, 2, 2) and unused.shape == (3, 2, 3)
    assert not unused.numpy().any()
    np.testing.assert_allclose(np.einsum("ijij->ij", J.numpy()), 2 * np.einsum("ijj->ij", K.numpy()), rtol=1e-12)
    assert jacobian(lambda x: x[:0], X).shape == (0, 3)
    assert jacobian(lambda x: Tensor(V), X).numpy().tolist() == np.zeros((3, 3)).tolist()


def test_the_hessian_of_a_quadratic_form_is_its_symmetric_matrix():
    np.testing.assert_allclose(hessian(quadratic, X).numpy(), A + A.T, rtol=1e-12)
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x * y * y).sum(), X, V)
    np.testing.assert_allclose(xy.numpy(), np.diag(2 * V), rtol=1e-12)
    np.testing.assert_allclose(yx.numpy(), xy.numpy().T, rtol=1e-12)
    np.testing.assert_allclose(yy.numpy(), np.diag(2 * X), rtol=1e-12)
    assert not xx.numpy().any()


def test_hvp_is_the_hessian_times_a_vector(device):
    value, product = hvp(lambda x: (x.exp() * x).sum(), Tensor(X, device=device), Tensor(V, device=device))
    assert value.item() == pytest.approx((np.exp(X) * X).sum()) and not value.requires_grad
    np.testing.assert_allclose(product.numpy(), np.exp(X) * (2 + X) * V, rtol=1e-12)
    _, (along_x, along_y) = hvp(lambda x, y: (x * y * y).sum(), [X, V], [V, X])
    np.testing.assert_allclose(along_x.numpy(), 2 * V * X, rtol=1e-12)
    np.testing.assert_allclose(along_y.numpy(), 2 * V * V + 2 * X * X, rtol=1e-12)
    assert not hvp(lambda x: (x * 3).sum(), X, V)[1].numpy().any()  # a linear function has none


def test_jvp_is_the_jacobian_times_a_vector(device):
    value, tangent = jvp(lambda x: F.sin(x) * x, Tensor(X, device=device), Tensor(V, device=device))
    np.testing.assert_allclose(value.numpy(), np.sin(X) * X, rtol=1e-12)
    np.testing.assert_allclose(tangent.numpy(), (np.cos(X) * X + np.sin(X)) * V, rtol=1e-12)
    _, tangent = jvp(lambda w, x: w @ x, (A, X), (np.eye(3), V))
    np.testing.assert_allclose(tangent.numpy(), X + A @ V, rtol=1e-12)
    assert not jvp(lambda x: Tensor(A), X, V)[1].numpy().any()


@pytest.mark.parametrize("call, error, message", [
    (lambda: jacobian(lambda x: x, [1, 2]), TypeError, "input 0 holds int64"),
    (lambda: jacobian(lambda x: 3.0, X), TypeError, "jacobian: the function is to return a Tensor, not a float"),
    (lambda: jacobian(quadratic), ValueError, "at least one input"),
    (lambda: hessian(lambda x: x, X), ValueError, r"one entry, not shape \(3,\)"),
    (lambda: hvp(quadratic, X, V[:2]), ValueError, r"hvp: vectors have the inputs' shapes, \[\(3,\)\], not \[\(2,\)\]"),
    (lambda: jvp(lambda x, y: x * y, [X, V], [V]), ValueError, "jvp: vectors have the inputs' shapes"),
])  # fmt: skip
def test_misuse_is_answered_with_one_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call()
