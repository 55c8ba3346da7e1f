"""The embedded text and the table of texts to download."""

from __future__ import annotations

import hashlib
import http.server
import io
import itertools
import re
import sysconfig
import threading
import zipfile
from pathlib import Path

import pytest

from metagrad.word2vec import texts
from metagrad.word2vec.texts import TEXTS, Text, embedded_text, load_text


def words(document):
    return [" ".join(sentence) for sentence in texts._sentences(document)]


# ── rules ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_prose_becomes_sentences_in_lower_case():
    document = """Return the first matching header. It doesn't raise
        an exception if ``name`` is :class:`missing`; a default is
        returned (or None).

        Read-only views are “cheap”."""
    assert words(document) == [
        "return the first matching header",
        "it doesn't raise an exception if name is missing",
        "a default is returned or none",
        "read only views are cheap",
    ]


def test_what_is_no_prose_is_left_out():
    document = """spam(eggs, ham=None) -> list

        The only sentence of this document.

        Parameters
        ----------
        axis : int, optional
            The axis along which it is computed.
        :param x: the thing

        Example of a block::

            for the thing in the list of all things

              and what is indented in it as well

        | the a | table of |
        name      the value      of a table

        >>> print("the output is a sentence")
        the output is a sentence

        .. versionadded:: for a long time now
        See https://example.org/the/page
        """
    assert words(document) == [
        "the only sentence of this document",
        "the axis along which it is computed",
        "example of a block",
    ]


def test_a_sentence_with_too_much_code_in_it_is_left_out():
    assert words("Call os.path.join(a, b) and x[0] == 3 to f(x) in the y[1] of z[2].") == []
    assert words("Use os.fsencode() and not str.encode to convert the name.") == ["use and not to convert the name"]


def test_list_items_are_sentences_of_their_own():
    assert words("- the first of the items\n- the second of the items") == [
        "the first of the items",
        "the second of the items",
    ]


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A small library in the place of Python's, and none in that of NumPy."""
    files = {
        "b.py": '"""The module of the second file."""\n# A comment about the next\n# of the functions.\n'
        'def f():\n    """The function of a module."""\n',
        "a.py": '"""The module of the first file."""\nclass A:\n    """The module of the first file."""\n',
        "pydoc_data/topics.py": "raise SystemExit\ntopics = {'with': 'The statement is a help topic.\\n'}\n",
        "numpy_like.py": "add_newdoc('numpy', 'f', ('g', 'The docstring of a compiled function.'))\n",
        "broken.py": '"""The file is not Python."""\nprint "x"\n',
        "test/t.py": '"""The text of a test is skipped."""\n',
        "site-packages/p.py": '"""The text of another package is skipped."""\n',
    }
    for name, content in files.items():
        path = tmp_path / "library" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "numpy").mkdir()
    monkeypatch.setattr(texts.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path / "library")})
    monkeypatch.setattr(texts.np, "__file__", str(tmp_path / "numpy" / "__init__.py"))
    return tmp_path / "library"


def test_the_sources_are_read_in_the_order_of_their_paths_and_never_run(library, tmp_path):
    sentences = embedded_text(tmp_path / "cache")
    assert [" ".join(sentence) for sentence in sentences] == [
        "the module of the first file",
        "the module of the second file",
        "the function of a module",
        "a comment about the next of the functions",
        "the docstring of a compiled function",
        "the statement is a help topic",
    ]


def test_the_text_is_made_once_and_anew_for_another_version(library, tmp_path, monkeypatch):
    first = embedded_text(tmp_path / "cache")
    (cached,) = (tmp_path / "cache").iterdir()
    monkeypatch.setattr(texts, "_unique_sentences", None)
    assert list(embedded_text(tmp_path / "cache")) == list(first)
    monkeypatch.undo()
    monkeypatch.setattr(texts.sysconfig, "get_paths", lambda: {"stdlib": str(library)})
    monkeypatch.setattr(texts.np, "__file__", str(tmp_path / "numpy" / "__init__.py"))
    (library / "a.py").write_text('"""The module of another version."""')
    assert list(embedded_text(tmp_path / "cache"))[0] == ["the", "module", "of", "another", "version"]
    assert len(list((tmp_path / "cache").iterdir())) == 2 and cached.exists()


def test_the_cache_folder_is_that_of_the_downloads(library, tmp_path, monkeypatch):
    monkeypatch.setenv("METAGRAD_HOME", str(tmp_path / "home"))
    (path,) = embedded_text().paths
    assert path.parent == tmp_path / "home"


def test_a_python_without_source_files_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(texts.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path / "python311.zip")})
    with pytest.raises(FileNotFoundError, match="python311.zip is no folder"):
        embedded_text(tmp_path)
    monkeypatch.setattr(texts.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(FileNotFoundError, match="holds none"):
        embedded_text(tmp_path)


def test_the_real_library_gives_english():
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [library / name for name in ("argparse.py", "collections/__init__.py", "pydoc_data/topics.py", "socket.py")]
    sentences = list(texts._unique_sentences(path for path in files if path.exists()))
    assert len(sentences) > 500
    tokens = list(itertools.chain.from_iterable(sentences))
    assert tokens.count("the") > 0.04 * len(tokens)
    assert all(re.fullmatch(r"[a-z][a-z0-9]*('[a-z]+)?|[0-9]+[a-z][a-z0-9]*", token) for token in tokens)
    assert len({tuple(sentence) for sentence in sentences}) == len(sentences)


# ── texts to download ───────────────────────────────────────────────────────────────────────────────────────


def test_every_sum_is_a_sha256_and_every_name_its_key():
    for name, text in TEXTS.items():
        assert text.name == name
        assert re.fullmatch("[0-9a-f]{64}", text.sha256)
        assert text.size > 1_000_000 and text.licence and text.description
        assert (text.member is not None) == text.url.endswith(".zip")


def test_the_table_in_the_readme_is_the_one_in_the_code():
    readme = (Path(__file__).parents[1] / "data" / "README.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in readme.splitlines() if line.startswith("| `")
    ]
    expected = [[t.name, t.url, t.sha256, f"{t.size:,}", t.licence, t.description] for t in TEXTS.values()]
    assert rows == expected


def test_an_unknown_text_names_the_known_ones():
    with pytest.raises(ValueError, match="no text is called 'text9'; there are text8, ptb, wikitext-2, wikitext-103"):
        load_text("text9")


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *arguments):
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{running.server_port}/"
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.mark.parametrize("member", [None, "inside/text"])
def test_a_text_is_fetched_checked_and_unpacked(tmp_path, server, monkeypatch, member):
    folder, address = server
    content = b"a b\nc\n"
    if member:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(member, content)
        served = packed.getvalue()
    else:
        served = content
    (folder / "file").write_bytes(served)
    digest = hashlib.sha256(served).hexdigest()
    text = Text("small", address + "file", digest, len(served), "none", "a small text", member)
    monkeypatch.setitem(TEXTS, "small", text)
    path = load_text("small", tmp_path / "cache", progress=False)
    assert path.read_bytes() == content
    monkeypatch.setitem(TEXTS, "small", Text("small", address + "file", "0" * 64, len(served), "none", "", member))
    with pytest.raises(ValueError, match="sha256"):
        load_text("small", tmp_path / "another", progress=False)
