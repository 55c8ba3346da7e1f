"""The backward walk: accumulation, order, depth, memory, hooks, higher derivatives, rules of one's own."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

from metagrad import Function, Rows, Tensor, grad, gradcheck, gradgradcheck, is_grad_enabled, nn, no_grad, optim
from metagrad import functional as F
from metagrad.cuda import array_module


def leaf(values, device="cpu", dtype=np.float64):
    return Tensor(np.array(values, dtype), device=device, requires_grad=True)


@pytest.fixture
def no_gc():
    """Without the garbage collector: what dies here dies by its reference count."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# Order and accumulation -----------------------------------------------------------------------------


def test_a_node_used_twice_gets_its_whole_gradient(device):
    a = leaf(1.0, device)
    b = a + a
    (b + b).backward()
    assert a.grad.item() == 4
    x = leaf(1.0, device)
    (x * (x * 1) + (x * x) * 1 + x * (x * 1)).backward()
    assert x.grad.item() == 6


def test_long_and_short_paths_meet_before_they_go_on():
    """f = (a + a²) b with b = a: a node must wait for the longer of two paths."""
    a = leaf(3.0)
    b = a * 1
    c = a * a
    d = c * 1 * 1 * 1 + b
    (d * b).backward()
    assert a.grad.item() == 2 * 3 + 3 * 3**2


def test_gradients_add_up_once_a_backward_and_never_more(device):
    a, b, d = (leaf(v, device) for v in (2.0, 3.0, 4.0))

    def run():
        ((a + b) * d).backward()
        return [x.grad.item() for x in (a, b, d)]

    assert run() == [4, 4, 5]
    assert run() == [8, 8, 10]
    a.grad = b.grad = d.grad = None
    assert run() == [4, 4, 5]
    e = (a + b) * d
    a.grad = None
    e.backward(retain_graph=True)
    e.backward()
    assert a.grad.item() == 8


def test_inner_tensors_keep_no_gradient_of_an_earlier_walk():
    a = leaf(2.0)
    inner = a * 3
    out = inner * inner
    out.backward(retain_graph=True)
    assert inner.grad is None and a.grad.item() == 36
    out.backward()
    assert a.grad.item() == 72


def test_a_second_backward_says_what_to_do():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Sum: this graph was walked before .* retain_graph=True"):
        y.backward()
    shared = x * x
    shared.sum().backward()
    with pytest.raises(RuntimeError, match="Mul: this graph was walked before"):
        (shared * 2).sum().backward()
    assert x.grad.numpy().tolist() == [4, 8]


def test_broadcasts_are_undone(device):
    for shapes, ones in [
        (((2, 1), (1, 3)), ([[3], [3]], [[2, 2, 2]])), (((3,), (2, 3)), ([2, 2, 2], [[1] * 3] * 2)),
        (((), (2, 3)), (6, [[1] * 3] * 2)), (((1, 3), (1, 3)), ([[1] * 3], [[1] * 3])),
        (((1, 1), (3,)), ([[3]], [1] * 3)),
        (((0,), (1,)), ([], [0])),
    ]:  # fmt: skip
        x, y = (leaf(np.ones(shape), device) for shape in shapes)
        (x + y).sum().backward()
        assert (x.grad.shape, y.grad.shape) == shapes
        assert (x.grad.tolist(), y.grad.tolist()) == ones


def test_the_part_not_used_gets_zeros(device):
    x = leaf([1.0, 2.0, 3.0], device)
    x[:2].sum().backward()
    assert x.grad.numpy().tolist() == [1, 1, 0]
    y, z = leaf([1.0], device), leaf([1.0], device)
    (y * 2).backward()
    assert z.grad is None and grad(y * 2, [y, z], allow_unused=True)[1] is None


# Where a walk starts --------------------------------------------------------------------------------


def test_backward_of_a_leaf_of_one_entry_and_of_a_given_gradient(device):
    x = leaf(3.0, device)
    x.backward()
    assert x.grad.item() == 1
    y = leaf([1.0], device)
    (y * 2).backward()
    assert y.grad.numpy().tolist() == [2]
    z = leaf([1.0, 2.0], device)
    (z * z).backward(Tensor([1.0, 10.0], device=device))
    assert z.grad.numpy().tolist() == [2, 40]


