"""nn: modules that hold parameters and compute."""

from . import init
from .layers import Embedding, Linear, Sequential
from .loss import BCEWithLogitsLoss, CrossEntropyLoss, MSELoss
from .module import Module, Parameter

__all__ = [
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "Embedding",
    "Linear",
    "MSELoss",
    "Module",
    "Parameter",
    "Sequential",
    "init",
]
