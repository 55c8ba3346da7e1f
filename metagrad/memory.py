"""Freed memory is kept for the next array, instead of going back to the system.

glibc asks the system for every block of more than 128 KiB and returns it when it is freed, so that each large
array of a training step is paged in and zeroed anew, 4 KiB at a time; that can take longer than the arithmetic
on it. Where a block from the system is freed, glibc raises that limit to the block's size, up to 32 MiB, and
keeps twice as much (mallopt(3), M_MMAP_THRESHOLD). So one block that is never touched does it; its price is
that up to 64 MiB of freed memory stay with the process. MALLOC_TRIM_THRESHOLD_ in the environment overrules it,
and other C libraries do not notice.
"""

from __future__ import annotations

import numpy as np


def keep_freed() -> None:
    """Let the C library keep up to 64 MiB of what is freed."""
    np.empty((1 << 25) - (1 << 16), dtype=np.uint8)