@pytest.mark.parametrize("call, error, message", [
    (lambda x: (x * 2).backward(), RuntimeError, r"shape \(2,\) needs a gradient of that shape: reduce to one number"),
    (lambda x: (x * 2).backward(np.ones(3)), ValueError, r"of shape \(3,\) does not fit an output of shape \(2,\)"),
    (lambda x: (x * 2).backward(np.ones(())), ValueError, r"\(\) does not fit"),
    (lambda x: (x * 2).backward(np.ones((2, 1))), ValueError, r"\(2, 1\) does not fit an output of shape \(2,\)"),
    (lambda x: x.detach().sum().backward(), RuntimeError, "requires a gradient"),
    (lambda x: Tensor([1]).backward(), RuntimeError, "requires a gradient"),
    (lambda x: x.detach().retain_grad(), RuntimeError, "requires no gradient"),
    (lambda x: x.detach().register_hook(print), RuntimeError, "requires no gradient"),
    (lambda x: (x * 2).requires_grad_(False), RuntimeError, "only a leaf can stop requiring"),
    (lambda x: setattr(x, "grad", Tensor([1.0])), ValueError, r"shape \(1,\) does not fit a Tensor of shape \(2,\)"),
    (lambda x: setattr(x.detach(), "grad", x), RuntimeError, "cannot hold one"),
    (lambda x: grad(x.sum(), leaf([1.0])), RuntimeError, "do not depend on input 0; allow_unused=True"),
    (lambda x: grad(x.sum(), [x, Tensor([1.0])]), RuntimeError, "input 1 requires no gradient"),
    (lambda x: grad(x.sum(), 3.0), TypeError, "Tensor"),  # type: ignore[arg-type]
    (lambda x: grad([x.sum(), x.sum()], x, [1.0]), ValueError, "2 outputs"),
])  # fmt: skip
def test_misuse_is_answered_with_one_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call(leaf([1.0, 2.0]))


def test_backward_without_a_graph_is_an_error_also_within_no_grad():
    x = leaf([1.0])
    with no_grad():
        y = x * 2
        with pytest.raises(RuntimeError, match="no_grad"):
            y.backward()
    assert x.grad is None


def test_a_failed_backward_changes_no_gradient():
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    saved = y * 1
    out = (saved * saved + x).sum()
    with no_grad():
        saved[0] = 5
    with pytest.raises(RuntimeError):
        out.backward()
    assert x.grad is None and y.grad is None


# grad() ---------------------------------------------------------------------------------------------


def test_grad_gives_values_and_touches_nothing(device):
    x, y = leaf([1.0, 2.0], device), leaf([3.0, 4.0], device)
    z = x * y
    gx, gy, gz = grad((z * z).sum(), [x, y, z])
    assert gx.numpy().tolist() == [18, 64] and gy.numpy().tolist() == [6, 32] and gz.numpy().tolist() == [6, 16]
    assert x.grad is None and y.grad is None and not gx.requires_grad


def test_grad_of_several_outputs_adds_up(device):
    x = leaf([1.0, 2.0], device)
    seeds = [Tensor([1.0, 1.0], dtype=np.float64, device=device), Tensor([0.0, 10.0], dtype=np.float64, device=device)]
    assert grad([x * 2, x * 3], [x], seeds)[0].numpy().tolist() == [2, 32]
    y, z = x * 2, x * 2
    assert grad([y, y], [x], seeds)[0].numpy().tolist() == [2, 22]
    assert grad(z, z, seeds[:1])[0].numpy().tolist() == [1, 1]
    assert grad([x.sum(), Tensor([1.0])], x)[0].numpy().tolist() == [1, 1]


def test_one_output_takes_one_gradient_without_a_list():
    x = leaf([1.0, 2.0, 3.0])
    assert grad(x * x, x, Tensor([1.0, 0.0, 1.0]))[0].numpy().tolist() == [2, 0, 6]


# Gradients are arrays of one's own ------------------------------------------------------------------


