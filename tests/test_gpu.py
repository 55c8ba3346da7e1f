"""What only a real GPU can show. The device fixture adds a GPU to every other test that uses it."""

import numpy as np
import pytest

from metagrad import Rows, Tensor, cuda, from_dlpack

from .conftest import HAS_GPU

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not HAS_GPU, reason="CuPy with a GPU is not here; the stand-in took its place in the other tests"
    ),
]


def test_the_sum_over_repeated_rows_repeats_bit_for_bit():
    rng = np.random.default_rng(0)
    index = Tensor(rng.zipf(1.3, 50_000) % 1000, device="cuda:0").data
    values = Tensor(rng.standard_normal((50_000, 8)).astype(np.float32), device="cuda:0").data
    first, second = (cuda.to_device(Rows(index, values, (1000, 8)).dense(), cuda.CPU) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_a_gpu_tensor_does_not_turn_into_numpy_by_itself():
    with pytest.raises(TypeError, match="does not move data off cuda:0"):
        np.asarray(Tensor([1.0], device="cuda:0"))


def test_dlpack_shares_memory_with_cupy_both_ways():
    import cupy

    x = Tensor([1.0, 2.0], device="cuda:0")
    there = cupy.from_dlpack(x)
    from_dlpack(there).data[0] = 7
    assert x.tolist() == [7, 2] and there[0] == 7
