"""Optimizers: against their formulas, against PyTorch, on Rows and on whole gradients."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metagrad
from metagrad import Rows, Tensor, nn, optim

V, D, STEPS = 8, 3, 20

# Name here, and how to make the same optimizer here and in PyTorch.
SAME_IN_TORCH = {
    "SGD": (optim.SGD, {"lr": 0.1}),
    "SGD momentum": (optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "SGD nesterov": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "SGD weight decay": (optim.SGD, {"lr": 0.1, "weight_decay": 0.05}),
    "SGD all": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05}),
    "Adagrad": (optim.Adagrad, {"lr": 0.1}),
    "Adagrad weight decay": (optim.Adagrad, {"lr": 0.1, "eps": 1e-3, "weight_decay": 0.05}),
    "Adam": (optim.Adam, {"lr": 0.1}),
    "Adam all": (optim.Adam, {"lr": 0.1, "betas": (0.5, 0.8), "eps": 1e-3, "weight_decay": 0.05}),
    "AdamW": (optim.AdamW, {"lr": 0.1}),
    "AdamW all": (optim.AdamW, {"lr": 0.1, "betas": (0.5, 0.8), "eps": 1e-3, "weight_decay": 0.5}),
}
MAKES = [optim.SGD, optim.Adagrad, optim.Adam, optim.AdamW]


def table(seed: int = 0, dtype=np.float64) -> nn.Parameter:
    return nn.Parameter(np.random.default_rng(seed).standard_normal((V, D)), dtype=dtype)


def some_rows(seed: int, dtype=np.float64, n: int = 6) -> Rows:
    """A gradient that names some rows more than once."""
    rng = np.random.default_rng(seed)
    return Rows(rng.integers(0, V, n), rng.standard_normal((n, D)).astype(dtype), (V, D))


def whole(rows: Rows) -> Tensor:
    return Tensor(rows.dense())


# ── the formulas ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SAME_IN_TORCH)
def test_twenty_steps_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    make, options = SAME_IN_TORCH[name]
    ours = table()
    theirs = torch.nn.Parameter(torch.tensor(ours.data))
    optimizer, reference = make([ours], **options), getattr(torch.optim, make.__name__)([theirs], **options)
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        grad = rng.standard_normal((V, D))
        ours.grad, theirs.grad = Tensor(grad), torch.tensor(grad)
        optimizer.step()
        reference.step()
        np.testing.assert_allclose(ours.data, theirs.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_lazy_adam_is_pytorchs_sparse_adam():
    torch = pytest.importorskip("torch")
    ours = table()
    theirs = torch.nn.Parameter(torch.tensor(ours.data))
    options = {"lr": 0.1, "eps": 1e-100}  # theirs adds eps before v is corrected, ours after: so none
    optimizer, reference = optim.Adam([ours], **options), torch.optim.SparseAdam([theirs], **options)
    for step in range(STEPS):
        rows = some_rows(step)
        ours.grad = rows
        place, values = torch.tensor(rows.index[None]), torch.tensor(rows.values)
        theirs.grad = torch.sparse_coo_tensor(place, values, rows.shape, check_invariants=True)
        optimizer.step()
        reference.step()
        np.testing.assert_allclose(ours.data, theirs.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_first_steps_by_hand():
    def stepped(make, **options) -> list:
        p = nn.Parameter(np.array([1.0, -2.0]))
        p.grad = Tensor(np.array([0.5, 4.0]))
        make([p], lr=0.1, **options).step()
        return p.tolist()

    assert stepped(optim.SGD) == pytest.approx([0.95, -2.4])
    assert stepped(optim.SGD, weight_decay=1.0) == pytest.approx([0.85, -2.2])
    assert stepped(optim.SGD, momentum=0.5, nesterov=True) == pytest.approx([0.925, -2.6])
    assert stepped(optim.Adagrad) == pytest.approx([0.9, -2.1]), "g / √g² is the sign"
    assert stepped(optim.Adam) == pytest.approx([0.9, -2.1])
    assert stepped(optim.AdamW, weight_decay=0.5) == pytest.approx([0.85, -2.0])


def test_defaults_are_pytorchs():
    torch = pytest.importorskip("torch")
    for make in MAKES:
        theirs = getattr(torch.optim, make.__name__)([torch.zeros(1)]).param_groups[0]
        for name, value in make([nn.Parameter([0.0])]).defaults.items():
            assert value == theirs[name], f"{make.__name__} {name}"


@pytest.mark.parametrize("make", MAKES)
def test_a_loss_falls(make):
    metagrad.manual_seed(0)
    layer = nn.Linear(2, 1)
    x = np.random.default_rng(0).standard_normal((20, 2)).astype(np.float32)
    y = Tensor(x @ np.float32([[1], [-2]]) + np.float32(0.5))
    optimizer = make(layer.parameters(), lr=0.3)
    losses = []
    for _ in range(50):
        loss = nn.MSELoss()(layer(x), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 10


# ── what is left alone ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SAME_IN_TORCH)
def test_parameters_without_a_gradient_and_frozen_ones_stay(name):
    make, options = SAME_IN_TORCH[name]
    used, unused, frozen = table(0), table(1), table(2)
    optimizer = make([used, unused, frozen], **options)
    for p in (used, unused, frozen):
        p.grad = whole(some_rows(3))
    optimizer.step()
    frozen.requires_grad = False
    before = [p.data.copy() for p in (used, unused, frozen)]
    optimizer.zero_grad()
    used.grad = whole(some_rows(4))
    optimizer.step()
    assert (used.data != before[0]).any()
    np.testing.assert_array_equal(unused.data, before[1])
    np.testing.assert_array_equal(frozen.data, before[2])


@pytest.mark.parametrize("name", SAME_IN_TORCH)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_callers_gradient_is_not_changed(name, sparse):
    make, options = SAME_IN_TORCH[name]
    p, rows = table(), some_rows(0)
    given = rows.values if sparse else rows.dense()
    given.flags.writeable = False
    before = given.copy()
    p.grad = rows if sparse else Tensor(given)
    optimizer = make([p], **options)
    optimizer.step()
    optimizer.step()
    np.testing.assert_array_equal(given, before)
    np.testing.assert_array_equal(p.grad.values if sparse else p.grad.data, before)


@pytest.mark.parametrize("make", MAKES)
def test_a_gradient_that_is_a_read_only_view_serves(make):
    p = nn.Parameter([1.0, 2.0])
    (p * 1).sum().backward()
    make([p], lr=0.1, weight_decay=0.1).step()
    assert (p.data < [1, 2]).all()


@pytest.mark.parametrize("make", MAKES)
def test_a_step_is_noticed_by_a_graph_that_needs_the_old_values(make):
    p = nn.Parameter([2.0])
    loss = (p * p).sum()
    p.grad = Tensor([1.0])
    make([p], lr=0.1).step()
    with pytest.raises(RuntimeError, match="written"):
        loss.backward()


def test_zero_grad_forgets_gradients_which_otherwise_add_up():
    p = nn.Parameter([1.0])
    optimizer = optim.SGD([p], lr=1.0)
    (p * 2).sum().backward()
    (p * 2).sum().backward()
    assert p.grad.tolist() == [4]
    optimizer.zero_grad()
    assert p.grad is None


# ── dtypes ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [float, np.float64, np.array, Tensor])
@pytest.mark.parametrize("name", SAME_IN_TORCH)
@pytest.mark.parametrize("sparse", [False, True])
def test_float32_stays_float32_whatever_kind_of_number_the_options_are(name, number, sparse):
    make, options = SAME_IN_TORCH[name]
    options = {k: number(v) if isinstance(v, float) else v for k, v in options.items()}
    if "betas" in options:
        options["betas"] = tuple(map(number, options["betas"]))
    layer = nn.Embedding(V, D, sparse=sparse)
    optimizer = make(layer.parameters(), **options)
    for _ in range(2):
        optimizer.zero_grad()
        layer(np.array([1, 2, 1])).mean().backward()
        assert layer.weight.grad.dtype == np.float32
        optimizer.step()
        optimizer.param_groups[0]["lr"] = number(0.05)
    assert type(optimizer.state_dict()["param_groups"][0]["lr"]) is float
    assert layer.weight.dtype == np.float32
    arrays = [v for v in optimizer.state[0][0].values() if isinstance(v, np.ndarray)]
    assert len(arrays) == {optim.SGD: "momentum" in options, optim.Adagrad: 1}.get(make, 2)
    assert all(array.dtype == np.float32 for array in arrays)


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_gradient_of_another_dtype_does_not_widen_the_state(make, sparse):
    p, rows = table(dtype=np.float32), some_rows(0, np.float64)
    p.grad = rows if sparse else whole(rows)
    optimizer = make([p])
    optimizer.step()
    assert p.dtype == np.float32
    assert all(v.dtype == np.float32 for v in optimizer.state[0][0].values() if isinstance(v, np.ndarray))


@pytest.mark.parametrize("name", SAME_IN_TORCH)
def test_state_follows_a_model_that_moved(name, device):
    make, options = SAME_IN_TORCH[name]
    layer = nn.Linear(2, 1)
    optimizer = make(layer.parameters(), **options)
    for dtype in (np.float32, np.float64, np.float32):
        layer.to(device, dtype)
        before = layer.weight.numpy().copy()
        optimizer.zero_grad()
        layer(Tensor(np.ones((3, 2), dtype)).to(device)).sum().backward()
        optimizer.step()
        assert (layer.weight.numpy() != before).all()
        for state in optimizer.state[0]:
            for value in state.values():
                if not isinstance(value, int):
                    assert value.dtype == layer.weight.dtype and type(value) is type(layer.weight.data)


# ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", [optim.SGD, optim.Adagrad])
def test_rows_and_whole_gradients_agree_where_unread_rows_do_not_move(make):
    sparse, dense = table(), table()
    one, other = make([sparse], lr=0.1, lazy=False), make([dense], lr=0.1)
    for step in range(STEPS):
        sparse.grad = some_rows(step)
        dense.grad = whole(sparse.grad)
        one.step()
        other.step()
        np.testing.assert_allclose(sparse.data, dense.data, rtol=1e-13, atol=1e-14)


LAZY = [name for name in SAME_IN_TORCH if name not in ("SGD", "Adagrad")]


@pytest.mark.parametrize("name", LAZY)
def test_lazily_rows_that_are_read_follow_the_formula_and_others_wait(name):
    make, options = SAME_IN_TORCH[name]
    sparse, dense = table(), table()
    one, other = make([sparse], **options), make([dense], **options)
    rows = Rows(np.array([6, 3, 6]), np.ones((3, D)), (V, D))
    for _ in range(3):  # rows 3 and 6 are read at every step, so for them there is nothing to be lazy about
        before = sparse.data.copy()
        sparse.grad, dense.grad = rows, whole(rows)
        one.step()
        other.step()
        np.testing.assert_allclose(sparse.data[[3, 6]], dense.data[[3, 6]], rtol=1e-13)
        assert (sparse.data[[3, 6]] != before[[3, 6]]).all()
        unread = np.delete(np.arange(V), [3, 6])
        np.testing.assert_array_equal(sparse.data[unread], before[unread])
        for name_, value in one.state[0][0].items():
            if name_ != "step":
                assert not value[unread].any()
                np.testing.assert_allclose(value[[3, 6]], other.state[0][0][name_][[3, 6]], rtol=1e-13)


def test_dense_adam_moves_a_row_again_that_was_read_before_and_lazy_adam_does_not():
    sparse, dense = table(), table()
    one, other = optim.Adam([sparse], lr=0.1), optim.Adam([dense], lr=0.1)
    moved = []
    for row in (3, 5):
        before = [p.data.copy() for p in (sparse, dense)]
        sparse.grad = Rows(np.array([row]), np.ones((1, D)), (V, D))
        dense.grad = whole(sparse.grad)
        one.step()
        other.step()
        changed = [sparse.data != before[0], dense.data != before[1]]
        moved.append([np.flatnonzero(rows.any(axis=1)).tolist() for rows in changed])
        if row == 3:
            np.testing.assert_allclose(sparse.data, dense.data, atol=1e-7)
    assert moved == [[[3], [3]], [[5], [3, 5]]]


@pytest.mark.parametrize("name", LAZY)
def test_without_lazy_rows_are_refused_with_advice_where_it_matters(name):
    make, options = SAME_IN_TORCH[name]
    p = table()
    before = p.data.copy()
    p.grad = some_rows(0)
    with pytest.raises(RuntimeError, match=r"every row.*lazy=True.*Embedding\(sparse=False\)"):
        make([p], **options, lazy=False).step()
    np.testing.assert_array_equal(p.data, before)


@pytest.mark.parametrize("name", SAME_IN_TORCH)
def test_rows_that_name_nothing_change_nothing(name):
    make, options = SAME_IN_TORCH[name]
    p = table()
    before = p.data.copy()
    p.grad = Rows(np.empty(0, np.int64), np.empty((0, D)), (V, D))
    make([p], **options).step()
    np.testing.assert_array_equal(p.data, before)


@pytest.mark.parametrize("name", SAME_IN_TORCH)
def test_two_runs_over_repeated_rows_are_bit_equal(name):
    def trained():
        make, options = SAME_IN_TORCH[name]
        p = table(dtype=np.float32)
        optimizer = make([p], **options)
        for step in range(5):
            p.grad = some_rows(step, np.float32, n=100)
            optimizer.step()
        return p.data

    np.testing.assert_array_equal(trained(), trained())


# ── groups and bad input ─────────────────────────────────────────────────────────────────────────────


def test_groups_have_options_of_their_own():
    a, b, c = (nn.Parameter([1.0]) for _ in range(3))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5, "momentum": 0.5}], lr=0.1)
    optimizer.add_param_group({"params": [c], "lr": 2.0})
    for _ in range(2):
        for p in (a, b, c):
            p.grad = Tensor([1.0])
        optimizer.step()
    assert [p.item() for p in (a, b, c)] == pytest.approx([1 - 0.2, 1 - 0.5 - 0.75, 1 - 4])
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.step()
    assert a.item() == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        (lambda p: p, TypeError, "list of Tensors"),
        (lambda p: [], ValueError, "generator that was used up"),
        (lambda p: [p, p], ValueError, r"shape \(1,\) is given twice"),
        (lambda p: [{"params": [p]}, {"params": [p]}], ValueError, "given twice"),
        (lambda p: [p * 2], TypeError, "leaves"),
        (lambda p: [p.data], TypeError, "leaves"),
        (lambda p: [{"lr": 1.0}], TypeError, "a dict with 'params'"),
        (lambda p: [{"params": [p]}, p], TypeError, "a dict with 'params'"),
        (lambda p: [{"params": [p], "rate": 1.0}], TypeError, "'rate'.*'lr'"),
        (lambda p: [{"params": [p], "lr": -1.0}], ValueError, "lr is -1.0"),
    ],
)
def test_what_cannot_be_optimized_is_refused(parameters, error, words):
    with pytest.raises(error, match=words):
        optim.SGD(parameters(nn.Parameter([1.0])))


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (optim.SGD, {"lr": -0.1}, "SGD: lr is -0.1"),
        (optim.Adam, {"lr": float("nan")}, "Adam: lr is nan"),
        (optim.AdamW, {"weight_decay": -1.0}, "AdamW: weight_decay"),
        (optim.Adagrad, {"eps": -1.0}, "Adagrad: eps"),
        (optim.SGD, {"momentum": 1.0}, r"momentum is 1.0.*\[0, 1\)"),
        (optim.SGD, {"nesterov": True}, "nesterov.*momentum, which is 0"),
        (optim.Adam, {"betas": (0.9, 1.0)}, "betas"),
        (optim.Adam, {"betas": (0.9,)}, "betas"),
    ],
)
def test_options_that_make_no_sense_are_refused(make, options, words):
    with pytest.raises(ValueError, match=words):
        make([nn.Parameter([1.0])], **options)


def test_an_optimizer_of_ones_own_needs_only_update():
    class SignSGD(optim.Optimizer):
        def update(self, p, grad, state, options):
            p -= options["lr"] * np.sign(grad)

    dense, sparse = table(), table()
    dense.grad, sparse.grad = whole(some_rows(0)), some_rows(0)
    SignSGD([dense, sparse], lr=0.5).step()
    np.testing.assert_allclose(dense.data, sparse.data)
    with pytest.raises(NotImplementedError, match="Optimizer must define update"):
        optim.Optimizer([dense], lr=0.1).step()


# ── state ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_state_dict_is_a_copy_and_loading_copies_too():
    p = table()
    optimizer = optim.Adagrad([p], lr=0.5, eps=0.25)
    p.grad = some_rows(0)
    optimizer.step()
    state = optimizer.state_dict()
    other = optim.Adagrad([table()])
    other.load_state_dict(state)
    assert (other.param_groups[0]["lr"], other.param_groups[0]["eps"]) == (0.5, 0.25)
    assert len(other.param_groups[0]["params"]) == 1
    kept = state["state"][0][0]["sum"]
    kept += 1
    for o in (optimizer, other):
        np.testing.assert_allclose(o.state[0][0]["sum"], kept - 1)
        assert o.state[0][0]["sum"] is not kept


def test_a_state_of_other_parameters_or_of_another_optimizer_is_refused_before_anything_changes():
    p = table()
    optimizer = optim.Adagrad([p], lr=0.5)
    p.grad = some_rows(0)
    optimizer.step()
    before = optimizer.state_dict()

    def refused(error, words, other):
        with pytest.raises(error, match=words):
            optimizer.load_state_dict(other.state_dict())
        np.testing.assert_array_equal(optimizer.state[0][0]["sum"], before["state"][0][0]["sum"])
        assert optimizer.param_groups[0]["lr"] == 0.5

    refused(ValueError, r"have \[1\] parameters, the state is of \[2\]", optim.Adagrad([table(), table()]))
    narrow = nn.Parameter([1.0])
    narrow.grad = Tensor([1.0])
    other = optim.Adagrad([narrow])
    other.step()
    refused(ValueError, r"sum of parameter 0 has shape \(1,\), not \(8, 3\)", other)
    refused(TypeError, "betas.*does not match its options", optim.Adam([table()]))


KINDS: dict[str, tuple[type, dict[str, Any]]] = {
    "SGD": (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "Adagrad": (optim.Adagrad, {}),
    "Adam": (optim.Adam, {}),
    "AdamW": (optim.AdamW, {"betas": (0.8, 0.9)}),
}


class Classifier(nn.Module):
    def __init__(self) -> None:
        self.words = nn.Embedding(9, 4, padding_idx=0)
        self.out = nn.Linear(4, 2)

    def forward(self, ids):
        return self.out(self.words(ids))


def train(kind: str, first: int, last: int, path: Path) -> None:
    """Steps first … last − 1 of a run: what came before is loaded from `path`, the end is saved there."""
    metagrad.manual_seed(0)
    model = Classifier()
    make, options = KINDS[kind]
    groups = [{"params": model.words.parameters(), "lr": 0.3}, {"params": model.out.parameters()}]
    optimizer = make(groups, lr=0.1, **options)
    scheduler = optim.CosineAnnealingLR(optimizer, 10)
    rng = np.random.default_rng(5)
    if first:
        saved = metagrad.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        rng.bit_generator.state = saved["rng"]
    for _ in range(first, last):
        ids = rng.integers(0, 9, 6)
        loss = nn.CrossEntropyLoss()(model(ids), ids % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "rng": rng.bit_generator.state,
    }
    metagrad.save(state, path)


def test_a_run_resumed_in_a_new_process_is_bit_equal_to_one_that_went_on(tmp_path):
    for kind in KINDS:
        train(kind, 0, 4, tmp_path / f"whole {kind}.npz")
        train(kind, 0, 2, tmp_path / f"halves {kind}.npz")
    script = (
        f"import sys; sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}\n"
        "import pathlib, test_optim\n"
        "for kind in test_optim.KINDS:\n"
        f"    test_optim.train(kind, 2, 4, pathlib.Path({str(tmp_path)!r}, f'halves {{kind}}.npz'))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    for kind in KINDS:
        whole_run, halves = tmp_path / f"whole {kind}.npz", tmp_path / f"halves {kind}.npz"
        one, other = metagrad.load(whole_run), metagrad.load(halves)
        assert all(one["optimizer"]["state"][0]), "there is state to compare"
        np.testing.assert_equal(other, one)
        assert halves.read_bytes() == whole_run.read_bytes()


@pytest.mark.parametrize("optimizer", [optim.SGD, optim.Adagrad, optim.Adam, optim.AdamW])
def test_a_large_parameter_moves_as_a_small_one_does(optimizer, monkeypatch):
    """It is updated part by part; steps are counted once."""
    options = {"lr": 0.1, "weight_decay": 0.01, **({"momentum": 0.9} if optimizer is optim.SGD else {})}
    rng = np.random.default_rng(0)
    start, gradients = rng.standard_normal((70, 3)), rng.standard_normal((4, 70, 3))
    results = []
    for part in (1 << 17, 100, 1):
        monkeypatch.setattr("metagrad.optim.optimizer._PART", part)
        p = Tensor(start.copy(), requires_grad=True)
        steps = optimizer([p], **options)
        for gradient in gradients:
            p.grad = Tensor(gradient)
            steps.step()
        p.grad = Rows(np.arange(50), gradients[0, :50], p.shape)
        steps.step()
        results.append(p.numpy().copy())
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()
