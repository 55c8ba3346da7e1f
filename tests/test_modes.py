"""no_grad, enable_grad and debug_mode: nested, re-entered, as decorators, in generators and in threads."""

import asyncio
import inspect
import threading

import numpy as np
import pytest

from metagrad import Function, Tensor, debug_mode, enable_grad, grad, is_grad_enabled, no_grad
from metagrad import functional as F
from metagrad.mode import MODE


def leaf(values, device="cpu", dtype=np.float64):
    return Tensor(np.array(values, dtype), device=device, requires_grad=True)


@pytest.fixture(autouse=True)
def usual_mode():
    """Each test starts in the usual mode, and leaves it so."""
    yield
    left = MODE.get()
    MODE.set(None)
    assert left is None


# Recording ------------------------------------------------------------------------------------------


def test_within_no_grad_results_require_nothing(device):
    x = leaf([1.0], device)
    with no_grad():
        made = [x * 2, x.exp(), F.softmax(x), x[0], x.sum(), F.stack([x, x]), x.reshape(1), x @ x, x.to("cpu")]
        assert not any(y.requires_grad for y in made[:-1])
        assert x.requires_grad  # the leaf itself stays what it is
        assert Tensor([1.0], requires_grad=True).requires_grad
    assert (x * 2).requires_grad


def test_modes_nest_and_come_back():
    states = [is_grad_enabled()]
    with no_grad():
        states.append(is_grad_enabled())
        with enable_grad():
            states.append(is_grad_enabled())
            assert (leaf([1.0]) * 2).requires_grad
            with no_grad():
                states.append(is_grad_enabled())
            states.append(is_grad_enabled())
        states.append(is_grad_enabled())
    states.append(is_grad_enabled())
    assert states == [True, False, True, False, True, False, True]


def test_a_mode_comes_back_after_an_error():
    with pytest.raises(KeyError), no_grad(), enable_grad():
        raise KeyError
    assert is_grad_enabled()


def test_one_object_may_be_entered_again_and_within_itself():
    mode = no_grad()
    for _ in range(2):
        with mode:
            with enable_grad(), mode:
                assert not is_grad_enabled()
            assert not is_grad_enabled()
        assert is_grad_enabled()


def test_recording_and_watching_are_changed_apart():
    x = leaf([1.0])
    with debug_mode(table=False) as watch:
        with no_grad():
            assert not (x * 2).requires_grad
        assert (x * 2).requires_grad
    assert watch.counts == {("Mul", "forward"): 2}
    with no_grad(), debug_mode(table=False) as watch:
        assert not (x * 2).requires_grad
    x * 2
    assert watch.counts == {("Mul", "forward"): 1}


@pytest.mark.parametrize("mode", [no_grad, enable_grad])
def test_modes_are_decorators(mode):
    @mode()
    def inside(depth):
        """What it says."""
        return [is_grad_enabled(), *(inside(depth - 1) if depth else [])]

    with (enable_grad if mode is no_grad else no_grad)():
        assert inside(2) == [mode is enable_grad] * 3
        assert is_grad_enabled() is (mode is no_grad)
    assert inside.__name__ == "inside" and inside.__doc__ == "What it says."


def test_a_decorated_generator_runs_its_body_in_the_mode_or_is_refused():
    try:

        @no_grad()
        def values():
            for _ in range(2):
                yield is_grad_enabled()

    except TypeError:
        return
    for state in values():
        assert state is False and is_grad_enabled()


def test_a_decorated_coroutine_runs_its_body_in_the_mode_or_is_refused():
    try:

        @no_grad()
        async def value():
            await asyncio.sleep(0)
            return is_grad_enabled()

    except TypeError:
        return
    assert asyncio.run(value()) is False


def test_generators_that_hold_a_mode_may_end_in_any_order():
    def hold(mode):
        with mode():
            yield

    for order in ((0, 1), (1, 0)):
        held = [hold(no_grad), hold(no_grad)]
        for g in held:
            next(g)
        for i in order:
            held[i].close()
        assert is_grad_enabled()
    first, second = hold(no_grad), hold(enable_grad)
    states = [next(g) or is_grad_enabled() for g in (first, second)]
    first.close()
    assert [*states, is_grad_enabled()] == [False, True, True]
    second.close()
    first, second = hold(enable_grad), hold(no_grad)
    states = [next(g) or is_grad_enabled() for g in (first, second)]
    first.close()
    assert [*states, is_grad_enabled()] == [True, False, False]
    second.close()
    assert is_grad_enabled()


