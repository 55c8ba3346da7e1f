"""Rows, adding into rows, and the embedding whose gradient they are."""

import numpy as np
import pytest

from metagrad import Rows, Tensor, cuda, grad
from metagrad import functional as F
from metagrad.scatter import add_at, add_rows, take_rows


def leaf(values, device="cpu", dtype=np.float64):
    return Tensor(np.array(values, dtype), device=device, requires_grad=True)


def on(values, device, dtype=None):
    return Tensor(np.asarray(values, dtype), device=device).data


def host(array):
    return cuda.to_device(array, cuda.CPU)


def rows(device="cpu", dtype=np.float64):
    """Row 1 twice, row 3 once, of a table (5, 2)."""
    return Rows(on([1, 3, 1], device), on([[1, 2], [3, 4], [10, 20]], device, dtype), (5, 2))


DENSE = [[0, 0], [11, 22], [0, 0], [3, 4], [0, 0]]


# Rows -----------------------------------------------------------------------------------------------


def test_rows_are_the_table_that_is_zero_elsewhere(device):
    r = rows(device)
    assert (r.shape, r.ndim, r.dtype) == ((5, 2), 2, np.float64)
    np.testing.assert_array_equal(host(r.dense()), DENSE)
    assert "Rows(3 of 5" in repr(r)
    assert r.astype(np.float32).dtype == np.float32


def test_coalesced_rows_are_ascending_and_once(device):
    r = rows(device)
    c = r.coalesce()
    assert host(c.index).tolist() == [1, 3] and host(c.values).tolist() == [[11, 22], [3, 4]]
    assert host(r.index).tolist() == [1, 3, 1] and host(r.values).tolist() == [[1, 2], [3, 4], [10, 20]]  # untouched
    np.testing.assert_array_equal(host(c.dense()), DENSE)


def test_sums_of_rows(device):
    r, table = rows(device), on(np.ones((5, 2)), device)
    both = r + r
    assert isinstance(both, Rows) and len(both.index) == 6
    np.testing.assert_array_equal(host(both.dense()), 2 * np.array(DENSE))
    for total in (r + table, table + r):
        assert not isinstance(total, Rows)
        np.testing.assert_array_equal(host(total), 1 + np.array(DENSE))
    assert (host(table) == 1).all()
    for scaled in (r * 2.0, 2.0 * r):
        assert isinstance(scaled, Rows) and scaled.dtype == np.float64
        np.testing.assert_array_equal(host(scaled.dense()), 2 * np.array(DENSE))
    assert (rows(device, np.float32) * 2.0).dtype == np.float32


def test_no_rows_at_all(device):
    r = Rows(on([], device, np.int64), on(np.zeros((0, 2)), device), (5, 2))
    assert host(r.dense()).tolist() == np.zeros((5, 2)).tolist()
    assert len(r.coalesce().index) == 0 and len((r + rows(device)).index) == 3


# Adding into rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("width", [(), (1,), (2,), (3,), (2, 3)])
def test_added_rows_are_those_of_a_python_loop(dtype, width, device):
    rng = np.random.default_rng(0)
    index = rng.integers(0, 7, 40)
    values = rng.integers(-4, 5, (40, *width)).astype(dtype)  # whole: any order is exact
    start = rng.integers(0, 3, (7, *width)).astype(dtype)
    expected = start.copy()
    for i, v in zip(index, values):
        expected[i] += v
    table = on(start.copy(), device)
    add_rows(table, on(index, device), on(values, device))
    assert table.dtype == dtype
    np.testing.assert_array_equal(host(table), expected)
    table = on(start.copy(), device)
    add_at(table, on(index, device), on(values, device))
    np.testing.assert_array_equal(host(table), expected)


@pytest.mark.parametrize("layout", [lambda t: t[::2], lambda t: t[:, ::2], np.asfortranarray, lambda t: t.T])
@pytest.mark.parametrize("integer", [np.int32, np.int64, np.uint8])
def test_tables_of_any_layout_and_indices_of_any_integers(layout, integer):
    table = layout(np.zeros((6, 6)))
    values = np.ones((4, 2 * table.shape[1]))[:, ::2]
    add_rows(table, np.array([0, 2, 0, 1], integer), values)
    assert table[:, 0].tolist()[:3] == [2, 1, 1]
    assert (table == table[:, :1]).all()


