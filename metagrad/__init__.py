"""metagrad: deep learning from scratch on NumPy, small enough to be read in an evening."""

from . import cuda, data, functional, nn, optim
from .autograd import grad
from .checkpoint import checkpoint
from .debug import debug_mode
from .derivatives import hessian, hvp, jacobian, jvp
from .draw import draw
from .function import Function
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .interop import from_dlpack
from .memory import keep_freed
from .mode import enable_grad, is_grad_enabled, no_grad
from .random import manual_seed
from .rows import Rows
from .serialization import load, save
from .tensor import Tensor

__version__ = "0.1.0"

keep_freed()
