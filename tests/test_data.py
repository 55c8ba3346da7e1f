"""Datasets, samplers, collating and the DataLoader: what is read, in which order, and at what cost."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from metagrad.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    pad_rows,
)


class Squares(Dataset):
    def __init__(self, n: int) -> None:
        self.n = n

    def __getitem__(self, index):
        return index * index

    def __len__(self):
        return self.n


class FakeTensor:
    """All that the package asks of a Tensor."""

    def __init__(self, values) -> None:
        self.values = np.asarray(values)

    def numpy(self):
        return self.values


class Endless:
    """A dataset without a length."""

    def __getitem__(self, index):
        return index


def epoch(loader) -> list:
    return [np.asarray(batch).tolist() for batch in loader]


def prefetch_threads() -> int:
    return sum(thread.name == "metagrad-prefetch" for thread in threading.enumerate())


def wait_for_no_threads() -> None:
    deadline = time.monotonic() + 1
    while prefetch_threads() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert prefetch_threads() == 0


# ── datasets ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_dataset_without_its_methods_raises_and_names_the_class():
    class Corpus(Dataset):
        pass

    with pytest.raises(NotImplementedError, match=r"Corpus has no __getitem__"):
        Corpus()[0]
    with pytest.raises(NotImplementedError, match=r"Corpus has no __len__"):
        len(Corpus())
    with pytest.raises(NotImplementedError, match=r"Corpus has no __len__"):
        DataLoader(Corpus(), shuffle=True)


def test_tensor_dataset_gives_plain_arrays():
    dataset = TensorDataset(FakeTensor([[1.0, 2.0], [3.0, 4.0]]), np.array([7, 8], dtype=np.int32))
    x, y = dataset[1]
    assert type(dataset[1]) is tuple and type(x) is np.ndarray
    assert x.tolist() == [3.0, 4.0] and y == 8 and y.dtype == np.int32
    xs, ys = next(iter(DataLoader(dataset, batch_size=2)))
    assert type(xs) is np.ndarray and xs.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert ys.tolist() == [7, 8] and ys.dtype == np.int32


def test_tensor_dataset_reads_slices_and_negative_indices():
    dataset = TensorDataset(np.arange(5))
    assert dataset[1:3][0].tolist() == [1, 2]
    assert dataset[-1] == (4,)
    assert dataset.__getitems__(np.array([-1, 0]))[0].tolist() == [4, 0]
    assert [item for (item,) in dataset] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("index", [5, -6])
def test_tensor_dataset_names_an_index_outside_it(index):
    dataset = TensorDataset(np.arange(5))
    with pytest.raises(IndexError, match=rf"index {index} is outside a TensorDataset of 5 items"):
        dataset[index]
    with pytest.raises(IndexError, match=rf"index {index} is outside a TensorDataset of 5 items"):
        dataset.__getitems__(np.array([0, index]))


def test_tensor_dataset_refuses_what_is_not_columns():
    with pytest.raises(ValueError, match=r"lengths \[3, 2\]"):
        TensorDataset(np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="at least one array"):
        TensorDataset()
    with pytest.raises(ValueError, match="array 1 .* is one number"):
        TensorDataset(np.zeros(3), 4)
    with pytest.raises(TypeError, match="array 0 .* holds Python objects"):
        TensorDataset(np.array([None, 1], dtype=object))
    with pytest.raises(ValueError, match="array 1 .* is ragged .* pad"):
        TensorDataset([0, 1], [[1, 2, 3], [4, 5]])


def test_tensor_dataset_takes_python_floats_as_float32_and_keeps_float64_arrays():
    lists, arrays, rows = TensorDataset([[1.0], [2]], np.zeros(2), [np.zeros(3), np.ones(3)]).arrays
    assert (lists.dtype, arrays.dtype, rows.dtype) == (np.float32, np.float64, np.float64)


def test_rows_of_different_lengths_become_int_arrays_not_objects():
    # BUG_CASES 50: a dataset of (id, list of contexts)
    centers, contexts = [3, 5, 9], [[1, 2, 3], [], [4, 5]]
    padded, mask = pad_rows(contexts, value=-1)
    dataset = TensorDataset(centers, padded, mask)
    assert [array.dtype for array in dataset.arrays] == [np.int64, np.int64, np.bool_]
    assert padded.tolist() == [[1, 2, 3], [-1, -1, -1], [4, 5, -1]]
    assert mask.tolist() == [[True] * 3, [False] * 3, [True, True, False]]


def test_pad_rows_keeps_the_dtype_of_arrays_and_takes_no_rows_at_all():
    padded, _ = pad_rows([np.array([1, 2], dtype=np.int32), np.array([], dtype=np.float64)])
    assert padded.dtype == np.int32
    assert pad_rows([[0.5], [1, 2]])[0].dtype == np.float32
    assert pad_rows([])[0].shape == (0, 0) and pad_rows([[], []])[0].shape == (2, 0)
    with pytest.raises(TypeError, match="lists of numbers"):
        pad_rows([["a"], ["b", "c"]])
    with pytest.raises(TypeError, match="rows of int64 cannot be padded with the float 0.5"):
        pad_rows([[1], [2, 3]], value=0.5)


# ── collating ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_pairs_collate_to_one_column_a_field(n):
    numbers, letters = default_collate([(1, "a"), (2, "b"), (3, "c"), (4, "d")][:n])
    assert numbers.tolist() == [1, 2, 3, 4][:n] and letters == ("a", "b", "c", "d")[:n]


@pytest.mark.parametrize(
    ("items", "dtype"),
    [
        ([1, 2], np.int64),
        ([1.5, 2.5], np.float32),
        ([1, 2.5], np.float32),
        ([True, False], np.bool_),
        ([True, 2], np.int64),
        ([1j, 2.0], np.complex64),
        ([np.float64(1), np.float64(2)], np.float64),
        ([np.float32(1), 2.5], np.float32),
        ([np.float32(1), np.float64(2)], np.float64),
        ([np.int32(1), 2], np.int32),
        ([[1, 2], [3.5, 4]], np.float32),
        ([np.zeros(2, np.float16), np.ones(2, np.float16)], np.float16),
        ([[], []], np.float32),
    ],
)
def test_numbers_collate_to_their_natural_dtype(items, dtype):
    batch = default_collate(items)
    assert batch.dtype == dtype
    assert np.array_equal(batch, np.array(items))


def test_arrays_and_nested_lists_are_stacked():
    assert default_collate([np.ones((2, 3)), np.zeros((2, 3))]).shape == (2, 2, 3)
    nested = default_collate([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]])
    assert nested.tolist() == [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]
    assert default_collate([FakeTensor([1.0, 2.0]), FakeTensor([3.0, 4.0])]).tolist() == [[1, 2], [3, 4]]


def test_dicts_named_tuples_and_lists_of_fields_keep_their_structure():
    Pair = namedtuple("Pair", "x y")
    first = {"p": Pair(1, "a"), "q": [np.zeros(2), 5]}
    batch = default_collate([first, {"q": [np.ones(2), 6], "p": Pair(2, "b")}])
    assert isinstance(batch["p"], Pair) and batch["p"].x.tolist() == [1, 2] and batch["p"].y == ("a", "b")
    x, y = batch["q"]
    assert x.tolist() == [[0, 0], [1, 1]] and y.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([np.ones(3), np.ones(3), np.ones(4)], ValueError, r"0 and 2 have shapes \(3,\) and \(4,\).*collate"),
        ([(1, [1, 2]), (2, [3])], ValueError, r"0 and 1 of field 1 have shapes \(2,\) and \(1,\)"),
        ([{"a": (1, [1])}, {"a": (1, [1, 2])}], ValueError, r"of field 1 of key 'a' have shapes"),
        ([(1, 2), (1, 2, 3)], ValueError, r"items 0 and 1 have lengths 2 and 3"),
        ([{"a": 1}, {"b": 1}], ValueError, r"items 0 and 1 have keys \['a'\] and \['b'\]"),
        ([1, 2, "a"], TypeError, r"items 0 and 2 have types int and str"),
        ([None, None], TypeError, r"items of type NoneType"),
        ([np.array([None])], TypeError, r"Python objects"),
        ([2**70], ValueError, r"too large for int64"),
        ([], ValueError, r"no items to collate"),
    ],
)
def test_what_does_not_join_is_one_sentence(items, error, message):
    with pytest.raises(error, match=message):
        default_collate(items)


# ── samplers ─────────────────────────────────────────────────────────────────────────────────────────


def test_sequential_and_random_samplers_cover_every_index():
    assert list(SequentialSampler(5)) == [0, 1, 2, 3, 4] == list(SequentialSampler("abcde"))
    order = list(RandomSampler(10_000, generator=0))
    assert sorted(order) == list(range(10_000)) and order != sorted(order)
    assert type(order[0]) is int
    assert list(RandomSampler(0)) == []


def test_random_sampler_draws_one_permutation_an_epoch_when_iter_is_called():
    ours, reference = np.random.default_rng(7), np.random.default_rng(7)
    sampler = RandomSampler(20, generator=ours)
    first, second = iter(sampler), iter(sampler)
    expected = [reference.permutation(20).tolist(), reference.permutation(20).tolist()]
    assert [list(first), list(second)] == expected
    assert ours.bit_generator.state == reference.bit_generator.state


def test_random_sampler_num_samples():
    assert len(set(RandomSampler(10, num_samples=4, generator=0))) == 4
    many = list(RandomSampler(10, replacement=True, num_samples=1000, generator=0))
    assert len(many) == 1000 and set(many) == set(range(10))
    with pytest.raises(ValueError, match="11 samples from 10 items without replacement"):
        RandomSampler(10, num_samples=11)


def test_subset_random_sampler_permutes_its_own_indices():
    sampler = SubsetRandomSampler([4, 8, 2], generator=0)
    assert sorted(sampler) == [2, 4, 8] and len(sampler) == 3
    assert len({tuple(sampler) for _ in range(50)}) == 6
    assert list(SubsetRandomSampler([])) == []
    with pytest.raises(TypeError, match="flatnonzero"):
        SubsetRandomSampler(np.array([True, False]))


def test_weighted_sampler_draws_in_proportion_and_never_weight_zero():
    weights = np.array([0, 1, 3, 0], dtype=np.float32)
    drawn = np.array(list(WeightedRandomSampler(weights, 40_000, generator=0)))
    counts = np.bincount(drawn, minlength=4)
    assert counts[0] == counts[3] == 0
    assert counts[2] / 40_000 == pytest.approx(0.75, abs=0.01)  # 4.6 standard deviations


def test_weighted_sampler_without_replacement_follows_successive_draws():
    sampler = WeightedRandomSampler([1, 2, 0, 7], 2, replacement=False, generator=0)
    pairs = [tuple(sampler) for _ in range(20_000)]
    assert all(first != second for first, second in pairs)
    # P(first = 3) = 0.7;  P(first = 3, second = 1) = 0.7 · 2/3
    assert np.mean([pair[0] == 3 for pair in pairs]) == pytest.approx(0.7, abs=0.015)
    assert np.mean([pair == (3, 1) for pair in pairs]) == pytest.approx(0.7 * 2 / 3, abs=0.016)


def test_weighted_sampler_takes_float32_zipf_counts_and_huge_weights():
    zipf = (1e6 / np.arange(1, 100_001, dtype=np.float32)) ** np.float32(0.75)
    assert max(WeightedRandomSampler(zipf, 1000, generator=0)) < 100_000
    assert set(WeightedRandomSampler([1e308, 1e308], 100, generator=0)) == {0, 1}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, float("nan")], r"weights\[1\] is nan"),
        ([1, 2, -0.5], r"weights\[2\] is -0.5"),
        ([float("inf")], r"weights\[0\] is inf"),
        ([0, 0, 0], r"at least one of the 3 weights must be above 0"),
        ([], r"at least one of the 0 weights"),
        ([[1, 2]], r"one axis, got shape \(1, 2\)"),
    ],
)
def test_weighted_sampler_names_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        WeightedRandomSampler(weights, 1)


def test_weighted_sampler_without_replacement_needs_enough_weights():
    with pytest.raises(ValueError, match="3 samples without replacement: only 2 weights"):
        WeightedRandomSampler([1, 0, 1], 3, replacement=False)


def test_a_subclass_of_a_sampler_that_writes_its_own_iter_is_heeded():
    class Backwards(SequentialSampler):
        def __iter__(self):
            return reversed(range(len(self)))

    assert list(BatchSampler(Backwards(3), 2)) == [[2, 1], [0]]


@pytest.mark.parametrize("sampler", [SequentialSampler(7), range(7), list(range(7))])
def test_batch_sampler_groups_and_drops(sampler):
    whole, dropped = BatchSampler(sampler, 3), BatchSampler(sampler, 3, drop_last=True)
    assert [list(batch) for batch in whole] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [list(batch) for batch in dropped] == [[0, 1, 2], [3, 4, 5]]
    assert (len(whole), len(dropped)) == (3, 2)


# ── the loader ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("n", "size", "drop", "batches"),
    [(10, 3, False, 4), (10, 3, True, 3), (9, 3, False, 3), (2, 5, True, 0), (0, 4, False, 0)],
)
def test_len_is_the_number_of_batches(n, size, drop, batches):
    loader = DataLoader(Squares(n), batch_size=size, drop_last=drop)
    assert len(loader) == len(list(loader)) == batches


def test_in_order_unless_shuffled():
    assert epoch(DataLoader(Squares(5), batch_size=2)) == [[0, 1], [4, 9], [16]]
    assert epoch(DataLoader([10, 11, 12], batch_size=2)) == [[10, 11], [12]]


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_the_same_seed_gives_the_same_epochs_and_each_epoch_is_new(prefetch):
    plain = DataLoader(Squares(50), batch_size=8, shuffle=True, generator=np.random.default_rng(3))
    seeded = DataLoader(Squares(50), batch_size=8, shuffle=True, generator=3, prefetch=prefetch)
    expected = [epoch(plain) for _ in range(3)]
    assert [epoch(seeded) for _ in range(3)] == expected
    assert expected[0] != expected[1] != expected[2]
    assert sorted(sum(expected[1], [])) == [i * i for i in range(50)]


def test_without_a_generator_two_loaders_differ():
    first, second = (DataLoader(Squares(1000), batch_size=1000, shuffle=True) for _ in range(2))
    assert epoch(first) != epoch(second)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_epoch_can_be_repeated_from_the_generators_state_even_if_left_early(prefetch):
    generator = np.random.default_rng(0)
    loader = DataLoader(Squares(30), batch_size=4, shuffle=True, generator=generator, prefetch=prefetch)
    list(loader)
    state = generator.bit_generator.state
    second, third = epoch(loader), epoch(loader)
    generator.bit_generator.state = state
    assert np.asarray(next(iter(loader))).tolist() == second[0]  # one permutation is drawn all the same
    assert epoch(loader) == third


@pytest.mark.parametrize("prefetch", [0, 2])
def test_loops_over_one_loader_do_not_disturb_each_other(prefetch):
    loader = DataLoader(Squares(12), batch_size=5, shuffle=True, generator=1, prefetch=prefetch)
    everything = sorted(i * i for i in range(12))
    outer_seen = []
    for outer in loader:
        outer_seen += outer.tolist()
        assert sorted(np.concatenate(list(loader)).tolist()) == everything
    assert sorted(outer_seen) == everything


def test_the_loader_leaves_numpys_global_stream_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    list(DataLoader(Squares(10), shuffle=True))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_collate_fn_receives_the_list_of_items():
    seen = []
    list(DataLoader(Squares(5), batch_size=2, collate_fn=seen.append))
    assert seen == [[0, 1], [4, 9], [16]]


def test_a_dataset_that_reads_whole_batches_hands_them_over_as_they_are():
    class Rows(Squares):
        def __getitems__(self, indices):
            assert type(indices) is np.ndarray and indices.dtype == np.int64
            return {"index": indices}

    assert [batch["index"].tolist() for batch in DataLoader(Rows(3), batch_size=2)] == [[0, 1], [2]]
    seen = []
    list(DataLoader(Rows(3), batch_sampler=[[2, 0]], collate_fn=seen.append))
    assert seen[0]["index"].tolist() == [2, 0]


def test_collate_fn_of_a_tensor_dataset_receives_its_columns():
    dataset = TensorDataset(np.arange(4), np.arange(4) * 10)
    batches = list(DataLoader(dataset, batch_size=2, collate_fn=lambda columns: columns[0] + columns[1]))
    assert [batch.tolist() for batch in batches] == [[0, 11], [22, 33]]


def test_own_samplers_decide_the_order():
    assert epoch(DataLoader(Squares(9), batch_size=2, sampler=[3, 1, 2])) == [[9, 1], [4]]
    assert epoch(DataLoader(Squares(9), batch_sampler=[[3], [1, 2]])) == [[9], [1, 4]]
    assert epoch(DataLoader(Endless(), batch_size=2, sampler=[8, 9])) == [[8, 9]]
    assert list(DataLoader({"a": 1, "b": 2}, batch_size=2, sampler=["b", "a"]))[0].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
        ({"batch_size": 2.0}, TypeError, "batch_size must be a whole number, not the float 2.0"),
        ({"batch_size": True}, TypeError, "batch_size must be a whole number, not the bool True"),
        ({"batch_size": None}, TypeError, "batch_size must be a whole number"),
        ({"prefetch": -1}, ValueError, "prefetch must be at least 0, got -1"),
        ({"shuffle": True, "sampler": [0]}, ValueError, "shuffle and sampler both decide the order"),
        ({"generator": 1, "sampler": [0]}, ValueError, "generator serves shuffle=True only"),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "leave out batch_size$"),
        ({"batch_sampler": [[0]], "shuffle": 1, "drop_last": True}, ValueError, "out shuffle, drop_last$"),
        ({"sampler": iter([0])}, TypeError, "sampler is an iterator .* nothing left after one epoch"),
        ({"batch_sampler": iter([[0]])}, TypeError, "batch_sampler is an iterator"),
        ({"sampler": 3}, TypeError, "sampler must be something to iterate over, not a int"),
        ({"collate_fn": [1]}, TypeError, "collate_fn must be a function of the items, not a list"),
        ({"shuffle": True, "generator": "x"}, TypeError, "generator must be a numpy Generator .* not a str"),
        ({"shuffle": True, "generator": np.random.RandomState(0)}, TypeError, "not a RandomState"),  # noqa: NPY002
    ],
)
def test_arguments_that_cannot_be_are_one_sentence(arguments, error, message):
    with pytest.raises(error, match=message):
        DataLoader(Squares(3), **arguments)


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_dataset_without_a_length_is_refused_where_it_is_needed(shuffle):
    with pytest.raises(TypeError, match="Endless has no __len__"):
        DataLoader(Endless(), shuffle=shuffle)
    with pytest.raises(TypeError, match="dataset must have __getitem__, and a generator has none"):
        DataLoader((i for i in range(3)), sampler=[0])


def test_the_length_of_a_sampler_without_one_is_a_sentence():
    class Forever:
        def __iter__(self):
            return iter([0, 1])

    assert epoch(DataLoader(Squares(3), sampler=Forever())) == [[0], [1]]
    with pytest.raises(TypeError, match="the sampler, a Forever, has no __len__"):
        len(DataLoader(Squares(3), sampler=Forever()))
    with pytest.raises(TypeError, match="the batch_sampler, a Forever, has no __len__"):
        len(DataLoader(Squares(3), batch_sampler=Forever()))


def test_fractional_indices_do_not_reach_a_dataset_that_reads_batches():
    with pytest.raises(TypeError, match="indices must be whole numbers"):
        list(DataLoader(TensorDataset(np.arange(3)), batch_sampler=[[0.5]]))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_stop_iteration_in_the_collate_fn_does_not_pass_for_the_end(prefetch):
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(Squares(3), collate_fn=lambda items: next(iter([])), prefetch=prefetch))


def test_a_million_shuffled_items_are_read_by_arrays():
    loader = DataLoader(TensorDataset(np.arange(1_000_000)), batch_size=1024, shuffle=True)
    start = time.perf_counter()
    assert sum(int(x.sum()) for (x,) in loader) == 1_000_000 * 999_999 // 2
    assert time.perf_counter() - start < 2  # about 0.05 s; a Python loop over the indices takes far longer


def test_memory_does_not_grow_over_epochs_nor_is_a_column_copied():
    # BUG_CASES 51
    pairs = np.arange(2_000_000, dtype=np.int32).reshape(-1, 2)
    loader = DataLoader(TensorDataset(pairs[:, 0], pairs[:, 1]), batch_size=10_240, shuffle=True, prefetch=2)
    tracemalloc.start()
    try:
        after = []
        for _ in range(3):
            for _x, _y in loader:
                pass
            wait_for_no_threads()
            after.append(tracemalloc.get_traced_memory()[0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert after[2] - after[0] < 50_000  # bytes
    assert peak < 7e6  # one order of int32 is 4 MB


# ── prefetch ─────────────────────────────────────────────────────────────────────────────────────────


class Counting(Squares):
    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.reads = 0

    def __getitem__(self, index):
        self.reads += 1
        return index


@pytest.mark.parametrize("depth", [1, 3])
def test_prefetch_runs_ahead_by_its_depth_and_no_further(depth):
    dataset = Counting(20)
    batches = iter(DataLoader(dataset, prefetch=depth))
    for taken in range(1, 4):
        next(batches)
        deadline = time.monotonic() + 1
        while dataset.reads < taken + depth and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(0.02)
        assert dataset.reads == taken + depth


def test_prefetch_draws_the_same_in_the_collate_fn():
    def epochs(prefetch):
        noise = np.random.default_rng(5)
        loader = DataLoader(
            Squares(40),
            batch_size=7,
            shuffle=True,
            generator=2,
            prefetch=prefetch,
            collate_fn=lambda items: (items, noise.integers(1000, size=3).tolist()),
        )
        return [list(loader), list(loader)]

    assert epochs(0) == epochs(1) == epochs(4)


def test_no_thread_stays_after_the_end():
    loader = DataLoader(Squares(10), prefetch=2)
    batches = iter(loader)
    assert len(list(batches)) == 10
    assert list(batches) == []
    wait_for_no_threads()


def test_no_thread_stays_after_a_break_or_an_exception_in_the_loop():
    loader = DataLoader(Squares(1000), prefetch=4)
    for _ in loader:
        break
    wait_for_no_threads()

    def fails():
        for _ in loader:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails()
    wait_for_no_threads()


def test_a_dropped_iterator_has_at_most_the_batch_under_way_finished():
    class Slow(Counting):
        def __getitem__(self, index):
            time.sleep(0.02)
            return super().__getitem__(index)

    dataset = Slow(1000)
    batches = iter(DataLoader(dataset, prefetch=30))
    next(batches)
    reads_then = dataset.reads
    del batches
    wait_for_no_threads()
    assert dataset.reads <= reads_then + 1


def test_no_thread_stays_after_an_iterator_is_dropped_even_in_a_cycle():
    batches = iter(DataLoader(Squares(1000), prefetch=1))
    next(batches)
    assert prefetch_threads() == 1
    cycle = [batches]
    cycle.append(cycle)
    del batches, cycle
    gc.collect()
    wait_for_no_threads()


@pytest.mark.parametrize("place", ["dataset", "collate_fn", "sampler"])
def test_an_exception_in_the_thread_reaches_the_loop_as_it_was(place):
    class Trouble(Exception):
        pass

    def raise_trouble(index):
        if index == 3:
            raise Trouble(f"item {index}")
        return index

    class Failing(Squares):
        def __getitem__(self, index):
            return raise_trouble(index) if place == "dataset" else index

    class FailingSampler:
        def __iter__(self):
            return (raise_trouble(i) if place == "sampler" else i for i in range(10))

    loader = DataLoader(
        Failing(10),
        sampler=FailingSampler(),
        collate_fn=lambda items: raise_trouble(items[0]) if place == "collate_fn" else items[0],
        prefetch=2,
    )
    seen = []
    start = time.monotonic()
    batches = iter(loader)
    with pytest.raises(Trouble, match="item 3") as caught:
        for batch in batches:
            seen.append(batch)
    assert time.monotonic() - start < 1
    assert seen == [0, 1, 2]
    assert "raise_trouble" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert list(batches) == []
    wait_for_no_threads()


def test_an_idle_consumer_does_not_hold_up_the_interpreters_exit():
    program = (
        "from metagrad.data import DataLoader\n"
        "batches = iter(DataLoader(list(range(1000)), prefetch=3))\n"
        "print(next(batches))\n"
    )
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0]\n", "")
