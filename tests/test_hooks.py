"""Hooks on gradients and on modules, and their removal."""

import numpy as np
import pytest

from metagrad import Tensor, nn


def leaf(values):
    return Tensor(np.asarray(values, np.float64), requires_grad=True)


def test_a_removed_hook_is_not_called_again():
    x, seen = leaf([1.0, 2.0]), []
    handle = x.register_hook(lambda grad: seen.append(grad.tolist()))
    (x * 3).sum().backward()
    handle.remove()
    handle.remove()  # twice is no harm
    (x * 3).sum().backward()
    with x.register_hook(seen.append):
        pass
    (x * 3).sum().backward()
    assert seen == [[3, 3]] and x.grad.tolist() == [9, 9]


def test_a_hook_may_remove_itself_while_others_wait():
    x, seen = leaf(1.0), []

    def once(grad):
        seen.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda grad: seen.append("always"))
    (x * 1).backward()
    (x * 1).backward()
    assert seen == ["once", "always", "always"]


def test_hooks_of_one_tensor_follow_one_another_on_inner_nodes_and_leaves():
    x = leaf([1.0])
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    y.register_hook(lambda grad: grad + 1)
    y.sum().backward()
    assert x.grad.tolist() == [22]


def test_hooks_of_a_module_see_and_change_arguments_output_and_gradient():
    layer, seen = nn.Linear(2, 2).to(dtype=np.float64), []
    x = leaf([[1.0, 2.0]])
    plain = layer(x).numpy()
    handles = [
        layer.register_forward_pre_hook(lambda module, args: (args[0] * 2,)),
        layer.register_forward_hook(lambda module, args, output: output - module.bias),
        layer.register_backward_hook(lambda module, grad: seen.append((module, grad.tolist()))),
        layer.register_backward_hook(lambda module, grad: grad * 0),
    ]
    out = layer(x)
    np.testing.assert_allclose(out.numpy(), 2 * (plain - layer.bias.numpy()), rtol=1e-12)
    out.sum().backward()
    assert seen == [(layer, [[1.0, 1.0]])] and not x.grad.numpy().any()
    for handle in handles:
        handle.remove()
    np.testing.assert_array_equal(layer(x).numpy(), plain)


def test_a_backward_hook_is_called_for_each_output():
    lstm, shapes = nn.LSTM(3, 4), []
    lstm.register_backward_hook(lambda module, grad: shapes.append(grad.shape))
    out, (h, c) = lstm(Tensor(np.ones((5, 2, 3), np.float32)))
    (out.sum() + h.sum() + c.sum()).backward()
    assert sorted(shapes) == [(1, 2, 4), (1, 2, 4), (5, 2, 4)]


def test_a_hook_is_no_part_of_the_module():
    inner, outer = nn.Linear(1, 1), nn.Linear(1, 1)
    outer.register_forward_hook(inner)  # a module is callable too
    assert [name for name, _ in outer.named_parameters()] == ["weight", "bias"]


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="a hook is a function, not 3"):
        nn.Linear(1, 1).register_forward_hook(3)
