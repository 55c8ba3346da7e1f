"""Every operation of the table: values by NumPy, first and second derivatives by differences, dtypes, devices."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

from metagrad import Function, Tensor, debug_mode, functional, grad, gradcheck, gradgradcheck, ops
from metagrad.rows import Rows

from .table import TABLE, rows

ROWS = [pytest.param(op, sample, id=f"{op.name} {sample.shapes} {sample.constants}"[:70]) for op, sample in rows()]

RULES = [f"{ops.__name__}.{module.name}" for module in pkgutil.iter_modules(ops.__path__)]


def on_device(arrays, device, dtype=np.float64):
    return [Tensor(a.astype(dtype), device=device, requires_grad=True) for a in arrays]


@pytest.mark.parametrize("op, sample", ROWS)
def test_values_are_numpys(op, sample, device):
    arrays = op.inputs(sample)
    out = op.call(*on_device(arrays, device), **sample.constants)
    expected = op.reference(*arrays, **sample.constants)
    assert out.shape == expected.shape
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("op, sample", ROWS)
def test_derivatives_are_those_of_differences(op, sample):
    if op.constant:
        assert not op.call(*on_device(op.inputs(sample), "cpu"), **sample.constants).requires_grad
        return
    arrays = op.inputs(sample)
    assert gradcheck(lambda *xs: op.call(*xs, **sample.constants), *arrays)
    if op.smooth:
        assert gradgradcheck(lambda *xs: op.call(*xs, **sample.constants), *arrays)


@pytest.mark.parametrize("op, sample", ROWS)
def test_gradients_agree_on_every_device_and_keep_float32(op, sample, device):
    """The gradient on a device is that of the host, which differences have checked; float32 stays float32."""
    if op.constant:
        return
    arrays = op.inputs(sample)
    host, there = on_device(arrays, "cpu"), on_device(arrays, device, np.float32)
    for points in (host, there):
        out = op.call(*points, **sample.constants)
        weights = np.random.default_rng(1).uniform(0.5, 1.5, out.shape).astype(points[0].dtype)
        out.backward(Tensor(weights).to(out.device))
    for x, y in zip(host, there):
        found = y.grad.dense() if isinstance(y.grad, Rows) else y.grad
        expected = x.grad.dense() if isinstance(x.grad, Rows) else x.grad.numpy()
        found = found if isinstance(found, Tensor) else Tensor(found)
        assert found.dtype == np.float32 and str(found.device) == str(y.device)
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-4, atol=1e-5)


def test_no_operation_is_left_out():
    """Each rule runs in some row, and each function of F has a row of its name."""
    with debug_mode(table=False) as watch:
        for op, sample in rows():
            points = on_device(op.inputs(sample), "cpu")
            out = op.call(*points, **sample.constants)
            if out.requires_grad:
                grad(out, points, [np.ones(out.shape)], create_graph=True, allow_unused=True)
    ran = {name for name, _ in watch.counts}
    rules = {
        name
        for module in map(importlib.import_module, RULES)
        for name, rule in vars(module).items()
        if inspect.isclass(rule) and issubclass(rule, Function) and "forward" in vars(rule) and rule is not Function
    }
    assert rules - ran - {"ToDevice"} == set()  # moving needs two devices: test_devices.py
    functions = {
        n for n, f in vars(functional).items() if inspect.isfunction(f) and f.__module__.startswith(functional.__name__)
    }
    assert {n for n in functions if not n.startswith("_")} - {op.name for op in TABLE} == set()


def test_the_table_is_printed(capsys):
    with capsys.disabled():
        print(f"\n{len(TABLE)} operations, {len(ROWS)} samples", end=" ")
    assert len({op.name for op in TABLE}) == len(TABLE)
