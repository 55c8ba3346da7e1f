"""The picture of a graph: what is on it, and what it says when there is none."""

import importlib.util
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from metagrad import Tensor, draw, nn

spec = importlib.util.spec_from_file_location("sgns", Path(__file__).parents[1] / "examples" / "sgns.py")
sgns = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sgns)


def leaf(values):
    return Tensor(np.asarray(values, np.float32), requires_grad=True)


def sgns_loss():
    model = sgns.SGNSModel(50, 8, padding_idx=0)
    rng = np.random.default_rng(0)
    words, contexts, negatives = (Tensor(rng.integers(0, 50, shape)) for shape in ((3,), (3, 4), (3, 4, 5)))
    return model(words, contexts, Tensor(np.ones((3, 4), bool)), negatives), model


def test_the_text_of_a_small_graph():
    x, y = leaf([[1.0, 2.0]]), Tensor([[3.0], [4.0]])
    out = (x * x @ y) * 2.0
    assert draw(out, {"x": x, "z": out}) == "\n".join([
        "digraph {",
        "  node [fontname=Helvetica fontsize=10]",
        "  edge [arrowsize=0.6]",
        '  n0 [shape=box label="x\\n1×2 float32"]',
        '  n1 [shape=ellipse label="Mul\\n1×2 float32"]',
        "  n0 -> n1",
        "  n0 -> n1",
        '  n2 [shape=ellipse label="MatMul\\n1×1 float32"]',
        "  n1 -> n2",
        '  n2_1 [shape=plaintext fontcolor=gray40 label="constant\\n2×1 float32"]',
        "  n2_1 -> n2 [color=gray70]",
        '  n3 [shape=ellipse penwidth=2 label="Mul = z\\n1×1 float32"]',
        "  n2 -> n3",
        '  n3_1 [shape=plaintext fontcolor=gray40 label="2.0"]',
        "  n3_1 -> n3 [color=gray70]",
        "}",
    ]) + "\n"  # fmt: skip


def test_the_sgns_model_shows_its_tables_by_name_and_each_node_once():
    loss, model = sgns_loss()
    text = draw(loss, model)
    assert text.count("w_embeddings.weight\\n50×8 float32") == text.count("c_embeddings.weight\\n50×8 float32") == 1
    assert text.count("shape=box") == 2 and text.count('"Embedding') == 3 and text.count('"LogSigmoid') == 2
    defined, used = set(re.findall(r"^  (\w+) \[", text, re.M)), set(re.findall(r"(\w+) ->|-> (\w+)", text))
    assert {name for pair in used for name in pair if name} <= defined
    assert draw(loss, model) == text


def test_a_deep_graph_is_drawn_without_recursion():
    x = leaf(0.0)
    y = x
    for _ in range(30_000):
        y = y + 1
    assert draw(y).count("Add") == 30_000


def test_names_may_hold_any_character():
    x = leaf(1.0)
    assert 'label="a\\"b\\\\c\\nnumber float32"' in draw(x * 2, {'a"b\\c': x})


def test_where_there_is_no_graph_or_it_is_gone_that_is_said():
    with pytest.raises(ValueError, match="this Tensor has no graph"):
        draw(Tensor([1.0]) * 2)
    loss = leaf([1.0]).exp().sum()
    loss.backward(retain_graph=True)
    assert "Exp" in draw(loss)
    loss.backward()
    with pytest.raises(RuntimeError, match="the graph was freed at Sum, by a backward: draw before it"):
        draw(loss)


def test_it_is_written_to_a_file(tmp_path, monkeypatch):
    loss, model = sgns_loss()
    text = draw(loss, model, tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text(encoding="utf-8") == text
    with pytest.raises(ValueError, match=r"is to end in .svg, .dot or .gv"):
        draw(loss, path=tmp_path / "graph.png")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        draw(loss, path=tmp_path / "none" / "graph.dot")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="an .svg needs Graphviz, whose program `dot` is not here"):
        draw(loss, path=tmp_path / "graph.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.dot"]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not here")
def test_graphviz_makes_a_picture_of_it(tmp_path):
    loss, model = sgns_loss()
    draw(loss, nn.ModuleDict({"model": model}), tmp_path / "graph.svg")
    assert "model.w_embeddings.weight" in (tmp_path / "graph.svg").read_text(encoding="utf-8")
