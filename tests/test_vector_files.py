"""Vector files: what is written reads back bit for bit, and what others write is read or refused with its place."""

import gzip
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from metagrad.word2vec import vector_files
from metagrad.word2vec.vectors import WordVectors, load_pretrained, save_pretrained

NAMES = ["v.vec", "v.txt", "v.glove", "v.bin", "v.npz", "v.npy", "v.vec.gz", "v.glove.gz", "v.bin.gz"]
HARD = np.array(
    [[1e-12, 123456.789, -0.0], [0.1, 3.4028235e38, 1e-45], [16777216, 1 / 3, -1e-5], [999999.94, 1e6, 1e-14]],
    dtype=np.float32,
)


def bits(vectors):
    return np.asarray(vectors).view(np.uint32)


def written(tmp_path, content, name="v.vec"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def loaded(tmp_path, content, name="v.vec", **options):
    v = WordVectors.load(written(tmp_path, content, name), **options)
    return list(v.tokens), v.vectors.tolist()


def records(*tokens, dim=2, newline=b""):
    """Binary records whose values are 0, 1, 2, …"""
    rows = np.arange(len(tokens) * dim, dtype="<f4").reshape(-1, dim)
    return b"".join(token + b" " + row.tobytes() + newline for token, row in zip(tokens, rows))


# ── There and back ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_back_the_same_bits_and_tokens(tmp_path, name):
    v = WordVectors(["the", "观音", "é", "\ufeffx\u00a0y\u2028\x85"], HARD)
    v.save(tmp_path / name)
    back = WordVectors.load(tmp_path / name)
    assert back.tokens == v.tokens
    assert np.array_equal(bits(back.vectors), bits(HARD))


@pytest.mark.parametrize("name", ["v.npz", "v.npy"])
def test_array_formats_keep_counts_and_any_token(tmp_path, name):
    v = WordVectors(["new york", "", "a\nb"], np.eye(3), counts=[2**40, 5, 0])
    v.save(tmp_path / name)
    back = WordVectors.load(tmp_path / name)
    assert back.tokens == v.tokens and back.counts.tolist() == [2**40, 5, 0]


def test_text_holds_the_shortest_decimals_of_any_float32(tmp_path):
    rng = np.random.default_rng(0)
    random_bits = rng.integers(0, 2**32, (200, 50), dtype=np.uint32).view(np.float32)
    usual = rng.normal(scale=0.3, size=(200, 50)).astype(np.float32)
    table = np.where(np.isfinite(random_bits), random_bits, 0)
    table[::2] = usual[::2]
    lines = list(vector_files.rows_as_text(table))
    read = np.array(" ".join(lines).split(), dtype=np.float64).astype(np.float32).reshape(table.shape)
    assert np.array_equal(bits(read), bits(table))
    for value, text in zip(usual[::2].ravel(), " ".join(lines[::2]).split()):
        assert float(text) == float(str(value))  # NumPy prints the shortest digits, too
    assert next(vector_files.rows_as_text(np.array([[0.1, 5, -0.0, 1e-5]], np.float32))) == "0.1 5 -0 1e-05"


def test_text_has_a_header_and_glove_has_none(tmp_path):
    v = WordVectors(["a", "b"], [[0.5, -2], [1, 0]])
    v.save(tmp_path / "v.vec")
    v.save(tmp_path / "v.glove")
    assert (tmp_path / "v.vec").read_bytes() == b"2 2\na 0.5 -2\nb 1 0\n"
    assert (tmp_path / "v.glove").read_bytes() == b"a 0.5 -2\nb 1 0\n"


def test_compressed_files_hold_neither_name_nor_time(tmp_path):
    v = WordVectors(["a"], [[1.0]])
    v.save(tmp_path / "one.vec.gz")
    v.save(tmp_path / "two.vec.gz")
    assert (tmp_path / "one.vec.gz").read_bytes() == (tmp_path / "two.vec.gz").read_bytes()
    assert (tmp_path / "one.vec.gz").read_bytes()[4:8] == bytes(4)


def test_save_pretrained_and_load_pretrained(tmp_path):
    class OnDevice:
        def numpy(self):
            return HARD

    save_pretrained(iter(["a", "b", "c", "d"]), OnDevice(), tmp_path / "sgns.vec")
    tokens, table = load_pretrained(tmp_path / "sgns.vec")
    assert tokens == ["a", "b", "c", "d"] and np.array_equal(bits(table), bits(HARD))
    table += 1  # the caller's own


def test_locale_does_not_matter(tmp_path):
    code = (
        "import sys; from metagrad.word2vec.vectors import WordVectors as W\n"
        "for name in ['v.vec', 'v.bin', 'v.npz', 'v.npy', 'v.glove.gz']:\n"
        "    W(['\\u89c2\\u97f3', '\\xe9'], [[1, 2], [3, 4]]).save(name)\n"
        "    assert W.load(name).tokens == ('\\u89c2\\u97f3', '\\xe9'), name\n"
        "W.load('v.vec').save_projector('p')\n"
    )
    root = str(Path(__file__).parent.parent)
    env = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONPATH": root, "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "v.vec").read_bytes() == "2 2\n观音 1 2\né 3 4\n".encode()
    assert (tmp_path / "p" / "metadata.tsv").read_bytes() == "观音\né\n".encode()


