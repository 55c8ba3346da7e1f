"""nn: modules that hold parameters and compute."""

# fmt: off
from . import init
from .activation import (
    CELU, ELU, GELU, SELU, Hardswish, Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax, Mish, PReLU, ReLU, Sigmoid, SiLU,
    Softmax, Softplus, Softsign, Tanh, Tanhshrink,
)
from .attention import MultiheadAttention
from .containers import ModuleDict, ModuleList, Sequential
from .layers import Dropout, Embedding, Flatten, Linear
from .loss import (
    BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, CrossEntropyLoss, HingeEmbeddingLoss, HuberLoss, KLDivLoss,
    L1Loss, MSELoss, NLLLoss, TripletMarginLoss,
)
from .module import Module, Parameter
from .normalization import LayerNorm
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
