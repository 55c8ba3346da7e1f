"""A picture of a graph: which operations made a Tensor, from which leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .files import check_target, written_beside
from .function import Function, Leaf
from .graph import Node
from .tensor import Tensor


def draw(output: Tensor, names: Any = None, path: str | os.PathLike[str] | None = None) -> str:
    """The graph that made `output`, as Graphviz DOT text: values flow down, from leaves to the output.

    Boxes are leaves that require gradients, ellipses operations; both show shape and dtype. Grey are inputs that
    take no gradient, as far as they were kept for backward.
    names: a module, whose parameters get their names, or a dict of Tensors by name.
    path: also write the text (.dot, .gv) or, where Graphviz's program `dot` is installed, a picture (.svg).
    Raises RuntimeError for a graph that backward has freed: draw before it.
    """
    if output.node is None:
        raise ValueError("draw: this Tensor has no graph, nothing it was computed from requires a gradient")
    kind = None if path is None else Path(path).suffix
    if kind not in (None, ".dot", ".gv", ".svg"):
        raise ValueError(f"draw: {os.fspath(path or '')!r} is to end in .svg, .dot or .gv")
    program = shutil.which("dot")
    if kind == ".svg" and program is None:
        raise RuntimeError("draw: an .svg needs Graphviz, whose program `dot` is not here: install it, or write .dot")
    text = _dot(output.node, _names_of(names))
    if path is not None:
        check_target(path)
        made = text.encode()
        if kind == ".svg":
            made = subprocess.run([str(program), "-Tsvg"], input=made, capture_output=True, check=True).stdout
        with written_beside(path) as beside:
            beside.write_bytes(made)
    return text


def _names_of(names: Any) -> dict[Node, str]:
    if names is None:
        return {}
    named = names.named_parameters() if hasattr(names, "named_parameters") else names.items()
    return {tensor.node: name for name, tensor in named if tensor.node is not None}


def _dot(output: Node, names: dict[Node, str]) -> str:
    """Node by node in the order in which they were made: the same graph gives the same text."""
    order = {node: f"n{k}" for k, node in enumerate(sorted(_below(output), key=lambda node: node.serial))}
    lines = ["digraph {", "  node [fontname=Helvetica fontsize=10]", "  edge [arrowsize=0.6]"]
    for node, name in order.items():
        style = "shape=box" if isinstance(node, Leaf) else "shape=ellipse"
        style += " penwidth=2" if node is output else ""
        title = names.get(node, "leaf") if isinstance(node, Leaf) else type(node).__name__
        title += f" = {names[node]}" if node in names and not isinstance(node, Leaf) else ""
        lines.append(f"  {name} [{style} label={_label(title, node)}]")
        for k, edge in enumerate(node.edges or ()):
            if edge is not None:
                lines.append(f"  {order[edge]} -> {name}")
            elif isinstance(node, Function) and node.saves_inputs:
                value = node.saved[k]
                label = _label("constant", value) if hasattr(value, "shape") else f'"{value}"'
                lines.append(f"  {name}_{k} [shape=plaintext fontcolor=gray40 label={label}]")
                lines.append(f"  {name}_{k} -> {name} [color=gray70]")
    return "\n".join([*lines, "}"]) + "\n"


def _below(output: Node) -> list[Node]:
    """The nodes that lead to an output, the output first."""
    found, waiting = {output: None}, [output]
    while waiting:
        node = waiting.pop()
        if node.edges is None:
            raise RuntimeError(
                f"draw: the graph was freed at {type(node).__name__}, by a backward: draw before it, or keep the graph "
                "with retain_graph=True"
            )
        for edge in node.edges:
            if edge is not None and edge not in found:
                found[edge] = None
                waiting.append(edge)
    return list(found)


def _label(title: str, value: Any) -> str:
    """DOT's quoted string: a title, and shape and dtype below it."""
    shape = "×".join(map(str, value.shape)) or "number"
    title = title.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{title}\\n{shape} {value.dtype}"'
