"""Reading text: what separates words and sentences, compressed files, memory and folders, and bad input."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys

import numpy as np
import pytest

from metagrad.word2vec import corpus as module
from metagrad.word2vec.corpus import Corpus, Sentences, as_sentences
from metagrad.word2vec.vocabulary import Vocabulary


def text_file(folder, content, name="text.txt"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def decoded(corpus):
    return [corpus.vocabulary.decode(sentence) for sentence in corpus]


# ── sentences ───────────────────────────────────────────────────────────────────────────────────────────────


def test_empty_lines_are_no_sentences_and_there_is_no_empty_word(tmp_path):
    sentences = Sentences(text_file(tmp_path, "a b\n\n\nc\n   \n"))
    assert list(sentences) == [["a", "b"], ["c"]]
    assert list(sentences) == [["a", "b"], ["c"]]  # a second loop begins anew


def test_only_space_tab_and_line_break_separate(tmp_path):
    odd = "x\u00a0y p\u3000q v\u000bw f\u000cg n\u0085m l\u2028s u\u001cv"
    content = f"{odd}\tz  z\r\nlast line\rof old Macs"
    expected = [odd.split(" ") + ["z", "z"], ["last", "line"], ["of", "old", "Macs"]]
    path = text_file(tmp_path, content)
    assert list(Sentences(path)) == expected
    assert decoded(Corpus.build(path)) == expected


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
def test_where_the_file_is_cut_for_reading_does_not_matter(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(module, "_PIECE", piece)
    content = "\ufeff观音 é\r\n\r\n  a\tb  \nccc\r\nd"
    expected = [["观音", "é"], ["a", "b"], ["ccc"], ["d"]]
    path = text_file(tmp_path, content)
    assert list(Sentences(path)) == expected
    assert decoded(Corpus.build(path)) == expected


@pytest.mark.parametrize(("ending", "packer"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_compressed_files_are_unpacked_on_the_way(tmp_path, ending, packer):
    path = text_file(tmp_path, packer.compress("a 观音\nb\n".encode()), f"text.txt{ending}")
    assert list(Sentences(path)) == [["a", "观音"], ["b"]]
    assert decoded(Corpus.build(path)) == [["a", "观音"], ["b"]]
    whole = packer.compress(os.urandom(1000).hex().encode())
    broken = text_file(tmp_path, whole[: len(whole) // 2], f"broken{ending}")
    with pytest.raises(ValueError, match="is damaged or is not what its ending says"):
        list(Sentences(broken))
    plain = text_file(tmp_path, "plain text, not packed at all", f"plain{ending}")
    with pytest.raises(ValueError, match="is damaged or is not what its ending says"):
        Corpus.build(plain)


def test_several_files_are_one_text_and_a_missing_last_line_break_joins_nothing(tmp_path):
    paths = [text_file(tmp_path, "\ufeffa b", "1"), text_file(tmp_path, "\ufeffc\n", "2")]
    assert list(Sentences(paths)) == [["a", "b"], ["c"]]
    assert decoded(Corpus.build(Sentences(paths))) == [["a", "b"], ["c"]]


def test_a_wrong_encoding_names_file_and_line(tmp_path, monkeypatch):
    path = text_file(tmp_path, b"good\n" * 50 + b"caf\xe9 latin\n")
    for piece in (16, 1 << 18):
        monkeypatch.setattr(module, "_PIECE", piece)
        with pytest.raises(ValueError, match=r"text\.txt, line 51: not UTF-8"):
            list(Sentences(path))
        with pytest.raises(ValueError, match=r"text\.txt, line 51: not UTF-8"):
            Corpus.build(path)


def test_text_is_utf8_whatever_the_locale(tmp_path):
    path = text_file(tmp_path, "\ufeff观音 é\n")
    program = (
        "import sys; from metagrad.word2vec import Corpus, Sentences\n"
        "assert list(Sentences(sys.argv[1])) == [['\\u89c2\\u97f3', '\\xe9']]\n"
        "c = Corpus.build(sys.argv[1], folder=sys.argv[2])\n"
        "assert c.vocabulary.tokens == ('\\u89c2\\u97f3', '\\xe9'), c.vocabulary.tokens"
    )
    environment = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    run = subprocess.run(
        [sys.executable, "-c", program, path, tmp_path / "corpus"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_a_very_long_line_is_handed_out_in_parts_but_stays_one_sentence_of_a_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PIECE", 1000)
    words = [f"w{i}" for i in range(25_000)]
    path = text_file(tmp_path, " ".join(words) + "\nshort\n")
    parts = list(Sentences(path))
    assert [len(part) for part in parts] == [10_000, 10_000, 5_000, 1]
    assert sum(parts, []) == [*words, "short"]
    assert np.diff(Corpus.build(path).offsets).tolist() == [25_000, 1]


def test_a_file_without_any_space_is_refused_instead_of_read_as_one_word(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LONGEST_TOKEN", 500)
    monkeypatch.setattr(module, "_PIECE", 100)
    with pytest.raises(ValueError, match="words must be separated by spaces"):
        Corpus.build(text_file(tmp_path, "x" * 1000))


def test_a_path_that_is_no_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"'hello world' does not exist.*\[\['hello', 'world'\]\]"):
        as_sentences("hello world")
    with pytest.raises(FileNotFoundError, match="is no regular file"):
        Sentences(tmp_path)
    with pytest.raises(ValueError, match="at least one file"):
        Sentences([])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((line.split() for line in ["a b"]), "a generator can be read only once"),
        (iter([["a"]]), "can be read only once"),
        (map(str.split, ["a b"]), "a map can be read only once"),
        ({"a": 1}, "got a dict"),
        (b"a b", "got a bytes"),
        (7, "got a int"),
        (["hello world"], r"give \['hello', 'world'\]"),
        (["a", "b"], "a list of sentences, not one sentence"),
    ],
)
def test_what_cannot_be_a_text_is_refused_with_advice(source, message):
    with pytest.raises(TypeError, match=message):
        as_sentences(source)


def test_token_lists_and_objects_that_begin_anew_are_taken_as_they_are():
    class Lines:
        def __iter__(self):
            return iter([["a", "b"], ("c",)])

    for source in ([["a", "b"], ["c"]], Lines()):
        assert as_sentences(source) is source
        assert decoded(Corpus.build(source)) == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([["a"], "b c"], "sentence 1 is the string 'b c'"),
        ([["a", 7]], "tokens must be strings, got 7 of type int"),
        ([["a", None]], "tokens must be strings, got None"),
        ([[["a"]]], r"tokens must be strings, got \['a'\] of type list"),
    ],
)
def test_a_bad_sentence_or_token_further_on_is_found_while_reading(source, message):
    with pytest.raises(TypeError, match=message):
        Corpus.build(source)


# ── corpus ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_corpus_is_ids_and_offsets():
    corpus = Corpus.build([["b", "a", "b"], [], ["c", "b"]])
    assert corpus.ids.tolist() == [0, 1, 0, 2, 0] and corpus.ids.dtype == np.int32
    assert corpus.offsets.tolist() == [0, 3, 5] and corpus.offsets.dtype == np.int64
    assert len(corpus) == 2 and corpus[1].tolist() == [2, 0] and corpus[-2].tolist() == [0, 1, 0]
    assert not corpus.ids.flags.writeable and not corpus.offsets.flags.writeable
    with pytest.raises(IndexError, match="sentence 2 is not in this corpus of 2"):
        corpus[2]


def test_dropped_words_leave_no_gap_and_emptied_sentences_disappear(tmp_path):
    sentences = [["a", "rare", "b"], ["seldom"], ["b", "a"], ["once"]]
    path = text_file(tmp_path, "\n".join(map(" ".join, sentences)))
    for source in (sentences, path):
        corpus = Corpus.build(source, min_count=2)
        assert decoded(corpus) == [["a", "b"], ["b", "a"]]
        assert corpus.vocabulary.counts.tolist() == np.bincount(corpus.ids).tolist() == [2, 2]


def test_rare_words_become_the_unknown_token_where_there_is_one():
    corpus = Corpus.build([["a", "rare", "<unk>", "a"], ["seldom"]], min_count=2, unknown="<unk>")
    assert decoded(corpus) == [["a", "<unk>", "<unk>", "a"], ["<unk>"]]
    assert corpus.vocabulary.counts.tolist() == [3, 2]


def test_the_vocabulary_is_the_one_that_counting_alone_gives(tmp_path):
    generator = np.random.default_rng(0)
    sentences = [[f"w{i}" for i in generator.zipf(1.5, 30) % 500] for _ in range(400)]
    path = text_file(tmp_path, "\n".join(map(" ".join, sentences)))
    options = {
        "min_count": 2,
        "max_size": 100,
        "specials": ["<pad>"],
        "keep": lambda t, c: None if c < 90 else False,
    }
    expected = Vocabulary.build(sentences, **options)
    for source in (sentences, path):
        corpus = Corpus.build(source, **options)
        assert corpus.vocabulary == expected
        kept = [expected.encode(sentence) for sentence in sentences]
        assert np.array_equal(corpus.ids, np.concatenate(kept))
        assert np.diff(corpus.offsets).tolist() == [len(ids) for ids in kept if len(ids)]


def test_a_given_vocabulary_is_used_and_choices_beside_it_are_refused():
    vocabulary = Vocabulary(["b", "a"], [9, 9])
    corpus = Corpus.build([["a", "c"], ["c"], ["b"]], vocabulary)
    assert corpus.vocabulary is vocabulary and decoded(corpus) == [["a"], ["b"]]
    with pytest.raises(TypeError, match="a vocabulary was given"):
        Corpus.build([["a"]], vocabulary, min_count=5)
    with pytest.raises(ValueError, match="none of the 2 different tokens of the text is in the vocabulary"):
        Corpus.build([["x", "y"]], vocabulary)


def test_an_empty_vocabulary_says_what_was_seen(tmp_path):
    with pytest.raises(ValueError, match="min_count=5, tokens seen: 2 .*tokens kept: 0"):
        Corpus.build(text_file(tmp_path, "a b"), min_count=5, folder=tmp_path / "corpus")
    assert os.listdir(tmp_path / "corpus") == []


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 3)
    monkeypatch.setattr(module, "_PIECE", 5)


def test_a_corpus_in_a_folder_equals_the_one_in_memory_and_is_opened_without_a_pass(
    tmp_path, small_blocks, monkeypatch
):
    path = text_file(tmp_path, "a b a\n\nx\n b c a b\nx y\nc\n")
    in_memory = Corpus.build(path, min_count=2, specials=["<pad>"])
    folder = tmp_path / "corpus"
    in_folder = Corpus.build(path, min_count=2, specials=["<pad>"], folder=folder)
    monkeypatch.setattr(module, "_read_pieces", None)
    for corpus in (in_folder, Corpus.open(folder)):
        assert isinstance(corpus.ids, np.memmap)
        assert corpus.ids.dtype == np.int32 and corpus.offsets.dtype == np.int64
        assert np.array_equal(corpus.ids, in_memory.ids)
        assert np.array_equal(corpus.offsets, in_memory.offsets)
        assert corpus.vocabulary == in_memory.vocabulary
    assert sorted(os.listdir(folder)) == ["corpus.json", "ids.npy", "offsets.npy", "vocabulary.txt"]
    assert np.load(folder / "ids.npy").tolist() == in_memory.ids.tolist()  # plain NumPy files


def test_a_stale_corpus_is_refused(tmp_path):
    path = text_file(tmp_path, "a b\n")
    folder = tmp_path / "corpus"
    Corpus.build(path, folder=folder)
    path.write_text("a b c\n")
    with pytest.raises(ValueError, match="has changed since the corpus"):
        Corpus.open(folder)
    Corpus.build(path, folder=folder)
    assert decoded(Corpus.open(folder)) == [["a", "b", "c"]]
    path.unlink()  # a text that is gone cannot be newer
    assert decoded(Corpus.open(folder)) == [["a", "b", "c"]]


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    folder = tmp_path / "corpus"
    with pytest.raises(FileNotFoundError, match="holds no corpus"):
        Corpus.open(folder)
    Corpus.build([["a", "b"]], folder=folder)
    Vocabulary(["b", "a"], [1, 1]).save(folder / "vocabulary.txt")
    with pytest.raises(ValueError, match="do not belong together"):
        Corpus.open(folder)
    Corpus.build([["a", "b"]], folder=folder)
    np.save(folder / "ids.npy", np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="do not belong together"):
        Corpus.open(folder)


def test_a_build_that_breaks_off_leaves_the_old_corpus_and_no_pieces(tmp_path):
    class Breaking:
        def __iter__(self):
            yield ["c"]
            raise KeyboardInterrupt

    folder = tmp_path / "corpus"
    Corpus.build([["a", "b"]], folder=folder)
    with pytest.raises(KeyboardInterrupt):
        Corpus.build(Breaking(), folder=folder)
    with pytest.raises(ValueError, match="cannot be saved"):
        Corpus.build([["new york", "c"]], folder=folder)
    assert sorted(os.listdir(folder)) == ["corpus.json", "ids.npy", "offsets.npy", "vocabulary.txt"]
    assert decoded(Corpus.open(folder)) == [["a", "b"]]


def test_memory_does_not_grow_with_the_text(tmp_path):
    """A text of 10 MB, 2 M tokens: its tokens as Python strings would take 100 MB, its ids 8 MB."""
    path = text_file(tmp_path, "one two three four five six\n" * 350_000)
    program = (
        "import sys, tracemalloc; from metagrad.word2vec import Corpus\n"
        "tracemalloc.start(); c = Corpus.build(sys.argv[1], folder=sys.argv[2])\n"
        "assert len(c.ids) == 2_100_000 and len(c) == 350_000\n"
        "print(tracemalloc.get_traced_memory()[1])"
    )
    run = subprocess.run([sys.executable, "-c", program, path, tmp_path / "corpus"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 40e6


def test_both_passes_show_their_progress(tmp_path, capsys):
    path = text_file(tmp_path, "a b\n" * 1000)
    Corpus.build(path, progress=True)
    shown = capsys.readouterr().err
    assert "reading" in shown and "4.00k/4.00k" in shown and "encoding" in shown
    Corpus.build(path)
    assert capsys.readouterr().err == ""


def test_occurrences_are_those_of_this_text(tmp_path, monkeypatch):
    monkeypatch.setattr("metagrad.word2vec.corpus._BLOCK", 2)
    vocabulary = Corpus.build([["a", "a", "b", "c"]]).vocabulary
    for folder in (None, tmp_path):
        corpus = Corpus.build([["c", "b", "c"], ["c", "z"]], vocabulary, folder=folder)
        assert corpus.occurrences().tolist() == [0, 1, 3] and corpus.folder == folder


def test_the_beginning_of_a_corpus_is_whole_sentences():
    corpus = Corpus.build([["a", "b"], ["c"], ["a", "a", "b"]])
    for words, sentences in ((0, 0), (1, 0), (2, 1), (3, 2), (5, 2), (6, 3), (99, 3)):
        start = corpus.beginning(words)
        assert [s.tolist() for s in start] == [s.tolist() for s in corpus][:sentences]
        assert start.vocabulary is corpus.vocabulary
