"""Swapping devices: nothing moves unasked, mixing is refused with both names, and the same lines run on either.

On the stand-in for CuPy, which has two devices; what only a real GPU can show is test_gpu.py's.
"""

import copy
import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from metagrad import Rows, Tensor, cuda, grad, manual_seed, nn, no_grad, optim
from metagrad import functional as F

from . import standin


@pytest.fixture
def gpu(monkeypatch):
    """The name of a device of the stand-in."""
    monkeypatch.setitem(sys.modules, "cupy", standin.cupy)
    yield "cuda:0"
    standin.Device(0).use()  # no failure of one test is another's


def leaf(values, device="cpu", dtype=np.float64):
    return Tensor(np.array(values, dtype), device=device, requires_grad=True)


# Names ----------------------------------------------------------------------------------------------


def test_devices_and_their_names(gpu):
    names = {"cpu": "cpu", "cuda": "cuda:0", "cuda:1": "cuda:1", 1: "cuda:1", 0: "cuda:0", cuda.get_device(1): "cuda:1"}
    for name, shown in names.items():
        assert str(cuda.get_device(name)) == shown
    assert cuda.get_device("cuda") == cuda.get_device(0) != cuda.get_device(1)
    assert repr(cuda.get_device("cuda:1")) == "Device('cuda:1')"
    assert cuda.is_available() and cuda.device_count() == 2
    assert str(Tensor([1.0], device="cuda:1").device) == "cuda:1"
    assert type(Tensor([1.0], device="cuda:1").data) is standin.ndarray


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:", "cuda:-1", "cpu:0", "", None, "CUDA", "cuda:1.0"])
def test_a_name_that_means_nothing_is_refused(name, gpu):
    with pytest.raises(ValueError, match="no device is called .*: say 'cpu', 'cuda' or 'cuda:<number>'"):
        cuda.get_device(name)


@pytest.mark.parametrize("device", ["cuda:2", 2, -1, cuda.Device("cuda", 7)])
def test_a_gpu_that_is_not_there_is_named(device, gpu):
    with pytest.raises(RuntimeError, match=r"no device 'cuda:-?\d': this machine offers 2 GPU\(s\)"):
        cuda.get_device(device)


# Without CuPy ---------------------------------------------------------------------------------------


def test_without_cupy_there_is_one_clear_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # makes `import cupy` raise ImportError
    assert not cuda.is_available() and cuda.device_count() == 0
    assert str(cuda.get_device("cuda:0" if cuda.is_available() else "cpu")) == "cpu"
    for ask in (
        lambda: cuda.get_device("cuda:0"), lambda: Tensor([1.0], device="cuda"), lambda: Tensor([1.0]).to("cuda"),
        lambda: nn.Linear(2, 2).to("cuda:0"), lambda: Tensor.zeros(2, device=0),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"needs CuPy, .* not installed here: `pip install metagrad\[cuda12\]`"):
            ask()


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_the_package_neither_imports_nor_needs_cupy():
    program = "import sys, metagrad; print('cupy' in sys.modules, metagrad.cuda.is_available())"
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=paths)
    assert done.stdout.split() == ["False", "False"]


def test_cupy_without_a_gpu_is_no_gpu(monkeypatch, gpu):
    def fail():
        raise standin.CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    monkeypatch.setattr(standin.cupy.cuda.runtime, "getDeviceCount", fail)
    assert not cuda.is_available()
    with pytest.raises(RuntimeError, match=r"offers 0 GPU\(s\)"):
        cuda.get_device("cuda:0")


# Moving ---------------------------------------------------------------------------------------------


def test_to_and_back(gpu):
    x = Tensor([1.0, 2.0])
    there = x.to(gpu)
    assert (str(there.device), str(there.cpu().device), str(x.device)) == (gpu, "cpu", "cpu")
    assert there.to(gpu) is there and x.cpu() is x and x.to("cpu") is x
    assert type(there.numpy()) is np.ndarray and there.numpy().tolist() == [1, 2]
    assert there.dtype == np.float32 and there.to("cuda:1").numpy().tolist() == [1, 2]
    assert Tensor(there, device="cpu").numpy().tolist() == [1, 2]
    copied = there.numpy()
    copied[0] = 9
    assert there.tolist() == [1, 2]