def test_memory_mapped_table_stays_on_disk(tmp_path):
    v = WordVectors(["a", "b"], [[3, 4], [0, 1]], counts=[2, 1])
    v.save(tmp_path / "v.npy")
    mapped = WordVectors.load(tmp_path / "v.npy", mmap=True)
    assert isinstance(mapped.vectors, np.memmap) or isinstance(mapped.vectors.base, np.memmap)
    assert mapped.tokens == v.tokens and mapped.counts.tolist() == [2, 1]
    assert mapped.most_similar("a") == v.most_similar("a")
    assert np.array_equal(np.load(tmp_path / "v.npy", mmap_mode="r"), v.vectors)  # any NumPy program maps it


def test_only_npy_is_memory_mapped(tmp_path):
    with pytest.raises(ValueError, match=r"only an \.npy file can be memory-mapped, not npz"):
        WordVectors.load(tmp_path / "v.npz", mmap=True)


# ── What cannot be read back is not written ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["v.vec", "v.glove", "v.bin", "v.vec.gz"])
@pytest.mark.parametrize("token", ["new york", "a\tb", "a\nb", "a\rb", ""])
def test_tokens_that_could_not_be_read_back_are_refused_before_a_byte(tmp_path, name, token):
    with pytest.raises(ValueError, match=r"\(row 1\) is empty or holds white space"):
        WordVectors(["ok", token], np.eye(2)).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["v.vec", "v.bin", "v.npz", "v.npy"])
def test_nan_and_infinity_are_refused_unless_asked_for(tmp_path, name):
    v = WordVectors(["a", "bad"], [[1, 2], [0, np.nan]])
    with pytest.raises(ValueError, match=r"'bad' \(row 1\) holds NaN or infinity"):
        v.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    v.save(tmp_path / name, allow_nonfinite=True)
    assert np.array_equal(WordVectors.load(tmp_path / name).vectors, v.vectors, equal_nan=True)


def test_lone_surrogates_and_unreadable_glove_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\(row 0\) cannot be written as UTF-8"):
        WordVectors(["\udce9"], [[1]]).save(tmp_path / "v.npz")
    with pytest.raises(ValueError, match="byte-order mark in its first token"):
        WordVectors(["\ufeffa"], [[1]]).save(tmp_path / "v.glove")
    with pytest.raises(ValueError, match="no vectors"):
        WordVectors([], np.zeros((0, 3))).save(tmp_path / "v.glove")