def test_changing_a_gradient_changes_no_other(device):
    a, b = leaf([1.0, 2.0], device), leaf([3.0, 4.0], device)
    g = Tensor(np.array([1.0, 1.0]), device=device)
    (a + b).backward(g)
    a.grad.mul_(10)
    a.grad *= 10
    assert a.grad.numpy().tolist() == [100, 100]
    assert b.grad.numpy().tolist() == [1, 1] and g.numpy().tolist() == [1, 1]
    x = leaf([1.0, 2.0], device)
    x.backward(g)
    x.grad.mul_(5)
    assert g.numpy().tolist() == [1, 1]


def test_changing_a_gradient_changes_no_other_with_create_graph():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    g = Tensor(np.ones(2))
    (a + b).backward(g, create_graph=True)
    a.grad.data[...] = 10
    assert b.grad.numpy().tolist() == [1, 1] and g.numpy().tolist() == [1, 1]


@pytest.mark.parametrize("f", [
    lambda x: x.sum(), lambda x: x.mean(), lambda x: x.reshape(4).sum(), lambda x: x.T.sum(),
    lambda x: F.broadcast_to(x, (3, 2, 2)).sum(),
    lambda x: F.concatenate([x, x]).sum(), lambda x: F.stack([x, x])[0].sum(), lambda x: x[None].sum(),
    lambda x: x.swapaxes(0, 1).sum(),
    lambda x: F.einsum("ij->", x), lambda x: (x - 1).sum(), lambda x: (x + x).sum(),
])  # fmt: skip
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_can_be_written_to(f, create_graph, device):
    x = leaf([[1.0, 2.0], [3.0, 4.0]], device)
    f(x).backward(create_graph=create_graph)
    expected = x.grad.numpy() * 2
    with no_grad():
        x.grad.mul_(2)
    x.grad.data += 0
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_gradients_of_inner_tensors_can_be_written_to_as_well():
    x = leaf([1.0, 2.0])
    a, b = x * 2, x * 3
    for t in (a, b):
        t.retain_grad()
    ga, gb = grad((a + b).sum(), [a, b], retain_graph=True)
    (a + b).sum().backward()
    ga.mul_(10)
    a.grad.mul_(10)
    assert ga.tolist() == a.grad.tolist() == [10, 10]
    assert gb.tolist() == b.grad.tolist() == [1, 1]


def test_a_large_gradient_adds_up_beside_others(device):
    """Large ones add up in place, in an array that must be nobody else's."""
    big = np.ones((300, 300))
    a, b = leaf(big, device), leaf(big, device)
    seed = Tensor(big.copy(), device=device)
    (a + b + a + a * 2 + b).backward(seed)
    assert (a.grad.numpy() == 4).all() and (b.grad.numpy() == 2).all() and (seed.numpy() == 1).all()
    first = a.grad
    (a * 1).backward(seed)
    assert (first.numpy() == 4).all() and (a.grad.numpy() == 5).all()


def test_a_gradient_that_is_set_is_a_tensor_of_the_leafs_dtype_and_device():
    x = leaf([1.0, 2.0], dtype=np.float32)
    for value in (np.ones(2), Tensor(np.ones(2))):
        try:
            x.grad = value
        except TypeError:
            continue
        assert isinstance(x.grad, Tensor) and x.grad.dtype == np.float32


# Depth and memory -----------------------------------------------------------------------------------


def chain(x, n, f=lambda y: y + 0):
    for _ in range(n):
        x = f(x)
    return x


def test_a_graph_of_300_000_operations_is_walked_and_freed_without_recursion():
    x = leaf([1.0])
    y = chain(x, 300_000)
    y.backward()
    del y
    assert x.grad.item() == 1
    y = chain(x, 300_000, lambda y: y * 1.0)
    del y  # freed without a walk
    y = chain(x, 50_000)
    y.backward(retain_graph=True)
    del y  # freed after a walk that kept it
    y = chain(x, 30_000, lambda y: (y * 1.0).reshape(1))
    y.backward(create_graph=True)
    del y
    x.grad = None  # freed with a graph of its gradient
    with no_grad():
        chain(x, 30_000, lambda y: y[:])