def test_rows_are_added_with_a_factor(device):
    table = on(np.ones((5, 2)), device, np.float32)
    rows(device, np.float32).add_to(table, -0.5)
    assert table.dtype == np.float32
    np.testing.assert_array_equal(host(table), 1 - 0.5 * np.array(DENSE))


def test_values_are_added_in_the_tables_dtype():
    table = np.zeros((2, 2), np.float32)
    add_rows(table, np.array([1, 1]), np.full((2, 2), 0.5))
    assert table.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 100, 1000])
def test_sums_of_equal_rows_are_right_for_any_repeat(n, device):
    rng = np.random.default_rng(n)
    index, values = rng.zipf(1.5, n) % 11, rng.standard_normal((n, 3))
    half = n // 2
    parts = [Rows(on(index[part], device), on(values[part], device), (11, 3)) for part in (slice(half), slice(half, n))]
    summed = (parts[0] + parts[1]).coalesce()
    assert host(summed.index).tolist() == sorted(set(index.tolist()))
    for i, row in zip(host(summed.index), host(summed.values)):
        np.testing.assert_allclose(row, values[index == i].sum(axis=0), rtol=1e-12, atol=1e-12)


def test_sums_repeat_bit_for_bit(device):
    rng = np.random.default_rng(0)
    index, values = rng.zipf(1.3, 50_000) % 1000, rng.standard_normal((50_000, 4)).astype(np.float32)
    first, second = (Rows(on(index, device), on(values, device), (1000, 4)) for _ in range(2))
    assert host(first.coalesce().values).tobytes() == host(second.coalesce().values).tobytes()
    tables = [host(first.dense()), host(second.dense())]
    assert tables[0].tobytes() == tables[1].tobytes()
    exact = np.zeros((1000, 4))
    np.add.at(exact, index, values)
    np.testing.assert_allclose(tables[0], exact, rtol=1e-3, atol=1e-3)


def test_taken_rows(device):
    table = on(np.arange(12.0).reshape(4, 3), device)
    assert host(take_rows(table, on([[3, 0], [1, 1]], device)))[..., 0].tolist() == [[9, 0], [3, 3]]


# Embedding ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids, counts", [
    ([1, 1, 3, 1], [0, 3, 0, 1, 0]), ([[1, 1], [3, 1]], [0, 3, 0, 1, 0]), (2, [0, 0, 1, 0, 0]), ([], [0] * 5),
])  # fmt: skip
@pytest.mark.parametrize("sparse", [True, False])
def test_repeated_ids_add_up(ids, counts, sparse, device):
    table = leaf(np.arange(10).reshape(5, 2), device)
    out = F.embedding(table, Tensor(np.array(ids, np.int64), device=device), sparse=sparse)
    assert out.shape == (*np.shape(ids), 2)
    out.sum().backward()
    assert isinstance(table.grad, Rows) is sparse
    found = host(table.grad.dense()) if sparse else table.grad.numpy()
    np.testing.assert_array_equal(found, np.array(counts)[:, None] * np.ones(2))


def test_rows_keep_the_tables_dtype_and_only_what_was_read(device):
    table = leaf(np.ones((1000, 2)), device, np.float32)
    (F.embedding(table, [5, 7, 5]) * 0.5).sum().backward()
    assert table.grad.dtype == np.float32 and table.grad.values.shape == (3, 2)


def test_rows_add_up_over_lookups_and_backwards(device):
    table = leaf(np.ones((4, 2)), device)
    (F.embedding(table, [0, 1]).sum() + 2 * F.embedding(table, [1]).sum()).backward()
    assert isinstance(table.grad, Rows)
    F.embedding(table, [3]).sum().backward()
    assert isinstance(table.grad, Rows)
    assert host(table.grad.dense())[:, 0].tolist() == [1, 3, 0, 1]


@pytest.mark.parametrize("shape", [(4, 2), (400, 64)])  # the large one adds in place
@pytest.mark.parametrize("order", [0, 1])
def test_rows_and_a_dense_gradient_of_one_table_make_a_dense_one(shape, order, device):
    table = leaf(np.ones(shape), device)
    if order:
        lookup, whole = F.embedding(table, [0, 1]).sum(), (table * 2).sum()
    else:
        whole, lookup = (table * 2).sum(), F.embedding(table, [0, 1]).sum()
    (whole + lookup + (table * 1).sum()).backward()
    assert isinstance(table.grad, Tensor)
    assert table.grad.numpy()[:3, 0].tolist() == [4, 4, 3]
    F.embedding(table, [2]).sum().backward()
    assert isinstance(table.grad, Tensor) and table.grad.numpy()[:4, 0].tolist() == [4, 4, 4, 3]
    table.grad = None
    F.embedding(table, [2]).sum().backward()
    (table * 1).sum().backward()
    assert isinstance(table.grad, Tensor) and table.grad.numpy()[:3, 0].tolist() == [1, 1, 2]