def test_unknown_endings_formats_and_places_are_refused(tmp_path):
    v = WordVectors(["a"], [[1]])
    with pytest.raises(ValueError, match=r"names no format .*give format="):
        v.save(tmp_path / "vectors")
    with pytest.raises(ValueError, match="format must be one of text, glove"):
        v.save(tmp_path / "v.vec", format="word2vec")
    with pytest.raises(ValueError, match=r"leave off \.gz"):
        v.save(tmp_path / "v.npz.gz")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        v.save(tmp_path / "nowhere" / "v.vec")
    with pytest.raises(ValueError, match="is not a file"):
        v.save(os.devnull, format="text")
    v.save(tmp_path / "vectors", format="binary")
    assert WordVectors.load(tmp_path / "vectors", format="binary").tokens == ("a",)


def test_a_save_killed_halfway_leaves_the_old_file(tmp_path):
    old = WordVectors(["old"], [[1.0, 2.0]])
    old.save(tmp_path / "v.vec")
    code = (
        "import os, signal, numpy as np\n"
        "from metagrad.word2vec import vector_files as f\n"
        "rounded = f._rounded\n"
        "def killed(values):\n"
        "    if values[0, 0]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return rounded(values)\n"
        "f._rounded = killed\n"
        "f.write('v.vec', list(map(str, range(9000))), np.arange(9000, dtype='f4')[:, None])\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env).returncode != 0
    assert len(list(tmp_path.iterdir())) == 2  # the half-written one stands beside it
    assert WordVectors.load(tmp_path / "v.vec").tokens == ("old",)


def test_a_save_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def fails(values):
        raise OSError("disk full")

    monkeypatch.setattr(vector_files, "_rounded", fails)
    with pytest.raises(OSError, match="disk full"):
        WordVectors(["a"], [[1]]).save(tmp_path / "v.vec")
    assert list(tmp_path.iterdir()) == []


# ── What others write: text ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content",
    [
        "2 2\nthe .1 .2\nof 3 4\n",
        "the .1 .2\nof 3 4\n",
        "2 2\r\nthe .1 .2\r\nof 3 4\r\n",
        "2 2\nthe .1 .2 \nof 3 4 \n",  # the C tool and fastText end lines with a space
        "2 2\nthe .1 .2\nof 3 4",
        "\ufeffthe .1 .2\nof 3 4\n",
        "\ufeff2 2\nthe .1 .2\nof 3 4\n",
        "the\t.1\t.2\nof\t3\t4\n",
        "2\t2\nthe .1  .2\nof  3 4\n\n\n",
    ],
)
def test_text_of_other_tools(tmp_path, content):
    tokens, vectors = loaded(tmp_path, content)
    assert tokens == ["the", "of"]
    assert np.allclose(vectors, [[0.1, 0.2], [3, 4]])


def test_last_fields_are_the_vector_and_the_rest_is_the_token(tmp_path):
    content = "the .1 .2\nnew york .3 .4\n. . . .5 .6\narea 51 .7 .8\n"
    tokens, vectors = loaded(tmp_path, content)
    assert tokens == ["the", "new york", ". . .", "area 51"]
    assert np.allclose(vectors, [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])