def test_the_gradient_travels_back_through_to(gpu):
    x = leaf([1.0, 2.0])
    y = x.to(gpu)
    assert y.requires_grad and not y.is_leaf
    ((y * y).to("cuda:1") * 2).cpu().sum().backward()
    assert str(x.grad.device) == "cpu" and x.grad.numpy().tolist() == [4, 8]
    w = leaf([1.0, 2.0], gpu)
    (w.cpu() * x).sum().backward()
    assert str(w.grad.device) == gpu and w.grad.numpy().tolist() == [1, 2]


def test_second_derivatives_travel_too(gpu):
    x = leaf([2.0])
    (g,) = grad((x.to(gpu) ** 3).sum(), x, create_graph=True)
    (h,) = grad(g, x)
    assert (g.item(), h.item(), str(g.device), str(h.device)) == (12, 12, "cpu", "cpu")


def test_nothing_moves_unasked(gpu):
    x = Tensor([1.0], device=gpu)
    for ask in (np.asarray, np.array, lambda t: np.asarray(t, dtype=np.float64)):
        with pytest.raises(TypeError, match=r"does not move data off cuda:0: say x\.numpy\(\) or x\.cpu\(\)"):
            ask(x)
    assert (x.item(), float(x), x.tolist(), bool(x > 0)) == (1.0, 1.0, [1.0], True)


# Mixing ---------------------------------------------------------------------------------------------

BOTH = "cpu and cuda:0"
MIXES = {
    "add": lambda x, h: x + h, "add reflected": lambda x, h: h + x, "array": lambda x, h: x * h.data,
    "array left": lambda x, h: h.data * x,
    "pow": lambda x, h: x**h, "rpow": lambda x, h: h.data**x, "matmul": lambda x, h: x @ h, "maximum": F.maximum,
    "less": lambda x, h: x < h,
    "equal": lambda x, h: x == h, "array less": lambda x, h: h.data < x, "and": lambda x, h: (x > 0) & (h > 0),
    "where": lambda x, h: F.where(x > 1, x, h), "where condition": lambda x, h: F.where(h > 1, x, x),
    "where array": lambda x, h: F.where((h > 1).data, x, 0.0),
    "index": lambda x, h: x[Tensor([0, 1])], "index array": lambda x, h: x[np.array([0, 1])],
    "mask": lambda x, h: x[h > 1],
    "index of host": lambda x, h: h[Tensor([0, 1]).to("cuda:0")], "gather": lambda x, h: x.gather(0, Tensor([0])),
    "take_along_axis": lambda x, h: F.take_along_axis(x, np.array([0]), 0),
    "index_fill": lambda x, h: x.index_fill(0, Tensor([0]), 1.0),
    "embedding": lambda x, h: F.embedding(x, Tensor([0])),
    "embedding array": lambda x, h: F.embedding(x, np.array([0])),
    "embedding on host": lambda x, h: F.embedding(h, Tensor([0], device="cuda:0")),
    "concatenate": lambda x, h: F.concatenate([x, h]), "stack": lambda x, h: F.stack([h, x]),
    "einsum": lambda x, h: F.einsum("i,i->", x, h),
    "linear": lambda x, h: F.linear(x, h.reshape(1, 3)), "mse": F.mse_loss, "bce": F.binary_cross_entropy_with_logits,
    "bce array": lambda x, h: F.binary_cross_entropy_with_logits(x, h.data),
    "bce weight": lambda x, h: F.binary_cross_entropy_with_logits(x, x.detach(), weight=h),
    "bce pos_weight": lambda x, h: F.binary_cross_entropy_with_logits(x, x.detach(), pos_weight=h),
    "cross_entropy": lambda x, h: F.cross_entropy(x.reshape(1, 3), Tensor([0])),
    "cross_entropy array": lambda x, h: F.cross_entropy(x.reshape(1, 3), np.array([0])),
    "add_": lambda x, h: x.add_(h), "copy_": lambda x, h: x.copy_(h),
    "setitem": lambda x, h: x.__setitem__(slice(None), h),
    "setitem array": lambda x, h: x.__setitem__(slice(None), h.data),
    "setitem index": lambda x, h: x.__setitem__(Tensor([0]), 1.0),
    "backward": lambda x, h: (leaf([1.0, 2.0, 3.0], "cuda:0") * 2).backward(h),
    "backward on host": lambda x, h: (leaf([1.0, 2.0, 3.0]) * 2).backward(x),
    "backward array": lambda x, h: (leaf([1.0, 2.0, 3.0], "cuda:0") * 2).backward(h.data),

}  # fmt: skip


