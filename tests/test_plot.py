"""Pictures: the components are the principal ones, figures are saved, and a missing matplotlib is named."""

import sys

import numpy as np
import pytest

from metagrad.word2vec.plot import plot_loss, plot_words, principal_components
from metagrad.word2vec.vectors import WordVectors


@pytest.fixture
def v():
    return WordVectors(["a", "b", "观音", "$x"], np.random.default_rng(0).normal(size=(4, 5)))


def test_principal_components_hold_the_greatest_variance():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 6)) * [5, 1, 0.1, 3, 0.2, 1] + 7
    coordinates, shares = principal_components(points)
    values = np.linalg.eigvalsh(np.cov(points.T))[::-1]
    assert np.allclose(coordinates.var(axis=0, ddof=1), values[:2])
    assert np.allclose(shares, values[:2] / values.sum())
    assert np.allclose(np.abs(coordinates[:, 0]), np.abs(points[:, 0] - points[:, 0].mean()), atol=2)


def test_principal_components_of_little():
    assert principal_components(np.array([[1.0], [3.0]]))[0].tolist() == [[-1, 0], [1, 0]]
    assert principal_components(np.ones((3, 4)))[1].tolist() == [0, 0]


def test_pictures_are_saved(tmp_path, v):
    pytest.importorskip("matplotlib")
    figure = plot_words(v, ["a", "b", "$x"], tmp_path / "words.png")
    assert [text.get_text() for text in figure.axes[0].texts] == ["a", "b", r"\$x"]
    plot_loss([3, 2.5, 2.4], tmp_path / "loss.png")
    for name in ("words.png", "loss.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused(v):
    with pytest.raises(KeyError, match="'nowhere'"):
        plot_words(v, ["a", "nowhere"])
    with pytest.raises(ValueError, match="at least two tokens"):
        plot_words(v, ["a"])
    with pytest.raises(TypeError, match="split it first"):
        plot_words(v, "a b")
    with pytest.raises(ValueError, match="at least one epoch"):
        plot_loss([])


def test_without_matplotlib_one_sentence_says_what_to_install(v, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (lambda: plot_words(v, ["a", "b"]), lambda: plot_loss([1.0])):
        with pytest.raises(ImportError, match=r"drawing needs matplotlib: pip install metagrad\[plot\]"):
            draw()