def test_a_number_as_first_token_needs_no_header(tmp_path):
    assert loaded(tmp_path, "7 1 2\n8 3 4\n") == (["7", "8"], [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match='promises 7 vectors, the file holds 1 .*format="glove"'):
        loaded(tmp_path, "7 1\n8 3\n")
    assert loaded(tmp_path, "7 1\n8 3\n", format="glove") == (["7", "8"], [[1], [3]])


def test_header_on_a_file_read_as_headerless_names_the_line(tmp_path):
    with pytest.raises(ValueError, match=r"v\.vec, line 2: 4 fields, where a token and 1 values are due by line 1"):
        loaded(tmp_path, "2 3\nthe .1 .2 .3\nof .1 .2 .3\n", format="glove")


@pytest.mark.parametrize(
    "content, message",
    [
        ("3 2\na 1 2\nb 3 4\n", "the header promises 3 vectors, the file holds 2"),
        ("1 2\na 1 2\nb 3 4\n", "the header promises 1 vectors, the file holds 2"),
        ("2 3\na 1 2 3\nb 1 2\n", "line 3: 3 fields, where a token and 3 values are due"),
        ("a 1 2\nb 0.5 0.25 1.5\n", "line 2: 4 fields, where a token and 2 values are due"),
        ("a 1 2\n\nb 1 two\n", "line 3: b'two' is not a number"),
        ("a 1 2\n 1 2\n", "line 2: 2 fields"),
        ("", "line 1: empty"),
        ("\na 1 2\n", "line 1: empty"),
        ("lonely\n", "line 1: vectors without values"),
        ("5 0\n", "line 1: vectors without values"),
    ],
)
def test_bad_text_names_its_place(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        loaded(tmp_path, content)


def test_a_bad_line_far_into_the_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "_BLOCK_BYTES", 64)
    lines = [f"w{i} 1 2" for i in range(1000)]
    lines[700] = "w700 1"
    with pytest.raises(ValueError, match="line 702: 2 fields"):
        loaded(tmp_path, "1000 2\n" + "\n".join(lines))


def test_text_read_in_blocks_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "_BLOCK_BYTES", 50)
    v = WordVectors([f"w{i}" for i in range(500)], np.arange(1000).reshape(500, 2))
    v.save(tmp_path / "v.vec")
    v.save(tmp_path / "v.glove")
    for name in ("v.vec", "v.glove"):
        back = WordVectors.load(tmp_path / name)
        assert back.tokens == v.tokens and np.array_equal(back.vectors, v.vectors)


@pytest.mark.parametrize("name", ["v.vec", "v.bin"])
def test_tokens_that_are_not_utf8_name_their_place_or_are_replaced(tmp_path, name):
    if name == "v.vec":
        content, place = b"2 2\nok 0 1\n\xe9t\xe9 2 3\n", "line 3"
    else:
        content, place = b"2 2\n" + records(b"ok", b"\xe9t\xe9"), "record 2"
    with pytest.raises(ValueError, match=rf'{place}: the token .* is not UTF-8 .*errors="replace"'):
        loaded(tmp_path, content, name)
    assert loaded(tmp_path, content, name, errors="replace") == (["ok", "\ufffdt\ufffd"], [[0, 1], [2, 3]])
    with pytest.raises(ValueError, match='errors must be "strict" or "replace"'):
        loaded(tmp_path, content, name, errors="ignore")


@pytest.mark.parametrize("name", ["v.vec", "v.bin"])
def test_of_repeated_tokens_the_first_is_kept_with_one_warning(tmp_path, name):
    text = b"4 2\na 0 1\nb 2 3\na 4 5\na 6 7\n"
    content = text if name == "v.vec" else b"4 2\n" + records(b"a", b"b", b"a", b"a")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert loaded(tmp_path, content, name) == (["a", "b"], [[0, 1], [2, 3]])
    assert len(caught) == 1 and "2 of 4 rows repeat a token, such as 'a'" in str(caught[0].message)
    assert caught[0].filename == __file__


# ── What others write: binary, gzip, arrays ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("newline", [b"", b"\n"])
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_binary_with_and_without_newlines_in_blocks_of_any_size(tmp_path, monkeypatch, newline, block):
    monkeypatch.setattr(vector_files, "_BLOCK_BYTES", block)
    content = b"3 2\n" + records(b"the", "观音".encode(), b"c", newline=newline)
    assert loaded(tmp_path, content, "v.bin") == (["the", "观音", "c"], [[0, 1], [2, 3], [4, 5]])


