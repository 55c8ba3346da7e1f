"""Large arrays that are made and freed again stay mapped, where the C library is glibc."""

import platform
import resource
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from metagrad import Tensor, nn

PROGRAM = """
import resource, sys
import numpy as np
if sys.argv[1] == "metagrad":
    import metagrad
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def step():
    arrays = [np.ones(1 << 17, np.float32) for _ in range(8)]  # 4 MiB in all
step()
before = faults()
for _ in range(20):
    step()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a property of glibc's malloc")
def test_a_step_that_repeats_pages_no_memory_in():
    def faults(library):
        return int(subprocess.run([sys.executable, "-c", PROGRAM, library], capture_output=True, check=True).stdout)

    pages = 20 * 4 * (1 << 20) // resource.getpagesize()
    assert faults("metagrad") < pages / 10
    assert faults("numpy") > pages / 2  # if this fails, glibc has changed and keep_freed() may go


def test_saved_values_are_freed_while_gradients_come():
    """The peak of 60 layers is what forward keeps, the input of each, and a few arrays more, not both together."""
    layers, width, batch = 60, 128, 256
    model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)])
    x = Tensor(np.ones((batch, width), np.float32))
    tracemalloc.start()
    loss = model(x).sum()
    kept, peak = tracemalloc.get_traced_memory()
    array, gradients = 4 * batch * width, 4 * layers * width * (width + 1)
    assert kept < (layers + 3) * array and peak < (layers + 5) * array
    tracemalloc.reset_peak()
    loss.backward()
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < (layers + 8) * array and after < gradients + 3 * array
