"""Devices that tests run on: the host, a stand-in for CuPy, and a GPU where there is one."""

import sys

import pytest

from metagrad import cuda

from . import standin


def real_gpu() -> bool:
    """Whether CuPy itself is installed and sees a GPU (asked before the stand-in takes its name)."""
    return cuda.is_available()


HAS_GPU = real_gpu()


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs CuPy and a GPU")


DEVICES = ["cpu", "standin", *([pytest.param("gpu", marks=pytest.mark.gpu)] if HAS_GPU else [])]


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    """A device name for Tensors: "cpu", or "cuda:0" of the stand-in or of a real GPU."""
    if request.param == "standin":
        monkeypatch.setitem(sys.modules, "cupy", standin.cupy)
    return "cpu" if request.param == "cpu" else "cuda:0"
