"""F: every differentiable function by its usual name; arrays by NumPy's names, networks by PyTorch's.

Takes Tensors, arrays and numbers; returns Tensors. It is also the namespace of Tensors: a rule that asks
`array_module(x)` for a function finds it here when x is a Tensor, so its derivative can be derived again.
The files are those of `ops/`, where the rules stand.
"""

from .activation import log_softmax, logsigmoid, relu, sigmoid, softmax, softplus, tanh
from .arithmetic import abs, clip, exp, expm1, log, log1p, maximum, minimum, sign, sqrt, where, zeros_like
from .attention import scaled_dot_product_attention
from .indexing import embedding, index_fill, take_along_axis
from .linalg import einsum, linear, matmul
from .loss import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from .normalization import layer_norm
from .recurrence import gru, lstm, rnn
from .reduction import logsumexp, max, mean, min, sum
from .shape import broadcast_to, concatenate, stack