def test_no_graph_grows_where_nothing_requires_a_gradient(device):
    x = y = Tensor([1.0], device=device)
    for _ in range(100):
        y = y + x
    assert y.node is None
    with no_grad():
        assert (leaf([1.0], device) * 2).node is None


def test_a_dropped_graph_dies_without_the_garbage_collector(no_gc):
    x = leaf(np.ones((5, 5)))
    ids = np.array([0, 1, 1])
    y = F.embedding(x, ids)
    z = (F.log_softmax(y @ x, axis=1).exp() * F.sigmoid(y) + y[:, None, 0]).max(axis=1)
    out = (z * F.where(z > 0, z, 1.0)).sum()
    dead = [weakref.ref(t) for t in (y, z, out)] + [weakref.ref(t.node) for t in (y, z, out)] + [weakref.ref(z.data)]
    del y, z, out
    assert [ref() for ref in dead] == [None] * len(dead)


@pytest.mark.parametrize("retain", [False, True])
def test_a_walked_graph_dies_without_the_garbage_collector(retain, no_gc):
    x = leaf([1.0, 2.0])
    y = x.exp() * x
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    out = y.sum()
    out.backward(retain_graph=retain)
    dead = [weakref.ref(y), weakref.ref(y.node), weakref.ref(out.node), weakref.ref(y.data)]
    del y, out
    assert [ref() for ref in dead] == [None] * len(dead)
    (g,) = grad((x * x).sum(), x, create_graph=True)
    node = weakref.ref(g.node)
    del g
    assert node() is None


def test_saved_arrays_are_freed_as_the_walk_passes():
    x = leaf(np.ones(3))
    alive = []
    refs = []
    y = x
    for _ in range(10):
        y = y.exp() * 0.1  # exp saves its output
        y.register_hook(lambda g: alive.append(sum(ref() is not None for ref in refs)))
        refs.append(weakref.ref(y.node))
    saved = weakref.ref(y.node.saved[0])
    out = y.sum()
    del y
    out.backward()
    assert saved() is None
    assert len(alive) == 10 and alive == sorted(alive, reverse=True) and alive[-1] <= 2


def test_saved_arrays_are_freed_even_where_the_output_is_kept():
    x = leaf([1.0])
    y = x * 3
    out = y * y
    saved = weakref.ref(y.data)
    del y
    assert saved() is not None
    out.backward()
    assert saved() is None and out.item() == 9


def test_a_walk_needs_memory_for_a_few_gradients_only():
    x = leaf(np.ones(20_000))  # 160 kB
    y = chain(x, 100, lambda y: y.tanh())
    out = y.sum()
    del y
    tracemalloc.start()
    out.backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 160_000


def growth(step):
    """Bytes by which 100 more steps grow memory, after 100."""
    for _ in range(100):
        step()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        step()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return grown


def test_adding_up_losses_as_numbers_grows_nothing(no_gc):
    w = leaf(np.ones(1000))
    total = 0.0

    def step():
        nonlocal total
        total += (w * w).sum().item()

    assert growth(step) < 100_000
    assert total == 200_000


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.01, momentum=0.9), lambda p: optim.Adam(p), lambda p: optim.Adagrad(p),
])  # fmt: skip
def test_training_grows_nothing(make, no_gc):
    table, layer = nn.Embedding(500, 32), nn.Linear(32, 8)
    opt = make([*table.parameters(), *layer.parameters()])
    rng = np.random.default_rng(0)

    def step():
        opt.zero_grad()
        F.mse_loss(layer(table(rng.integers(0, 500, 64))), Tensor.zeros(64, 8)).backward()
        opt.step()

    assert growth(step) < 1_000_000


# Hooks and retained gradients -----------------------------------------------------------------------


def test_a_hook_sees_the_whole_gradient_once_and_may_replace_it(device):
    x = leaf([1.0, 2.0], device)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g))
    y.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: g + 1)
    (y + y).sum().backward()
    assert [g.numpy().tolist() for g in seen] == [[2, 2]] and isinstance(seen[0], Tensor)
    assert x.grad.numpy().tolist() == [13, 13]