def test_backward_works_within_no_grad(device):
    x = leaf([2.0], device)
    y = (x * x).sum()
    with no_grad():
        y.backward()
    assert x.grad.numpy().tolist() == [4] and not x.grad.requires_grad


# Threads and tasks ----------------------------------------------------------------------------------


def in_thread(work):
    result = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    thread.join()
    return result[0]


def test_a_thread_does_not_see_the_mode_of_another():
    x = leaf([1.0])
    with no_grad():
        assert in_thread(lambda: (is_grad_enabled(), (x * 2).requires_grad)) == (True, True)
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with no_grad():
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(5)
    assert is_grad_enabled() and (x * 2).requires_grad
    leave.set()
    thread.join()


def test_debug_mode_watches_its_own_thread():
    with debug_mode(table=False) as watch:
        in_thread(lambda: Tensor([1.0]) * 2)
    assert watch.counts == {}


@pytest.mark.parametrize("shared", [no_grad, debug_mode])
def test_two_threads_may_be_inside_one_decorated_function(shared):
    errors = []
    gates = [(threading.Event(), threading.Event()) for _ in range(2)]
    mode = shared() if shared is no_grad else shared(table=False)

    @mode
    def work(entered, leave):
        entered.set()
        assert leave.wait(5)
        return is_grad_enabled()

    def run(gate):
        try:
            work(*gate)
            assert is_grad_enabled()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(gate,)) for gate in gates]
    for thread, (entered, _) in zip(threads, gates):
        thread.start()
        assert entered.wait(5)
    for thread, (_, leave) in zip(threads, gates):  # the first in is the first out
        leave.set()
        thread.join()
    assert errors == []


def test_threads_build_and_walk_graphs_of_their_own():
    w = np.random.default_rng(0).standard_normal((20, 20))
    found = []

    def work():
        for _ in range(20):
            x = leaf(w)
            y = x
            for _ in range(10):
                y = (y @ x).tanh()
            y.sum().backward()
        found.append(x.grad.numpy())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all((g == found[0]).all() for g in found)


def test_a_task_does_not_see_the_mode_of_another():
    async def hold(mode):
        with mode():
            await asyncio.sleep(0)
            return is_grad_enabled()

    async def both():
        return await asyncio.gather(hold(no_grad), hold(enable_grad), hold(no_grad))

    assert asyncio.run(both()) == [False, True, False]


# debug_mode -----------------------------------------------------------------------------------------


def line():
    """The caller's place in this file, as debug_mode writes it."""
    return f"{__file__}:{inspect.currentframe().f_back.f_lineno}"


def test_a_forward_that_makes_a_nan_is_named_with_shapes_dtypes_and_line(device):
    x = leaf([[1.0, -1.0]], device, np.float32)
    with np.errstate(invalid="ignore"), debug_mode(table=False), pytest.raises(FloatingPointError) as caught:
        y, here = x * 2, line()
        F.log(y)
    message = str(caught.value)
    place, number = here.rsplit(":", 1)
    assert "forward of Log" in message and "(1, 2) float32" in message
    assert f"{place}:{int(number) + 1}: F.log(y)" in message


def test_a_backward_that_makes_an_infinity_is_named_with_the_line_of_its_forward(device):
    x = leaf([1.0, 1e-320], device)
    with np.errstate(over="ignore"), debug_mode(table=False):
        y, here = F.log(x), line()
        z = y.sum()
        with pytest.raises(FloatingPointError) as caught:
            z.backward()
    message = str(caught.value)
    assert "backward of Log" in message and "(2,) float64" in message and here in message
    assert x.grad is None


def test_the_line_is_the_users_also_through_functions_of_the_package():
    with np.errstate(all="ignore"), debug_mode(table=False), pytest.raises(FloatingPointError) as caught:
        F.mse_loss(leaf([1e200]), [-1e200])  # here
    assert "F.mse_loss" in str(caught.value) and "# here" in str(caught.value) and __file__ in str(caught.value)


def test_a_graph_made_before_debug_mode_is_watched_without_a_line():
    x = leaf([1e-320])
    y = F.log(x).sum()
    unknown = pytest.raises(FloatingPointError, match="before debug_mode began")
    with np.errstate(over="ignore"), debug_mode(table=False), unknown:
        y.backward()


