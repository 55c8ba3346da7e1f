"""F: every differentiable function by its usual name; arrays by NumPy's names, networks by PyTorch's.

Takes Tensors, arrays and numbers; returns Tensors. It is also the namespace of Tensors: a rule that asks
`array_module(x)` for a function finds it here when x is a Tensor, so its derivative can be derived again.
The files are those of `ops/`, where the rules stand.
"""

# fmt: off
from .arithmetic import (
    abs, ceil, clip, erf, exp, expm1, floor, isfinite, isinf, isnan, log, log10, log1p, log2, logaddexp,
    logical_and, logical_not, logical_or, logical_xor, maximum, minimum, reciprocal, round, sign, sqrt, square,
    where, zeros_like,
)
from .trigonometry import arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, cos, cosh, hypot, sin, sinh, tan
from .reduction import (
    all, any, argmax, argmin, count_nonzero, cumprod, cumsum, logsumexp, max, mean, median, min, norm, prod, std,
    sum, var,
)
from .shape import (
    broadcast_to, chunk, concatenate, diagonal, expand_dims, flip, moveaxis, pad, ravel, repeat, reshape, roll,
    split, squeeze, stack, swapaxes, tile, transpose, tril, triu,
)
from .indexing import (
    TopK, argsort, embedding, index_add, index_fill, index_select, masked_fill, masked_select, nonzero, scatter,
    scatter_add, sort, take_along_axis, topk,
)
from .linalg import (
    SignAndLog, cholesky, det, dot, einsum, inner, inv, linear, matmul, outer, slogdet, solve, tensordot, trace,
)
from .activation import (
    celu, elu, gelu, hardswish, hardtanh, leaky_relu, log_softmax, logsigmoid, mish, prelu, relu, selu, sigmoid,
    silu, softmax, softplus, softsign, tanh, tanhshrink,
)
from .loss import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cosine_embedding_loss, cosine_similarity, cross_entropy,
    hinge_embedding_loss, huber_loss, kl_div, l1_loss, mse_loss, nll_loss, triplet_margin_loss,
)
from .dropout import dropout
from .normalization import batch_norm, layer_norm
from .recurrence import gru, lstm, rnn
from .attention import scaled_dot_product_attention
from .convolution import avg_pool1d, avg_pool2d, conv1d, conv2d, max_pool1d, max_pool2d
