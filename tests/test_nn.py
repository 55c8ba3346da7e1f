"""Modules, parameters, layers, losses and initialisers."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import metagrad
from metagrad import Tensor, nn, optim
from metagrad import functional as F
from metagrad.cuda import get_device


class TwoLayers(nn.Module):
    def __init__(self) -> None:
        self.hidden = nn.Linear(3, 4)
        self.scale = nn.Parameter([2.0])
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.hidden(x).tanh()) * self.scale


class Tied(nn.Module):
    """Two tables that are one."""

    def __init__(self) -> None:
        self.words = nn.Embedding(5, 2)
        self.contexts = nn.Embedding(5, 2)
        self.contexts.weight = self.words.weight

    def forward(self, ids):
        return (self.words(ids) * self.contexts(ids)).sum()


def names(module: nn.Module) -> list[str]:
    return [name for name, _ in module.named_parameters()]


# ── parameters and their names ───────────────────────────────────────────────────────────────────────


def test_parameters_come_in_the_order_of_assignment_with_dotted_names():
    model = TwoLayers()
    assert names(model) == ["hidden.weight", "hidden.bias", "scale", "out.weight", "out.bias"]
    assert list(model.state_dict()) == names(model)
    assert [name for name, _ in model.named_modules()] == ["", "hidden", "out"]


def test_modules_and_parameters_in_lists_tuples_and_dicts_are_found():
    model = nn.Module()
    model.layers = [nn.Linear(1, 1, bias=False), (nn.Linear(1, 1, bias=False),)]
    model.heads = {"a": nn.Linear(1, 1, bias=False), "b": [nn.Parameter([0.0])]}
    model.words = ["not", "parts"]
    assert names(model) == ["layers.0.weight", "layers.1.0.weight", "heads.a.weight", "heads.b.0"]


def test_a_tensor_that_is_no_parameter_is_no_part():
    model = nn.Module()
    model.constant = Tensor([1.0], requires_grad=True)
    assert names(model) == []


def test_two_parameters_of_one_name_are_refused():
    model = nn.Module()
    model.heads = {1: nn.Parameter([1.0]), "1": nn.Parameter([2.0])}
    with pytest.raises(ValueError, match="both called 'heads.1'"):
        model.state_dict()


def test_a_module_that_holds_its_parent_is_walked_and_shown_once():
    parent, child = nn.Module(), nn.Linear(2, 2, bias=False)
    parent.child, child.parent = child, parent
    assert names(parent) == ["child.weight"]
    assert "..." in repr(parent)


def test_a_parameter_owns_its_memory_and_is_float32_unless_the_data_says_otherwise():
    array = np.zeros(2)
    parameter = nn.Parameter(array)
    parameter.data += 1
    assert array.tolist() == [0, 0]
    assert parameter.dtype == np.float64
    assert nn.Parameter([1.0, 2.0]).dtype == np.float32
    assert type(parameter * 2) is Tensor


def test_an_integer_parameter_is_refused_by_dtype():
    with pytest.raises(TypeError, match="int64"):
        nn.Parameter([1, 2])


def test_train_and_eval_reach_every_module():
    model = nn.Sequential(nn.Sequential(nn.Linear(1, 1)))
    assert model.training and model[0][0].training
    assert model.eval() is model
    assert not model.training and not model[0][0].training
    assert model.train()[0][0].training


def test_a_module_without_forward_says_so_by_name():
    class Model(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="Model must define forward"):
        Model()(1)


def test_zero_grad_and_freezing_reach_every_parameter():
    model = TwoLayers()
    x = np.ones((2, 3), np.float32)
    model(x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.requires_grad_(False)
    assert not model(x).requires_grad
    assert model.requires_grad_() is model and all(p.requires_grad for p in model.parameters())


def test_repr_shows_the_tree_and_what_shaped_each_part():
    class Model(nn.Module):
        def __init__(self) -> None:
            self.words = nn.Embedding(7, 2, padding_idx=0)
            self.layers = [nn.Linear(2, 3, bias=False)]

    assert repr(Model()) == (
        "Model(\n  (words): Embedding(7, 2, padding_idx=0, sparse=True)\n  (layers.0): Linear(2, 3, bias=False)\n)"
    )
    assert repr(nn.Sequential(nn.Sequential(nn.Linear(1, 2)))) == (
        "Sequential(\n  (0): Sequential(\n    (0): Linear(1, 2)\n  )\n)"
    )


def test_a_deep_copy_learns_on_its_own():
    model = Tied()
    model.words.weight.requires_grad = False
    twin = copy.deepcopy(model)
    assert twin.words.weight is twin.contexts.weight, "ties survive"
    assert twin.words.weight is not model.words.weight
    assert isinstance(twin.words.weight, nn.Parameter) and not twin.words.weight.requires_grad
    before = model.state_dict()["words.weight"]
    np.testing.assert_array_equal(twin.words.weight.data, before)
    twin.words.weight.data += 1
    np.testing.assert_array_equal(model.words.weight.data, before)


def test_a_deep_copy_of_an_embedding_keeps_its_padding_row():
    twin = copy.deepcopy(nn.Embedding(4, 2, padding_idx=1))
    nn.init.normal_(twin.weight)
    assert twin.weight.data[1].tolist() == [0, 0]


# ── buffers ──────────────────────────────────────────────────────────────────────────────────────────


class Counting(nn.Module):
    """A layer that remembers two things: numbers and an integer."""

    def __init__(self) -> None:
        self.layer = nn.Linear(2, 1, bias=False)
        self.seen = [nn.Buffer(np.zeros(2, np.float32)), nn.Buffer(np.array(3))]
        self.again = self.seen[0]


def test_a_buffer_is_no_parameter_and_found_once_by_name():
    model = Counting()
    assert names(model) == ["layer.weight"]
    assert [name for name, _ in model.named_buffers()] == ["seen.0", "seen.1"]
    assert list(model.buffers()) == model.seen
    assert not any(buffer.requires_grad for buffer in model.requires_grad_().buffers())
    assert type(model.seen[0] * 2) is Tensor


def test_a_buffer_owns_its_memory():
    array = np.zeros(2)
    buffer = nn.Buffer(array)
    buffer.add_(1)
    assert array.tolist() == [0, 0] and buffer.dtype == np.float64


def test_buffers_are_saved_and_loaded_with_the_parameters(tmp_path, device):
    model, other = Counting().to(device), Counting().to(device)
    model.seen[0].add_(2.5)
    model.seen[1].add_(4)
    assert list(model.state_dict()) == ["layer.weight", "seen.0", "seen.1", "again"]
    metagrad.save(model.state_dict(), tmp_path / "model")
    other.load_state_dict(metagrad.load(tmp_path / "model"))
    assert other.seen[0].tolist() == other.again.tolist() == [2.5, 2.5] and other.seen[1].item() == 7
    with pytest.raises(KeyError, match=r"missing \['seen.0'"):
        other.load_state_dict({"layer.weight": np.ones((1, 2))})


def test_buffers_move_with_the_module_and_integers_stay_integers(device):
    model = Counting().to(device, dtype=np.float64)
    assert [str(buffer.device) for buffer in model.buffers()] == [device] * 2
    assert [buffer.dtype for buffer in model.buffers()] == [np.float64, np.int64]
    assert model.again is model.seen[0]
    model.layer = None
    assert str(model.device) == device, "that of the buffers, where there are no parameters"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_remembers_on_its_own(copied):
    model = Counting()
    twin = copied(model)
    assert type(twin.seen[0]) is nn.Buffer and twin.again is twin.seen[0]
    twin.seen[0].add_(1)
    assert model.seen[0].tolist() == [0, 0] and twin.again.tolist() == [1, 1]


# ── moving ───────────────────────────────────────────────────────────────────────────────────────────


def test_moving_keeps_parameters_ties_and_frozenness(device):
    model = Tied()
    model.frozen = nn.Parameter([1.0], requires_grad=False)
    before = [id(p) for p in model.parameters()]
    assert model.to(device) is model
    assert [id(p) for p in model.parameters()] == before
    assert model.words.weight is model.contexts.weight
    assert not model.frozen.requires_grad
    assert str(model.device) == device


def test_an_optimizer_made_before_the_move_still_trains_the_model(device):
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    model.to(device)
    before = model.weight.numpy().copy()
    model(Tensor(np.ones((1, 2), np.float32)).to(device)).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(model.weight.numpy(), before - 0.5, rtol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_move_along_and_change_their_dtype(device, sparse):
    table = nn.Embedding(4, 2, sparse=sparse)
    table(Tensor([1, 1])).sum().backward()
    table.to(device, dtype=np.float64)
    assert table.weight.dtype == table.weight.grad.dtype == np.float64
    table(Tensor([1]).to(device)).sum().backward()
    grad = table.weight.grad
    grad = Tensor(grad.dense()) if isinstance(grad, metagrad.Rows) else grad
    assert grad.dtype == np.float64 and str(grad.device) == device
    assert grad.numpy().tolist() == [[0, 0], [3, 3], [0, 0], [0, 0]]
    table.zero_grad()
    table(Tensor([1]).to(device)).sum().backward()
    assert table.weight.grad.dtype == np.float64, "new gradients, too"


def test_moving_to_an_integer_dtype_is_refused_before_anything_moves():
    model = nn.Linear(2, 1)
    with pytest.raises(TypeError, match="int32"):
        model.to(dtype=np.int32)
    assert model.weight.dtype == np.float32


# ── state ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_state_dict_is_a_copy_and_loads_into_another_model(device):
    model, other = TwoLayers().to(device), TwoLayers().to(device)
    state = model.state_dict()
    assert all(type(array) is np.ndarray for array in state.values())
    other.load_state_dict(state)
    x = Tensor(np.ones((2, 3), np.float32)).to(device)
    np.testing.assert_array_equal(model(x).numpy(), other(x).numpy())
    state["scale"][:] = 9
    assert model.scale.item() == other.scale.item() == 2


def test_a_tied_parameter_has_both_names_in_the_state():
    model = Tied()
    assert list(model.state_dict()) == ["words.weight", "contexts.weight"]
    assert names(model) == ["words.weight"], "but is one parameter"
    other = Tied()
    other.load_state_dict(model.state_dict())
    np.testing.assert_array_equal(other.contexts.weight.data, model.words.weight.data)


def test_a_module_held_twice_has_both_names_in_the_state_and_is_one():
    model = nn.Module()
    model.a = model.b = nn.Linear(1, 1, bias=False)
    assert list(model.state_dict()) == ["a.weight", "b.weight"]
    assert len(list(model.parameters())) == 1
    assert len(list(model.modules())) == 2


@pytest.mark.parametrize("strict", [True, False])
def test_loading_with_missing_and_unknown_names(strict):
    model = nn.Linear(1, 1)
    state = {"weight": np.full((1, 1), 7.0), "gone": np.zeros(1)}
    if strict:
        before = model.weight.item()
        with pytest.raises(KeyError, match=r"missing \['bias'\], unknown \['gone'\].*strict=False"):
            model.load_state_dict(state)
        assert model.weight.item() == before
    else:
        model.load_state_dict(state, strict=False)
        assert model.weight.item() == 7


@pytest.mark.parametrize("strict", [True, False])
def test_a_wrong_shape_is_refused_before_anything_changes(strict):
    model = nn.Linear(2, 3)
    state = {"weight": np.ones((3, 2), np.float32), "bias": np.ones(4, np.float32)}
    before = model.state_dict()
    with pytest.raises(ValueError, match=r"bias has shape \(3,\), the state gives \(4,\)"):
        model.load_state_dict(state, strict=strict)
    np.testing.assert_array_equal(model.weight.data, before["weight"])


def test_loading_keeps_the_models_dtype_and_freezing():
    model = nn.Linear(1, 1, bias=False)
    model.weight.requires_grad = False
    model.load_state_dict({"weight": [[0.1]]})
    model.load_state_dict({"weight": np.array([[0.1]])})
    assert model.weight.dtype == np.float32 and not model.weight.requires_grad


def test_values_that_a_graph_still_needs_cannot_be_loaded_over_unnoticed():
    model = nn.Linear(1, 1, bias=False)
    x = Tensor(np.ones((1, 1), np.float32), requires_grad=True)
    loss = model(x).sum()
    model.load_state_dict({"weight": [[5.0]]})
    with pytest.raises(RuntimeError, match="written"):
        loss.backward()


# ── layers ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_layers_keep_the_dtype_they_are_asked_for(dtype):
    assert nn.Embedding(3, 2, dtype=dtype).weight.dtype == dtype
    layer = nn.Linear(3, 2, dtype=dtype)
    assert layer.weight.dtype == layer.bias.dtype == dtype


def test_linear_is_x_times_weight_transposed_plus_bias():
    layer = nn.Linear(2, 3)
    layer.load_state_dict({"weight": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "bias": [0.5, 0.0, -0.5]})
    assert layer(Tensor([[1.0, 1.0]])).tolist() == [[3.5, 7.0, 10.5]]
    assert layer(np.ones((4, 5, 2), np.float32)).shape == (4, 5, 3)
    layer(np.ones((4, 2), np.float32)).sum().backward()
    assert layer.bias.grad.tolist() == [4, 4, 4], "every row counts in the bias's gradient"


def test_linear_starts_within_one_over_the_root_of_its_inputs():
    layer = nn.Linear(100, 50)
    for parameter in layer.parameters():
        assert 0.08 < np.abs(parameter.data).max() <= 0.1
    assert nn.Linear(3, 2, bias=False).bias is None


@pytest.mark.parametrize("bias", [True, False])
def test_linear_passes_the_gradient_check(bias):
    layer = nn.Linear(3, 2, bias, dtype=np.float64)
    parameters = list(layer.parameters())

    def run(x, weight, bias=None):
        layer.weight, layer.bias = weight, bias
        return layer(x).tanh()

    x = np.random.default_rng(0).standard_normal((4, 3))
    metagrad.gradcheck(run, x, *parameters)
    metagrad.gradgradcheck(run, x, *parameters)


def test_embedding_passes_the_gradient_check():
    layer = nn.Embedding(4, 2, padding_idx=1, sparse=False, dtype=np.float64)
    ids = np.array([[0, 2], [2, 3]])

    def run(weight):
        layer.weight = weight
        return layer(ids).tanh()

    metagrad.gradcheck(run, layer.weight)


def test_an_embedding_starts_standard_normal_and_adds_up_repeated_ids():
    metagrad.manual_seed(0)
    table = nn.Embedding(1000, 20)
    assert abs(table.weight.data.mean()) < 0.05 and abs(table.weight.data.std() - 1) < 0.05
    table = nn.Embedding(5, 2)
    table(np.array([[1, 1], [3, 1]])).sum().backward()
    assert table.weight.grad.dense()[:, 0].tolist() == [0, 3, 0, 1, 0]


@pytest.mark.parametrize("ids", [5, -1, [0, 5]])
def test_an_id_outside_the_table_is_refused_with_the_id_and_the_size(ids):
    with pytest.raises(IndexError, match="(5|-1).*5"):
        nn.Embedding(5, 2)(np.asarray(ids))


def test_row_0_trains_unless_it_is_named_as_padding():
    table = nn.Embedding(3, 2)
    assert table.padding_idx is None
    before = table.weight.data.copy()
    table(np.array([0, 1])).sum().backward()
    optim.SGD(table.parameters(), lr=1.0).step()
    np.testing.assert_allclose(table.weight.data, before - [[1], [1], [0]], rtol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("make", [optim.SGD, optim.Adagrad, optim.Adam, optim.AdamW])
@pytest.mark.parametrize("start", ["made", "init_", "load_state_dict", "from_pretrained"])
def test_the_padding_row_never_moves(sparse, make, start):
    table = nn.Embedding(6, 4, padding_idx=-6, sparse=sparse)
    given = np.arange(24, dtype=np.float32).reshape(6, 4) + 1
    row = np.zeros(4, np.float32)
    if start == "init_":
        nn.init.normal_(table.weight)
    elif start == "load_state_dict":
        table.load_state_dict({"weight": given})
        row = given[0]
    elif start == "from_pretrained":
        table = nn.Embedding.from_pretrained(given, freeze=False, padding_idx=0, sparse=sparse)
        row = given[0]
    optimizer = make(table.parameters(), lr=0.1, weight_decay=0.0)
    before = table.weight.data.copy()
    for _ in range(10):
        optimizer.zero_grad()
        (table(np.array([[0, 1, 2], [3, 0, 0]])) * 3).sum().backward()
        grad = table.weight.grad
        assert np.all((grad.dense() if sparse else grad.data)[0] == 0)
        optimizer.step()
    np.testing.assert_array_equal(table.weight.data[0], row)
    assert (table.weight.data[1:4] != before[1:4]).all()


def test_a_padding_row_outside_the_table_is_refused():
    with pytest.raises(ValueError, match="padding_idx 3 is not a row of a table of 3"):
        nn.Embedding(3, 2, padding_idx=3)


def test_from_pretrained_copies_the_rows_in_their_dtype_and_freezes_unless_told():
    rows = np.arange(6.0).reshape(3, 2)
    table = nn.Embedding.from_pretrained(rows)
    assert table.weight.dtype == np.float64 and not table.weight.requires_grad
    np.testing.assert_array_equal(table.weight.data, rows)
    rows[:] = 0
    assert table.weight.data.sum() == 15
    assert nn.Embedding.from_pretrained([[1.0]], freeze=False).weight.requires_grad
    with pytest.raises(ValueError, match=r"two axes.*\(3,\)"):
        nn.Embedding.from_pretrained(np.zeros(3))


def test_making_pretrained_rows_draws_nothing():
    metagrad.manual_seed(1)
    expected = nn.Embedding(2, 2).weight.data
    metagrad.manual_seed(1)
    nn.Embedding.from_pretrained(np.zeros((3, 2)))
    np.testing.assert_array_equal(nn.Embedding(2, 2).weight.data, expected)


def test_sequential_runs_modules_and_functions_and_hands_out_its_parts():
    model = nn.Sequential(nn.Linear(2, 3), F.relu, nn.Linear(3, 1))
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    x = np.ones((4, 2), np.float32)
    expected = model[2](F.relu(model[0](x)))
    np.testing.assert_array_equal(model(x).data, expected.data)
    assert len(model) == 3 and model[-1] is model[2] and list(model) == model.parts
    assert len(model[:2]) == 2 and model[:2][0] is model[0]


@pytest.mark.parametrize("index", [2, 5, -3])
def test_a_part_that_sequential_does_not_have_raises(index):
    with pytest.raises(IndexError, match=rf"no part {index}, it has 2"):
        nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))[index]


def test_sequential_refuses_what_cannot_be_called():
    with pytest.raises(TypeError, match="part 1 is a int"):
        nn.Sequential(nn.Linear(1, 1), 3)


def test_what_a_subclass_of_sequential_adds_is_found_too():
    class Model(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Linear(1, 1, bias=False))
            self.extra = nn.Parameter([0.0])

    assert names(Model()) == ["0.weight", "extra"]


# ── losses ───────────────────────────────────────────────────────────────────────────────────────────


def test_losses_are_their_functions_with_options_fixed():
    x, y = Tensor([[1.0, -2.0], [0.5, 3.0]]), np.array([0, 1])
    assert nn.MSELoss()(x, Tensor([[0.0, 0.0], [0.0, 0.0]])).item() == pytest.approx(14.25 / 4)
    assert nn.MSELoss("sum")(x, x).item() == 0
    expected = [math.log(1 + math.exp(-3)), math.log(1 + math.exp(-2.5))]
    assert nn.CrossEntropyLoss()(x, y).item() == pytest.approx(sum(expected) / 2, rel=1e-6)
    assert nn.CrossEntropyLoss(reduction="none")(x, y).tolist() == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="reduction"):
        nn.CrossEntropyLoss(reduction="average")(x, y)


@pytest.mark.parametrize("options", [{}, {"weight": np.ones(2, np.float32)}, {"pos_weight": 1.0}])
def test_bce_with_logits_stays_finite_with_and_without_weights(options):
    loss = nn.BCEWithLogitsLoss(**options)(Tensor([0.0, -120.0]), Tensor([0.0, 1.0]))
    assert loss.item() == pytest.approx(60.34657, rel=1e-6)


# ── initialisers ─────────────────────────────────────────────────────────────────────────────────────

FILLS = {
    "constant_": lambda x: nn.init.constant_(x, 3.0),
    "zeros_": nn.init.zeros_,
    "ones_": nn.init.ones_,
    "uniform_": nn.init.uniform_,
    "normal_": nn.init.normal_,
    "xavier_uniform_": nn.init.xavier_uniform_,
    "xavier_normal_": nn.init.xavier_normal_,
    "kaiming_uniform_": nn.init.kaiming_uniform_,
    "kaiming_normal_": nn.init.kaiming_normal_,
}


def test_every_initialiser_is_in_this_table():
    assert set(FILLS) == {name for name in vars(nn.init) if name.endswith("_") and not name.startswith("_")}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("fill", FILLS)
def test_an_initialiser_writes_in_place_in_the_parameters_dtype(fill, dtype, device):
    parameter = nn.Parameter(np.full((8, 6), np.nan, dtype))
    parameter.move(get_device(device))
    memory = parameter.data
    assert FILLS[fill](parameter) is parameter
    assert parameter.data is memory and parameter.dtype == dtype and parameter.shape == (8, 6)
    assert np.isfinite(parameter.numpy()).all()
    assert parameter.requires_grad and parameter.is_leaf


@pytest.mark.parametrize("fill", FILLS)
def test_an_initialiser_leaves_the_padding_row(fill):
    table = nn.Embedding(5, 3, padding_idx=2)
    FILLS[fill](table.weight)
    assert table.weight.data[2].tolist() == [0, 0, 0]


def test_one_seed_means_one_start():
    def start(seed: int):
        metagrad.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
        return np.concatenate([p.data.ravel() for p in model.parameters()])

    np.testing.assert_array_equal(start(4), start(4))
    assert (start(4) != start(5)).any()


def test_numpys_global_stream_is_neither_read_nor_changed():
    np.random.seed(0)  # noqa: NPY002
    metagrad.manual_seed(3)
    first = nn.Embedding(4, 4).weight.data
    assert np.random.random() == np.random.RandomState(0).random_sample()  # noqa: NPY002
    metagrad.manual_seed(3)
    np.testing.assert_array_equal(nn.Embedding(4, 4).weight.data, first)


# (outputs, inputs, window): inputs·window = 600, outputs·window = 1200
@pytest.mark.parametrize(
    ("fill", "std", "bound"),
    [
        (lambda x: nn.init.uniform_(x, -2.0, 4.0), 6 / 12**0.5, 4.0),
        (lambda x: nn.init.normal_(x, 0.0, 3.0), 3.0, math.inf),
        (nn.init.xavier_uniform_, (2 / 1800) ** 0.5, (6 / 1800) ** 0.5),
        (nn.init.xavier_normal_, (2 / 1800) ** 0.5, math.inf),
        (nn.init.kaiming_uniform_, (2 / 600) ** 0.5, (6 / 600) ** 0.5),
        (nn.init.kaiming_normal_, (2 / 600) ** 0.5, math.inf),
        (lambda x: nn.init.kaiming_normal_(x, gain=1.0), (1 / 600) ** 0.5, math.inf),
    ],
)
def test_initialisers_have_the_spread_of_their_formulas(fill, std, bound):
    metagrad.manual_seed(0)
    values = fill(nn.Parameter(np.empty((400, 200, 3), np.float32))).data
    assert values.std() == pytest.approx(std, rel=0.02)
    assert np.abs(values).max() <= np.float32(bound)


def test_uniform_covers_its_interval_and_normal_has_its_mean():
    metagrad.manual_seed(0)
    x = nn.Parameter(np.empty(20_000, np.float32))
    nn.init.uniform_(x, 1.0, 3.0)
    assert 1 <= x.data.min() < 1.01 and 2.99 < x.data.max() <= 3
    nn.init.normal_(x, 5.0, 0.1)
    assert x.data.mean() == pytest.approx(5, abs=0.01)


@pytest.mark.parametrize("shape", [(3,), (), (0, 4)])
def test_a_scale_by_inputs_and_outputs_needs_them(shape):
    with pytest.raises(ValueError, match="no inputs and outputs"):
        nn.init.xavier_uniform_(nn.Parameter(np.zeros(shape, np.float32)))


def test_an_initialiser_under_a_graph_is_noticed_at_backward():
    weight = nn.Parameter([2.0])
    loss = (weight * weight).sum()
    nn.init.zeros_(weight)
    with pytest.raises(RuntimeError, match="written"):
        loss.backward()
