"""Large arrays that are made and freed again stay mapped, where the C library is glibc."""

import platform
import resource
import subprocess
import sys

import pytest

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