@pytest.mark.parametrize("name", MIXES)
def test_mixing_devices_raises_and_names_both(name, gpu):
    x, h = Tensor([1.0, 2.0, 3.0], device=gpu), Tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError) as caught:
        MIXES[name](x, h)
    assert "cpu" in str(caught.value) and "cuda:0" in str(caught.value)
    assert x.tolist() == [1, 2, 3]


def test_mixing_two_gpus_names_both(gpu):
    with pytest.raises(RuntimeError, match=r"Mul: operands are on cuda:0 and cuda:1; bring .* x\.to\(device\)"):
        Tensor([1.0], device="cuda:0") * Tensor([1.0], device="cuda:1")


def test_a_model_on_one_device_and_a_batch_on_another(gpu):
    model = nn.Linear(3, 2).to(gpu)
    for batch in (np.ones((4, 3), np.float32), Tensor.ones(4, 3)):
        with pytest.raises(RuntimeError, match=BOTH):
            model(batch)
    assert model(Tensor.ones(4, 3, device=gpu)).shape == (4, 2)


@pytest.mark.parametrize("f", [
    lambda x: x * 2, lambda x: 2.5 - x, lambda x: x * np.float32(2), lambda x: np.float32(2) * x, lambda x: x * True,
    lambda x: x[[0, 1]], lambda x: x[0],
    lambda x: x + [1.0, 2.0, 3.0], lambda x: F.where(x > 1, x, 0.0), lambda x: F.where(x > 1, [1.0, 1.0, 1.0], x),
    lambda x: F.cross_entropy(x.reshape(1, 3), [0]),
    lambda x: F.binary_cross_entropy_with_logits(x, [0.0, 1.0, 1.0], weight=[1, 1, 0]),
    lambda x: F.mse_loss(x, [1.0, 2.0, 3.0]), lambda x: F.embedding(x, [0]),
    lambda x: x > [1.0, 2.0, 3.0], lambda x: x == 1, lambda x: x.gather(0, [0]), lambda x: x.index_fill(0, [0], 1.0),
])  # fmt: skip
def test_numbers_and_lists_go_where_the_tensor_beside_them_is(f, gpu):
    assert str(f(Tensor([1.0, 2.0, 3.0], device=gpu)).device) == gpu


@pytest.mark.parametrize("write", [
    lambda x: x.__setitem__(0, 5.0), lambda x: x.__setitem__(0, np.float32(5)),
    lambda x: x.__setitem__(slice(0, 2), [5.0, 6.0]), lambda x: x.__setitem__([0], 5.0),
    lambda x: x.copy_([5.0, 6.0, 7.0]), lambda x: x.add_([4.0, 0.0, 0.0]), lambda x: x.add_(np.float32(4)),
    lambda x: x.index_fill_(0, [0], 5.0),
])  # fmt: skip
def test_numbers_and_lists_are_written_into_a_tensor_wherever_it_is(write, device):
    x = Tensor([1.0, 2.0, 3.0], device=device)
    write(x)
    assert x.tolist()[0] == 5


# Indices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use", [
    lambda x: x[[3]], lambda x: x[[-4]], lambda x: x[3], lambda x: x[Tensor([0, 7]).to(x.device)],
    lambda x: x[([0], [5])], lambda x: x.index_fill(0, [3], 1.0),
    lambda x: x.gather(0, [[3, 0]]), lambda x: x.__setitem__([3], 1.0), lambda x: x.__setitem__(3, 1.0),
    lambda x: x.index_fill_(0, [-4], 1.0),
    lambda x: F.embedding(x, [3]), lambda x: F.cross_entropy(x, [0, 1, 2]),
])  # fmt: skip
def test_an_index_out_of_range_raises_on_every_device(use, device):
    """CuPy itself would wrap it around and read another row."""
    with pytest.raises(IndexError):
        use(Tensor(np.zeros((3, 2)), device=device))