def test_a_hook_of_a_table_sees_rows():
    table, seen = leaf(np.ones((4, 2))), []
    table.register_hook(seen.append)
    F.embedding(table, [1, 1]).sum().backward()
    assert isinstance(seen[0], Rows) and isinstance(table.grad, Rows)
    table = leaf(np.ones((4, 2)))
    table.register_hook(lambda g: g * 0.5)
    F.embedding(table, [1, 1]).sum().backward()
    assert table.grad.dense().tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize("answer", [2.0, Tensor([1.0]), "a"])
def test_a_hook_that_returns_no_gradient_of_the_right_shape_is_refused(answer):
    x = leaf([1.0, 2.0])
    y = x * 3
    y.register_hook(lambda g: answer)
    with pytest.raises((TypeError, ValueError, RuntimeError), match="hook"):
        (y * y).sum().backward()


def test_retained_gradients(device):
    x = leaf([1.0, 2.0], device)
    y = x * 3
    y.retain_grad()
    x.retain_grad()  # a leaf keeps its gradient anyway
    (y * y).sum().backward()
    assert y.grad.numpy().tolist() == [6, 12] and x.grad.numpy().tolist() == [18, 36]
    y.grad = None
    assert y.grad is None


def test_retained_gradients_add_up_as_those_of_leaves_do():
    x = leaf([1.0, 2.0])
    y = x * 3
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()
    assert y.grad.tolist() == [12, 24] and x.grad.tolist() == [36, 72]


@pytest.mark.parametrize("which", [0, 1])
def test_a_hook_that_writes_into_its_argument_changes_no_other_gradient(which):
    """Both terms of a sum get the same gradient; a hook on one must not reach the other's."""
    leaves = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    inner = [x * 1 for x in leaves]

    def hook(g):
        g.data[...] = g.data * 10

    inner[which].register_hook(hook)
    try:
        (inner[0] + inner[1]).backward(np.ones(2))
    except ValueError:  # read-only
        return
    assert leaves[1 - which].grad.tolist() == [1, 1]


def test_detach_and_requires_grad(device):
    x = leaf([1.0, 2.0], device)
    (x * x.detach()).sum().backward()
    assert x.grad.numpy().tolist() == [1, 2]
    frozen = x.detach()
    assert frozen.is_leaf and not frozen.requires_grad and (x * 2).is_leaf is False
    x.requires_grad = False
    assert not (x * 2).requires_grad and x.grad is None


# Higher derivatives ---------------------------------------------------------------------------------


def test_the_first_three_derivatives_of_a_power(device):
    x = leaf([2.0, -1.0], device)
    y, found = (x**4).sum(), []
    for _ in range(4):
        (g,) = grad(y, x, create_graph=True)
        found.append(g.numpy().tolist())
        y = g.sum()
    assert found == [[32, -4], [48, 12], [48, -24], [24, 24]]


