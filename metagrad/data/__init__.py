"""Data: datasets, samplers, the DataLoader, and downloads into a cache.

Everything here is NumPy arrays; nothing knows of Tensors or devices. A training loop wraps what it needs.
"""

from .collate import default_collate, pad_rows
from .dataset import Dataset, TensorDataset
from .download import cache_folder, fetch, fetch_member
from .loader import DataLoader
from .sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "RandomSampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "cache_folder",
    "default_collate",
    "fetch",
    "fetch_member",
    "pad_rows",
]
