"""Pictures: chosen words in the plane of their two principal components, and the loss over the epochs.

matplotlib is an extra, and is imported only when something is drawn. Both functions return a Figure that no
window holds: it can be saved anywhere, and a notebook shows it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..files import written_beside
from .vectors import WordVectors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# matplotlib's own font first, then one that holds Chinese on each system
_FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Microsoft YaHei",
    "SimHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Arial Unicode MS",
)


def plot_words(vectors: WordVectors, tokens: Sequence[str], path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw tokens where the two principal components of their directions put them; saved if `path` is given.

    The axes say what share of the variance each component holds. KeyError for an unknown token; ValueError
    for fewer than two; ImportError without matplotlib.
    """
    if isinstance(tokens, str):
        raise TypeError(f"plot_words takes a list of tokens, got the string {tokens!r}; split it first")
    if len(tokens) < 2:
        raise ValueError(f"plot_words needs at least two tokens, got {list(tokens)!r}")
    rows = np.array([vectors.index(token) for token in tokens])
    points, shares = principal_components(vectors.directions(rows))
    figure = _new_figure()
    axes = figure.add_subplot()
    axes.scatter(points[:, 0], points[:, 1], s=12)
    fonts = _installed_fonts()
    for token, point in zip(tokens, points.tolist(), strict=True):
        # a dollar sign would start a formula
        axes.annotate(token.replace("$", r"\$"), point, xytext=(3, 3), textcoords="offset points", fontfamily=fonts)
    axes.set_xlabel(f"first principal component ({shares[0]:.0%} of the variance)")
    axes.set_ylabel(f"second principal component ({shares[1]:.0%})")
    return _saved(figure, path)


def plot_loss(losses: Iterable[float], path: str | os.PathLike[str] | None = None, per_epoch: int = 1) -> Figure:
    """Draw the loss of each epoch, from the first on, or of so many points in each; saved if `path` is given.

    ImportError without matplotlib.
    """
    values = [float(loss) for loss in losses]
    if not values:
        raise ValueError("plot_loss needs the loss of at least one epoch")
    figure = _new_figure()
    from matplotlib.ticker import MaxNLocator

    axes = figure.add_subplot()
    epochs = [i / per_epoch for i in range(1, len(values) + 1)]
    axes.plot(epochs, values, marker="o", markersize=3)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel("loss")
    return _saved(figure, path)


def principal_components(points: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The coordinates (N, 2) of points (N, d) along their two principal components, and the shares of variance.

    Each component points to where its largest weight is positive, so that pictures do not flip.
    """
    centred = points.astype(np.float64) - points.mean(axis=0, dtype=np.float64)
    _, strengths, components = np.linalg.svd(centred, full_matrices=False)
    largest = np.abs(components).argmax(axis=1)
    components *= np.where(components[np.arange(len(components)), largest] < 0, -1, 1)[:, None]
    coordinates = np.zeros((len(points), 2))
    shares = np.zeros(2)
    found = min(2, len(components))  # one, where vectors have a single dimension
    coordinates[:, :found] = centred @ components[:found].T
    variance = strengths**2
    if variance.sum() > 0:
        shares[:found] = variance[:found] / variance.sum()
    return coordinates, shares


def _new_figure() -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install metagrad[plot]") from error
    return Figure(figsize=(8, 6), layout="constrained")


def _installed_fonts() -> list[str]:
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return [font for font in _FONTS if font in installed]


def _saved(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    if path is not None:
        with written_beside(path) as beside:
            figure.savefig(beside, dpi=150, format=Path(path).suffix.removeprefix(".") or "png")
    return figure