def test_a_hessian_times_a_vector_is_what_differences_say():
    rng = np.random.default_rng(0)
    shapes = [(3, 5), (5,), (5, 2), (2,)]
    start = [rng.standard_normal(s) for s in shapes]
    vector = [rng.standard_normal(s) for s in shapes]
    x, t = Tensor(rng.standard_normal((7, 3))), rng.integers(0, 2, 7)

    def gradients(values, create_graph=False):
        w = [leaf(v) for v in values]
        loss = F.cross_entropy((x @ w[0] + w[1]).tanh() @ w[2] + w[3], t)
        return w, grad(loss, w, create_graph=create_graph)

    w, first = gradients(start, create_graph=True)
    product = grad(sum((g * Tensor(v)).sum() for g, v in zip(first, vector)), w, allow_unused=True)
    ahead, behind = (gradients([a + e * v for a, v in zip(start, vector)])[1] for e in (1e-5, -1e-5))
    for found, a, b in zip(product, ahead, behind):
        np.testing.assert_allclose(found.numpy(), (a.numpy() - b.numpy()) / 2e-5, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("f", [
    lambda w: F.embedding(w, [[0, 2], [2, 2]]) ** 3, lambda w: F.embedding(w, [0, 2, 1], padding_idx=1) ** 3,
    lambda w: w[[0, 2, 2]] ** 3,
    lambda w: w[1:, ::-1] ** 3, lambda w: w.max(axis=1) ** 3, lambda w: F.logsumexp(w, axis=0) ** 2,
    lambda w: F.logsumexp(w) ** 2,
    lambda w: F.softmax(w) ** 2, lambda w: F.log_softmax(w) ** 2, lambda w: (w * w).sum() ** 0.5,
    lambda w: F.binary_cross_entropy_with_logits(w, w.detach() * 0),
])  # fmt: skip
def test_double_backward(f):
    assert gradgradcheck(f, np.random.default_rng(0).standard_normal((3, 4)))


def test_a_gradient_with_a_graph_flows_into_a_loss(device):
    """A gradient penalty: d/dx (d(x³)/dx)² = 36 x³."""
    x = leaf([2.0], device)
    (g,) = grad((x**3).sum(), x, create_graph=True)
    (g * g).sum().backward()
    assert x.grad.item() == 36 * 8
    x.grad = None
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.backward()
    assert x.grad.item() == 12


def test_a_seed_may_be_a_tensor_of_a_graph(device):
    """d/dv of v · J(x) is J(x): the trick for derivatives in forward direction."""
    x, v = leaf([2.0, 3.0], device), leaf([1.0, 1.0], device)
    (g,) = grad(x * x, x, [v], create_graph=True)
    assert grad(g, v, [Tensor(np.ones(2), device=device)])[0].numpy().tolist() == [4, 6]


def test_a_second_derivative_within_no_grad_is_recorded_all_the_same():
    x = leaf([2.0])
    y = (x**3).sum()
    with no_grad():
        (g,) = grad(y, x, create_graph=True)
        assert not is_grad_enabled()
    assert grad(g, x)[0].item() == 12


# A rule of one's own --------------------------------------------------------------------------------


class Product(Function):
    """x y, as the docstring of Function writes it."""

    saves_inputs = True

    def forward(self, x, y):
        return x * y

    def backward(self, grad, x, y):
        return grad * y, grad * x


class Power(Function):
    """x^n by a constant, with both saves and the namespace of what comes."""

    saves_inputs = saves_output = True

    def forward(self, x, n):
        self.n = n
        return x**n

    def backward(self, grad, x, y):
        zero = array_module(grad).zeros_like(x)
        return grad * self.n * y / x + zero


class Answers(Function):
    """3 x, whose backward answers what it was told to."""

    def forward(self, x, answer):
        self.answer = answer
        return x * 3

    def backward(self, grad):
        return self.answer(grad)


class Makes(Function):
    """Whatever it is told to make."""

    def forward(self, x, make):
        return make(x)

    def backward(self, grad):
        return grad


def test_a_users_rule_works_as_any_other(device):
    x, y = leaf([1.0, 2.0], device), leaf([3.0, 4.0], device)
    Product.apply(x, y).sum().backward()
    assert x.grad.numpy().tolist() == [3, 4] and y.grad.numpy().tolist() == [1, 2]
    broadcast = leaf(2.0, device)
    Product.apply(x, broadcast).sum().backward()
    assert broadcast.grad.item() == 3
    half = leaf([1.0, 2.0], device, np.float32)
    Product.apply(half, y).sum().backward()
    assert half.grad.dtype == np.float32
    assert Product.apply(x, 3.0).numpy().tolist() == [3, 6]
    assert isinstance(Product.apply(x.data, y.data), type(x.data))


def test_a_users_rule_has_derivatives_of_every_order():
    assert gradcheck(Product.apply, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert gradgradcheck(Product.apply, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert gradgradcheck(lambda x: Power.apply(x, n=3), np.array([1.0, 2.0]))


@pytest.mark.parametrize("answer, message", [
    (lambda g: (g, g), r"Answers\.backward returned 2 gradients for 1 inputs"),
    (lambda g: (), r"Answers\.backward returned 0 gradients for 1 inputs"),
    (lambda g: np.ones(7), r"Answers\.backward returned a gradient of shape \(7,\) for an input of shape \(2,\)"),
    (lambda g: np.ones(()), r"shape \(\) for an input of shape \(2,\)"),
    (lambda g: [g], r"Answers\.backward"), (lambda g: 3.0, r"Answers\.backward"),
    (lambda g: "a", r"Answers\.backward"),
])  # fmt: skip
def test_a_backward_that_answers_wrongly_is_named(answer, message):
    with pytest.raises((RuntimeError, TypeError), match=message):
        Answers.apply(leaf([1.0, 2.0]), answer=answer).sum().backward()


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("size", [2, 20_000])  # the larger gradient adds up in place
def test_a_backward_may_answer_with_one_array_for_two_inputs(size, create_graph):
    class Mean2(Function):
        """(x + y) / 2."""

        def forward(self, x, y):
            return (x + y) / 2

        def backward(self, grad):
            half = grad / 2
            return half, half

    x, y = leaf(np.ones(size)), leaf(np.ones(size))
    early = x * 3
    (early + Mean2.apply(x, y)).sum().backward(create_graph=create_graph)
    assert (x.grad.numpy() == 3.5).all() and (y.grad.numpy() == 0.5).all()
    x.grad = y.grad = None
    Mean2.apply(x, y).sum().backward(create_graph=create_graph)
    with no_grad():
        x.grad.mul_(2)
    assert (x.grad.numpy() == 1).all() and (y.grad.numpy() == 0.5).all()


@pytest.mark.parametrize("size", [2, 20_000])
def test_a_backward_may_answer_with_a_saved_array(size):
    class Linear(Function):
        """Σ x y, for which the gradient of a sum is the other input itself."""

        saves_inputs = True

        def forward(self, x, y):
            return (x * y).sum()

        def backward(self, grad, x, y):
            return y, x

    x, y = leaf(np.ones(size)), leaf(np.full(size, 2.0))
    (x.sum() * 3 + Linear.apply(x, y)).backward()
    assert (x.grad.numpy() == 5).all() and (y.grad.numpy() == 1).all()
    assert (x.numpy() == 1).all() and (y.numpy() == 2).all()
    x.grad.mul_(2)
    y.grad.mul_(2)
    assert (x.numpy() == 1).all() and (y.numpy() == 2).all()


@pytest.mark.parametrize("make", [lambda x: (x, x), lambda x: [x, x], lambda x: None, lambda x: "a"])
def test_a_forward_that_makes_no_array_is_named(make):
    with pytest.raises(TypeError, match="Makes"):
        Makes.apply(leaf([1.0, 2.0]), make=make)


def test_a_backward_may_send_nothing():
    x, y = leaf([1.0]), leaf([1.0])
    (Answers.apply(x, answer=lambda g: None) + y).sum().backward()
    assert x.grad is None and y.grad.item() == 1


@pytest.mark.parametrize("rule, message", [
    (type("Empty", (Function,), {}), "Empty must define forward"),
    (type("Half", (Function,), {"forward": lambda self, x: x * 2}), "Half has no derivative: define backward"),
])  # fmt: skip
def test_a_rule_that_is_not_whole_is_named(rule, message):
    with pytest.raises(NotImplementedError, match=message):
        rule.apply(leaf([1.0])).backward()


def test_a_rule_that_returns_its_input_shares_no_unguarded_memory():
    """An identity rule: its output may be the input's own array, so a write into it must be seen."""
    x = Tensor(np.array([3.0, 4.0]))
    w = leaf([1.0, 2.0])
    y = x * w
    same = Makes.apply(x, make=lambda a: a)
    same[0] = 100
    try:
        y.sum().backward()
    except RuntimeError:
        return
    assert w.grad.numpy().tolist() == [3, 4]


@pytest.mark.parametrize("size", [2, 20_000])  # the larger gradient adds up in place
def test_the_gradient_of_an_inner_value_adds_up_over_its_uses(size):
    x = Tensor(np.arange(1.0, size + 1), requires_grad=True)
    y = x * 2
    z = (y * 3).sum() + (y * y).sum() + (y + y * 5).sum()  # dz/dy = 3 + 2 y + 6
    z.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (9 + 4 * np.arange(1.0, size + 1)), rtol=1e-12)
