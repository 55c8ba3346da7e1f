"""The table of operations: for each, how to call it, what NumPy says, and inputs to try.

It drives the checks of test_ops.py on every device. An operation that is not here fails the suite.
The files are those of the package's `ops/`; samples.py has what they share.
"""

from __future__ import annotations

from collections.abc import Iterator

from .activation import ACTIVATION
from .arithmetic import ARITHMETIC
from .convolution import CONVOLUTION
from .indexing import INDEXING
from .linalg import LINALG
from .loss import LOSS
from .network import NETWORK
from .reduction import REDUCTION
from .samples import Op, Sample
from .shape import SHAPE
from .trigonometry import TRIGONOMETRY

TABLE = [*ARITHMETIC, *TRIGONOMETRY, *ACTIVATION, *REDUCTION, *SHAPE, *INDEXING, *LINALG, *LOSS, *NETWORK, *CONVOLUTION]


def rows() -> Iterator[tuple[Op, Sample]]:
    for op in TABLE:
        for sample in op.samples:
            yield op, sample