def test_a_users_rule_is_named_and_none_is_no_nan():
    class Strange(Function):
        def forward(self, x):
            return x * 1

        def backward(self, grad):
            return grad * np.nan

    class Nothing(Function):
        def forward(self, x):
            return x * 1

        def backward(self, grad):
            return None

    x = leaf([1.0])
    with debug_mode(table=False) as watch:
        Nothing.apply(x).backward()
        with pytest.raises(FloatingPointError, match="backward of Strange"):
            Strange.apply(x).backward()
    assert watch.counts["Nothing", "backward"] == 1 and x.grad is None


def test_integers_masks_and_rows_are_finite():
    table = leaf(np.ones((3, 2)))
    with debug_mode(table=False) as watch:
        F.embedding(table, [0, 1]).sum().backward()
        Tensor([1, 2]).sum()
        Tensor([True]).astype(int)
    assert watch.counts["Embedding", "backward"] == 1
    bad = leaf(np.ones((3, 2)))
    with np.errstate(all="ignore"), debug_mode(table=False), pytest.raises(FloatingPointError, match="backward of Log"):
        F.log(F.embedding(bad, [0, 1]) * 1e-320).sum().backward()


def test_writes_are_watched_as_well():
    y = Tensor([1.0, 0.0], dtype=np.float64)
    with np.errstate(all="ignore"), debug_mode(table=False) as watch:
        y.mul_(2.0)
        with pytest.raises(FloatingPointError, match="Div"):
            y.div_(0.0)
    assert watch.counts["Mul", "forward"] == 1


def test_the_table_counts_both_passes_of_every_operation(device, capsys):
    x = leaf([1.0, 2.0], device)
    with debug_mode() as watch:
        (x * x + x).exp().sum().backward()
        x * 2
    expected = {("Mul", "forward"): 2, ("Add", "forward"): 1, ("Exp", "forward"): 1, ("Sum", "forward"): 1,
                ("Mul", "backward"): 1, ("Add", "backward"): 1, ("Exp", "backward"): 1,
                ("Sum", "backward"): 1}  # fmt: skip
    assert watch.counts == expected and watch.seconds.keys() == expected.keys()
    assert all(seconds > 0 for seconds in watch.seconds.values())
    printed = capsys.readouterr().out
    assert printed == watch.table() + "\n"
    rows = [text.split() for text in printed.splitlines()]
    assert rows[0] == ["operation", "pass", "count", "ms", "share"]
    assert {(name, phase): int(count) for name, phase, count, *_ in rows[1:-1]} == expected
    milliseconds = [float(row[3]) for row in rows[1:-1]]
    assert milliseconds == sorted(milliseconds, reverse=True)
    assert rows[-1][:3] == ["all", "both", "9"] and rows[-1][4] == "100.0%"
    assert float(rows[-1][3]) == pytest.approx(sum(milliseconds), abs=0.01)


def test_a_debug_mode_within_another_counts_in_both_and_only_until_it_ends():
    x = leaf([1.0])
    with debug_mode(table=False) as outer:
        x + 1
        with debug_mode(table=False) as inner:
            (x * 2).backward()
        x + 1
    assert inner.counts == {("Mul", "forward"): 1, ("Mul", "backward"): 1}
    assert outer.counts == {**inner.counts, ("Add", "forward"): 2}
    again = debug_mode(table=False)
    with again, again as watch:  # one object twice counts once
        x * 2
    assert watch.counts == {("Mul", "forward"): 1}


def test_a_table_of_nothing_has_its_sum():
    with debug_mode(table=False) as watch:
        pass
    assert watch.table().splitlines()[-1].split() == ["all", "both", "0", "0.000", "0.0%"]


def test_the_table_is_not_printed_after_an_error_or_when_not_wanted(capsys):
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError), debug_mode():
        F.log(Tensor([0.0]))
    with debug_mode(table=False):
        Tensor([1.0]) * 2
    assert capsys.readouterr().out == ""


def test_second_derivatives_are_watched(device):
    x = leaf([2.0], device)
    with debug_mode(table=False) as watch:
        (g,) = grad((x**3).sum(), x, create_graph=True)
        g.backward()
    assert x.grad.item() == 12
    assert watch.counts["Pow", "backward"] >= 2 and watch.counts["Pow", "forward"] >= 2


def test_debug_mode_changes_no_result(device):
    def run():
        x = leaf([[1.0, 2.0], [3.0, 4.0]], device)
        F.cross_entropy(x @ x.T, [0, 1]).backward()
        return x.grad.numpy()

    plain = run()
    with debug_mode(table=False):
        np.testing.assert_array_equal(run(), plain)
