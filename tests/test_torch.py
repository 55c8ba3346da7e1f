"""The table of operations beside PyTorch, where it is installed: values and gradients in float64."""

import numpy as np
import pytest

from metagrad import Rows, Tensor

from .table import TABLE

torch = pytest.importorskip("torch")
from .table.pytorch import EQUIVALENTS, EXCEPT, NONE  # noqa: E402, which imports torch


def there(value):
    """A row's constants, also within tuples, with arrays as PyTorch's."""
    if isinstance(value, tuple):
        return tuple(there(part) for part in value)
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def excepted(op, sample):
    return op.name in EXCEPT and EXCEPT[op.name][0](sample)


SAMPLES = [
    pytest.param(op, sample, id=f"{op.name} {sample.shapes} {sample.constants}"[:70])
    for op in TABLE if op.name in EQUIVALENTS for sample in op.samples if not excepted(op, sample)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op, sample", SAMPLES)
def test_values_and_gradients_are_pytorchs(op, sample):
    arrays = op.inputs(sample)
    ours = [Tensor(array, requires_grad=True) for array in arrays]
    out = op.call(*ours, **sample.constants)
    theirs = [torch.from_numpy(array.copy(order="K")).requires_grad_() for array in arrays]
    expected = EQUIVALENTS[op.name](*theirs, **{k: there(v) for k, v in sample.constants.items()})
    assert out.shape == tuple(expected.shape)
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    if op.constant:
        return
    weights = np.random.default_rng(1).uniform(0.5, 1.5, out.shape)
    out.backward(Tensor(weights))
    expected.backward(torch.from_numpy(weights))
    for x, y in zip(ours, theirs):
        np.testing.assert_allclose(gradient(x), np.zeros(x.shape) if y.grad is None else y.grad, rtol=1e-9, atol=1e-11)


def gradient(x):
    if x.grad is None:
        return np.zeros(x.shape)
    return x.grad.dense() if isinstance(x.grad, Rows) else x.grad.numpy()


def test_every_row_is_compared_or_has_a_reason(capsys):
    names = {op.name for op in TABLE}
    assert names == set(EQUIVALENTS) | set(NONE) and not set(EQUIVALENTS) & set(NONE)
    assert set(EXCEPT) <= names
    left_out = sum(len(op.samples) for op in TABLE) - len(SAMPLES)
    with capsys.disabled():
        print(f"\n{len(EQUIVALENTS)} operations, {len(SAMPLES)} samples beside PyTorch; {left_out} left out", end=" ")
    assert left_out < 0.03 * len(SAMPLES)
