"""nn: modules that hold parameters and compute."""

from . import init
from .attention import MultiheadAttention
from .convolution import AvgPool1d, AvgPool2d, Conv1d, Conv2d, MaxPool1d, MaxPool2d
from .layers import Embedding, Linear, Sequential
from .loss import BCEWithLogitsLoss, CrossEntropyLoss, MSELoss
from .module import Buffer, Module, Parameter
from .normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