@pytest.mark.parametrize(
    "content, message",
    [
        (b"3 2\n" + records(b"a", b"b")[:-1], "ends within record 2; the header promises 3 vectors .* holds 1"),
        (b"3 2\n" + records(b"a", b"b"), "ends within record 3; the header promises 3 vectors .* holds 2"),
        (b"1 2\n" + records(b"a", b"b"), "the header promises 1 vectors, but more data follows"),
        (b"2 2\n" + records(b"a", b""), "record 2: the token is empty"),
        (b"a 1 2\n", "starts with a line of its count and dimension, this one with b'a 1 2"),
        (b"2 0\n", "starts with a line of its count and dimension"),
        (b"2 1\n" + b"x" * 70_000, "record 1: no space after its token"),
        (b"", "starts with a line of its count and dimension"),
    ],
)
def test_bad_binary_names_its_place(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        loaded(tmp_path, content, "v.bin")


def test_a_header_that_promises_the_moon_takes_no_memory(tmp_path):
    with pytest.raises(ValueError, match="promises 999999999999 vectors"):
        loaded(tmp_path, "999999999999 300\n" + "a" + " 1" * 300 + "\n")
    with pytest.raises(ValueError, match="ends within record 1"):
        loaded(tmp_path, b"999999999999 2\na 123", "v.bin")


def test_gzip_is_known_by_its_content_and_its_damage_named(tmp_path):
    whole = gzip.compress(b"2 2\na 1 2\nb 3 4\n")
    assert loaded(tmp_path, whole, "v.vec") == (["a", "b"], [[1, 2], [3, 4]])
    for damaged in (whole[:-9], whole[:12] + b"\xff\xff" + whole[14:]):
        with pytest.raises(ValueError, match="gzip file is damaged or cut short"):
            loaded(tmp_path, damaged, "v.vec.gz")


def test_array_files_without_tokens_or_with_code_or_damage_are_refused(tmp_path):
    np.save(tmp_path / "bare.npy", np.eye(2))
    np.savez(tmp_path / "bare.npz", vectors=np.eye(2))
    for name in ("bare.npy", "bare.npz"):
        with pytest.raises(ValueError, match="holds no array of tokens"):
            WordVectors.load(tmp_path / name)
    np.save(tmp_path / "code.npy", np.array([print], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "code.npz", vectors=np.array([print], dtype=object), allow_pickle=True)
    for name in ("code.npy", "code.npz"):
        with pytest.raises(ValueError, match="damaged or no .* file of arrays"):
            WordVectors.load(tmp_path / name)
    WordVectors(["a", "b"], np.eye(2)).save(tmp_path / "v.npy")
    whole = (tmp_path / "v.npy").read_bytes()
    for name, content in (("cut.npy", whole[:140]), ("cut.npz", b"PK\x03\x04"), ("text.npy", b"a 1 2\n")):
        with pytest.raises(ValueError, match="damaged or no"):
            WordVectors.load(written(tmp_path, content, name))


def test_array_files_whose_parts_do_not_fit_are_refused(tmp_path):
    parts = {
        "vectors": np.eye(2, dtype=np.float32),
        "tokens": np.frombuffer(b"ab", np.uint8),
        "offsets": np.array([0, 1, 2]),
    }
    for key, wrong in [("offsets", np.array([0, 1])), ("offsets", np.array([0, 9, 2])), ("counts", np.array([1]))]:
        np.savez(tmp_path / "v.npz", **{**parts, key: wrong})
        with pytest.raises(ValueError, match="do not fit each other"):
            WordVectors.load(tmp_path / "v.npz")


# ── Interchange with gensim ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["v.vec", "v.bin", "v.glove", "v.vec.gz"])
def test_gensim_reads_ours_and_we_read_gensims_bit_for_bit(tmp_path, name):
    KeyedVectors = pytest.importorskip("gensim.models").KeyedVectors
    tokens = ["the", "观音", "é", "x"]
    path, is_binary, no_header = str(tmp_path / name), ".bin" in name, ".glove" in name
    WordVectors(tokens, HARD).save(path)
    theirs = KeyedVectors.load_word2vec_format(path, binary=is_binary, no_header=no_header)
    assert theirs.index_to_key == tokens
    assert np.array_equal(bits(theirs.vectors), bits(HARD))
    theirs.save_word2vec_format(path, binary=is_binary, write_header=not no_header)
    ours = WordVectors.load(path)
    assert list(ours.tokens) == tokens
    assert np.array_equal(bits(ours.vectors), bits(HARD))
