"""optim: optimizers, and schedules of their learning rates."""

from .clip import clip_grad_norm, clip_grad_value
from .optimizer import SGD, Adagrad, Adam, AdamW, Optimizer
from .scheduler import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    LambdaLR,
    LinearLR,
    ReduceLROnPlateau,
    Scheduler,
    StepLR,
)

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "LambdaLR",
    "LinearLR",
    "Optimizer",
    "ReduceLROnPlateau",
    "Scheduler",
    "StepLR",
    "clip_grad_norm",
    "clip_grad_value",
]
