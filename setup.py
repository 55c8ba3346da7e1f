from pathlib import Path

from setuptools import find_packages, setup

MPI = ["mpi4py>=4", "mpich"]
TEST = ["pytest", "ruff", "mypy", *MPI]
BENCH = ["torch==2.13.0", "autograd", "jax", "gensim", "scipy"]

setup(
    name="metagrad",
    version="0.1.0",
    description="Deep learning from scratch on NumPy, small enough to be read in an evening",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10",
    packages=find_packages(include=["metagrad", "metagrad.*"]),
    package_data={"metagrad": ["py.typed"]},
    install_requires=["numpy>=2.0", "tqdm"],
    entry_points={"console_scripts": ["metagrad-word2vec = metagrad.word2vec.cli:main"]},
    extras_require={
        "cuda12": ["cupy-cuda12x>=14"],
        "cuda13": ["cupy-cuda13x>=14"],
        "plot": ["matplotlib"],
        "mpi": MPI,
        "test": TEST,
        "bench": BENCH,
    },
)