def test_indices_from_behind_work_on_every_device(device):
    x = leaf([1.0, 2.0, 3.0], device)
    x[[-1, 0, -1]].sum().backward()
    assert x.grad.numpy().tolist() == [1, 0, 2]


@pytest.mark.parametrize("index", [
    ([0, 1], ...), (..., [1, 0]), (None, [0, 1]), ([0, 1], slice(None), [1, 0]), (0, ..., [1]),
    ([[True, False, True], [False] * 3], [1, 2]),
    (..., None), ([-2], ..., [-1]), (slice(None), [0, 2]), (True, [0]), ([True, False], [2]), np.bool_(True),
])  # fmt: skip
def test_mixed_indices_work_on_every_device(index, device):
    values = np.arange(2.0 * 3 * 4).reshape(2, 3, 4)
    x = leaf(values, device)
    found = x[index]
    np.testing.assert_array_equal(found.numpy(), values[index])
    found.sum().backward()
    expected = np.zeros((2, 3, 4))
    np.add.at(expected, index, 1)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


# More than one GPU ----------------------------------------------------------------------------------


def test_the_second_gpu_computes_without_being_made_current(gpu):
    x = leaf([[1.0, 2.0], [3.0, 4.0]], "cuda:1")
    y = (x @ x.T).exp()[[0, 1]].max(axis=0) * 0.1
    assert str(y.device) == "cuda:1"
    y.sum().backward()
    assert str(x.grad.device) == "cuda:1"
    host = leaf([[1.0, 2.0], [3.0, 4.0]])
    ((host @ host.T).exp()[[0, 1]].max(axis=0) * 0.1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), host.grad.numpy())
    F.embedding(x, [1, 1]).sum().backward()
    (x * 1).sum().backward()
    with no_grad():
        x.mul_(2.0)
        x[0] = 0.0
    (g,) = grad((x**3).sum(), x, create_graph=True)
    g.sum().backward()
    assert (x > 1).sum().item() == 2 and x.argmax().item() == 3 and standin.Device().id == 0
    assert Tensor.rand(2, device="cuda:1").shape == (2,) and x.astype(np.float32).dtype == np.float32
    assert repr(x[0]) and x.sum().item() == 14


def test_gradients_that_come_back_over_other_devices_meet_where_their_tensor_is(gpu):
    w = leaf([1.0, 2.0], "cuda:1")
    y = w * 2
    (y.to(gpu).cpu() + y.cpu() + w.cpu() + (w.to(gpu) * 1).cpu()).sum().backward()
    assert w.grad.numpy().tolist() == [6, 6] and str(w.grad.device) == "cuda:1"
    table = leaf(np.ones((3, 2)), "cuda:1")
    for _ in range(2):
        F.embedding(table, [0, 1]).sum().cpu().backward()
        (table * 1).cpu().sum().backward()
    assert table.grad.numpy()[:, 0].tolist() == [4, 4, 2]
    table.grad = None
    (table * 1).cpu().sum().backward()
    F.embedding(table, [0, 1]).sum().cpu().backward()
    assert table.grad.numpy()[:, 0].tolist() == [2, 2, 1]
    for replace in (True, False):
        assert str(Tensor.multinomial(Tensor([1.0, 2.0], device="cuda:1"), 2, replace=replace).device) == "cuda:1"


def test_the_current_gpu_is_what_it_was_also_after_an_error(gpu):
    x = leaf([1.0, 2.0], "cuda:1")
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    with pytest.raises(ValueError, match="shape|broadcast"):
        x + Tensor([1.0, 2.0, 3.0], device="cuda:1")
    assert standin.Device().id == 0


# Modules and optimizers -----------------------------------------------------------------------------