def test_rows_that_reach_an_operation_become_dense(device):
    w = leaf(np.ones((3, 2)), device)
    inner = w * 2
    inner.retain_grad()
    F.embedding(inner, [2, 2]).sum().backward()
    assert isinstance(w.grad, Tensor) and w.grad.numpy()[:, 0].tolist() == [0, 0, 4]
    assert inner.grad.numpy()[:, 0].tolist() == [0, 0, 2]


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("padding, same", [(0, 0), (2, 2), (-1, 2)])
def test_the_padding_row_gets_no_gradient(sparse, padding, same, device):
    table = leaf(np.ones((3, 2)), device)
    F.embedding(table, [0, 1, 2, 2, 0], padding_idx=padding, sparse=sparse).sum().backward()
    found = host(table.grad.dense()) if sparse else table.grad.numpy()
    expected = np.array([2, 1, 2])
    expected[same] = 0
    assert found[:, 0].tolist() == expected.tolist()


def test_without_padding_every_row_learns(device):
    table = leaf(np.ones((3, 2)), device)
    F.embedding(table, [0]).sum().backward()
    assert host(table.grad.dense())[0].tolist() == [1, 1]


@pytest.mark.parametrize("ids, bad", [([0, 3], 3), ([-1], -1), ([[2], [7]], 7), (3, 3)])
def test_an_id_out_of_range_is_named_and_never_wraps(ids, bad, device):
    with pytest.raises(IndexError, match=rf"id {bad} is not in a table of 3 rows \(0 to 2\)"):
        F.embedding(leaf(np.ones((3, 2)), device), ids)


@pytest.mark.parametrize("ids", [[0.0, 1.0], [True, False], np.array([1.0])])
def test_ids_that_are_no_integers_are_refused(ids):
    with pytest.raises(TypeError, match="embedding: ids must be integers, not"):
        F.embedding(leaf(np.ones((3, 2))), ids)


def test_an_empty_list_of_ids_is_a_list_of_ids():
    assert F.embedding(leaf(np.ones((3, 2))), []).shape == (0, 2)


@pytest.mark.parametrize("padding", [3, -4])
def test_a_padding_row_that_is_not_there_is_refused(padding):
    with pytest.raises((ValueError, IndexError), match=f"padding_idx.*{padding}"):
        F.embedding(leaf(np.ones((3, 2))), [0], padding_idx=padding)


@pytest.mark.parametrize("integer", [np.int8, np.int32, np.uint16, np.int64])
def test_ids_of_any_integer_type(integer, device):
    table = leaf(np.ones((200, 2)), device)
    F.embedding(table, Tensor(np.array([100, 100, 0], integer), device=device)).sum().backward()
    assert host(table.grad.dense())[[0, 100], 0].tolist() == [1, 2]


def test_double_backward_is_dense(device):
    table = leaf([[1.0], [2.0], [3.0]], device)
    (g,) = grad((F.embedding(table, [0, 2, 2]) ** 3).sum(), table, create_graph=True)
    assert isinstance(g, Tensor) and g.numpy().tolist() == [[3], [0], [54]]
    (h,) = grad(g.sum(), table)
    assert host(h.dense() if isinstance(h, Rows) else h.data).tolist() == [[6], [0], [36]]


def test_indexing_adds_up_repeats_too(device):
    x = leaf(np.zeros((5, 2)), device)
    x[[1, 1, 3, 1]].sum().backward()
    assert x.grad.numpy()[:, 0].tolist() == [0, 3, 0, 1, 0]
    x.grad = None
    x[[1, 1], [0, 0]].sum().backward()
    assert x.grad.numpy()[1].tolist() == [2, 0]
    x.grad = None
    x.gather(0, [[1, 0], [1, 0]]).sum().backward()
    assert x.grad.numpy()[:2].tolist() == [[0, 2], [2, 0]]
