"""Modules that hold modules behave as Python's lists and dicts, and name their parameters by place or key."""

import copy

import numpy as np
import pytest

from metagrad import Tensor, nn


class Number(nn.Module):
    def __init__(self, value):
        self.value = nn.Parameter([float(value)])

    def forward(self, x):
        return x * self.value


def values(modules):
    return [int(module.value.item()) for module in modules]


def test_a_list_of_modules_is_a_list():
    parts = nn.ModuleList(Number(k) for k in (1, 2, 3))
    parts.insert(1, Number(9))
    assert values(parts) == [1, 9, 2, 3]
    parts.append(Number(4))
    parts.extend([Number(5)])
    assert values([parts.pop()]) == [5] and values(parts[1:3]) == [9, 2] and isinstance(parts[1:3], nn.ModuleList)
    parts[-1] = Number(7)
    del parts[0]
    parts[:1] = [Number(8), Number(6)]
    assert values(parts) == [8, 6, 2, 3, 7] and len(parts) == 5 and parts[2] in parts
    assert [name for name, _ in parts.named_parameters()] == [f"{k}.value" for k in range(5)]


@pytest.mark.parametrize("index", [2, -3])
@pytest.mark.parametrize("kind", [nn.ModuleList, lambda parts: nn.Sequential(*parts)])
def test_a_place_that_does_not_exist_is_refused(kind, index):
    parts = kind([Number(1), Number(2)])
    for act in (parts.__getitem__, parts.__delitem__, lambda i: parts.__setitem__(i, Number(3))):
        with pytest.raises(IndexError, match=f"there is no part {index}, it has 2"):
            act(index)


def test_what_is_no_module_is_refused():
    with pytest.raises(TypeError, match="ModuleList holds modules, not a int"):
        nn.ModuleList([3])
    with pytest.raises(TypeError, match="ModuleDict holds modules by names"):
        nn.ModuleDict({1: Number(1)})
    with pytest.raises(TypeError, match="no module or function"):
        nn.Sequential(Number(1)).append("tanh")


def test_a_dict_of_modules_is_a_dict():
    parts = nn.ModuleDict({"a": Number(1), "b": Number(2)})
    parts["c"] = Number(3)
    del parts["a"]
    assert list(parts) == ["b", "c"] and values(parts.values()) == [2, 3] and "b" in parts
    assert [name for name, _ in parts.named_parameters()] == ["b.value", "c.value"]
    assert parts == parts and parts != nn.ModuleDict(parts) and len({parts}) == 1
    with pytest.raises(KeyError, match="there is no 'a'; it has b, c"):
        parts["a"]


def test_a_sequence_grows_and_keeps_its_names():
    model = nn.Sequential(Number(2), np.negative)
    model.append(Number(3))
    assert model(Tensor([1.0])).tolist() == [-6] and len(model[:2]) == 2
    assert [name for name, _ in model.named_parameters()] == ["0.value", "2.value"]
    twin = copy.deepcopy(model)
    twin.load_state_dict({**model.state_dict(), "0.value": [5.0]})
    assert values([twin[0], model[0]]) == [5, 2]


def test_tied_weights_are_one_parameter_and_add_their_gradients():
    class Tied(nn.Module):
        def __init__(self):
            self.table = nn.Embedding(5, 3, sparse=False)
            self.out = nn.Linear(3, 5, bias=False)
            self.out.weight = self.table.weight

        def forward(self, ids):
            return self.out(self.table(ids))

    model = Tied().to(dtype=np.float64)
    assert model.out.weight is model.table.weight and len(list(model.parameters())) == 1
    ids, w = np.array([1, 1, 4]), model.table.weight.numpy().copy()
    model(ids).sum().backward()
    expected = np.tile(w[ids].sum(axis=0), (5, 1))  # as output
    np.add.at(expected, ids, w.sum(axis=0))  # as table
    np.testing.assert_allclose(model.table.weight.grad.numpy(), expected, rtol=1e-12)
    again = Tied()
    again.load_state_dict(model.state_dict())
    assert again.out.weight is again.table.weight


def test_flatten_keeps_the_first_axes():
    x = Tensor(np.zeros((2, 3, 4, 5), np.float32))
    assert nn.Flatten()(x).shape == (2, 60) and nn.Flatten(2)(x).shape == (2, 3, 20)
    assert nn.Flatten()(x[:0]).shape == (0, 60)