def test_a_model_moves_in_place_and_its_optimizer_with_it(gpu):
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2))
    model.tied = model.parts[1]
    parameters = list(model.parameters())
    opt = optim.SGD(parameters, lr=1.0, momentum=0.9)

    def step():
        opt.zero_grad()
        F.cross_entropy(model(Tensor([0, 1], device=model.device)), [0, 1]).backward()
        opt.step()

    step()
    assert model.to(gpu) is model and str(model.device) == gpu
    assert all(p is q and str(p.device) == gpu for p, q in zip(model.parameters(), parameters))
    grads = [p.grad for p in parameters]
    assert all(str(cuda.device_of(g.values if isinstance(g, Rows) else g.data)) == gpu for g in grads)
    before = [p.numpy().copy() for p in parameters]
    step()
    assert all((p.numpy() != b).any() for p, b in zip(parameters, before))
    model.to("cpu")
    step()
    assert all(p.is_leaf and p.requires_grad and str(p.device) == "cpu" for p in parameters)


def test_a_frozen_parameter_stays_frozen_when_it_moves(gpu):
    model = nn.Linear(2, 2)
    model.weight.requires_grad = False
    model.to(gpu)
    assert not model.weight.requires_grad and model.bias.requires_grad


def test_a_model_that_changes_its_dtype_gets_gradients_of_that_dtype(device):
    model = nn.Linear(2, 2).to(device)
    model(Tensor.ones(1, 2, device=device)).sum().backward()
    model.to(dtype=np.float64)
    assert model.weight.dtype == model.weight.grad.dtype == np.float64
    model.zero_grad()
    model(Tensor.ones(1, 2, dtype=np.float64, device=device)).sum().backward()
    assert model.weight.grad.dtype == np.float64


def test_a_copy_stays_on_its_device(gpu):
    x = leaf([1.0], "cuda:1")
    assert str(copy.deepcopy(x).device) == "cuda:1"
    assert str(copy.deepcopy(nn.Linear(2, 2).to(gpu)).device) == gpu


def trained(device):
    """The parameters of a small model after five steps of Adam."""
    manual_seed(0)
    model = nn.Sequential(nn.Embedding(6, 4, padding_idx=0), nn.Linear(4, 3)).to(device)
    opt = optim.Adam(model.parameters(), lr=0.05)
    ids, labels = Tensor([0, 1, 2, 3, 3], device=device), Tensor([0, 1, 2, 1, 1], device=device)
    for _ in range(5):
        opt.zero_grad()
        F.cross_entropy(model(ids), labels).backward()
        opt.step()
    return np.concatenate([p.numpy().ravel() for p in model.parameters()])


def test_training_ends_in_the_same_place_on_every_device(device):
    np.testing.assert_allclose(trained(device), trained("cpu"), rtol=1e-5, atol=1e-6)


# Random streams -------------------------------------------------------------------------------------


def test_each_device_has_a_stream_that_a_seed_restarts(gpu):
    def draws(name):
        return Tensor.rand(4, device=name).tolist() + Tensor.randn(2, device=name).tolist()

    manual_seed(7)
    first = {name: draws(name) for name in ("cpu", "cuda:0", "cuda:1")}
    assert all(draws(name) != first[name] for name in first)
    manual_seed(7)
    assert {name: draws(name) for name in ("cuda:1", "cpu", "cuda:0")} == first  # whatever the order
    manual_seed(8)
    assert all(draws(name) != first[name] for name in first)


def test_a_module_starts_the_same_on_every_device(gpu):
    manual_seed(1)
    there = nn.Linear(3, 2).to(gpu)
    manual_seed(1)
    assert (there.weight.numpy() == nn.Linear(3, 2).weight.numpy()).all()


def test_targets_may_lie_on_another_gpu_than_the_current_one(gpu):
    for name in (gpu, "cuda:1"):
        scores = Tensor([[1.0, 2.0], [0.5, 0.0]], device=name, requires_grad=True)
        loss = F.cross_entropy(scores, Tensor([1, 0], device=name))
        loss.backward()
        assert str(loss.device) == str(scores.grad.device) == name
        with pytest.raises(IndexError, match="target 2 at"):
            F.cross_entropy(scores, Tensor([2, 0], device=name))
