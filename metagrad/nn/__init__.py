"""nn: modules that hold parameters and compute."""

# fmt: off
from . import init
from .activation import (
    CELU, ELU, GELU, SELU, Hardswish, Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax, Mish, PReLU, ReLU, Sigmoid, SiLU,
    Softmax, Softplus, Softsign, Tanh, Tanhshrink,
)
from .attention import MultiheadAttention
from .containers import ModuleDict, ModuleList, Sequential
from .convolution import AvgPool1d, AvgPool2d, Conv1d, Conv2d, MaxPool1d, MaxPool2d
from .layers import Dropout, Embedding, Flatten, Linear
from .loss import (
    BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, CrossEntropyLoss, HingeEmbeddingLoss, HuberLoss, KLDivLoss,
    L1Loss, MSELoss, NLLLoss, TripletMarginLoss,
)
from .module import Buffer, Module, Parameter
from .normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
