"""The vocabulary: order, counts, reserved tokens, files, and what it says to bad input."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from metagrad.word2vec.vocabulary import Vocabulary, closest_spellings, written_beside

SENTENCES = [["b", "a", "b"], ["c", "a", "b"], ["d"]]


def test_ids_are_ordered_by_count_then_by_first_appearance():
    vocabulary = Vocabulary.build(SENTENCES)
    assert vocabulary.tokens == ("b", "a", "c", "d")
    assert vocabulary.counts.tolist() == [3, 2, 1, 1]
    assert vocabulary.counts.dtype == np.int64
    assert list(vocabulary) == ["b", "a", "c", "d"]
    assert len(vocabulary) == 4 and "c" in vocabulary and "e" not in vocabulary
    assert [vocabulary[token] for token in vocabulary] == [0, 1, 2, 3]


def test_the_counts_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        Vocabulary.build(SENTENCES).counts[0] = 7


def test_the_order_does_not_depend_on_the_hash_seed():
    program = (
        "from metagrad.word2vec.vocabulary import Vocabulary\n"
        "text = [[str(i * 7919 % 1000) for i in range(3000)]]\n"
        "v = Vocabulary.build(text, specials=['<s>', '<pad>', '<s>'])\n"
        "print(v.tokens)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        )
        for seed in ("0", "1")
    ]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.startswith("('<s>', '<pad>', '0', '919', '838'")


def test_min_count_keep_and_max_size_choose_words():
    assert Vocabulary.build(SENTENCES, min_count=2).tokens == ("b", "a")
    rule = {"d": True, "b": False}.get
    assert Vocabulary.build(SENTENCES, min_count=2, keep=lambda token, count: rule(token)).tokens == (
        "a",
        "d",
    )
    assert Vocabulary.build(SENTENCES, max_size=3).tokens == ("b", "a", "c")
    assert Vocabulary.build(SENTENCES, max_size=1, specials=["<pad>"]).tokens == ("<pad>", "b")


def test_words_that_come_late_are_not_pruned_on_the_way():
    singletons = [[f"once{i}" for i in range(start, start + 100)] for start in range(0, 10_000, 100)]
    frequent = [f"often{i}" for i in range(50)]
    vocabulary = Vocabulary.build(singletons + [frequent] * 100, max_size=50)
    assert vocabulary.tokens == tuple(frequent)
    assert set(vocabulary.counts.tolist()) == {100}


def test_reserved_tokens_come_first_and_keep_one_id_though_they_stand_in_the_text():
    text = [["<bos>", "a", "<unk>", "b", "a"], ["<unk>", "#"]]
    vocabulary = Vocabulary.build(text, specials=["<pad>", "<bos>"], unknown="<unk>")
    assert vocabulary.tokens == ("<unk>", "<pad>", "<bos>", "a", "b", "#")
    assert vocabulary.counts.tolist() == [2, 0, 1, 2, 1, 1]
    assert vocabulary.specials.tolist() == [0, 1, 2]


def test_reserved_tokens_are_known_by_id_wherever_they_stand():
    vocabulary = Vocabulary(["#", "<unk>", "a"], [3, 4, 5], specials=["<unk>"])
    assert vocabulary.specials.tolist() == [1]


def test_the_count_of_the_unknown_token_is_what_its_id_will_count_in_the_encoded_text():
    text = [["a", "a", "rare", "<unk>"], ["b", "b", "seldom"]]
    vocabulary = Vocabulary.build(text, min_count=2, unknown="<unk>", max_size=1)
    assert vocabulary.tokens == ("<unk>", "a")
    assert vocabulary.counts.tolist() == [5, 2]
    ids = np.concatenate([vocabulary.encode(sentence) for sentence in text])
    assert np.bincount(ids).tolist() == [5, 2]


def test_encode_and_decode():
    vocabulary = Vocabulary.build(SENTENCES)
    ids = vocabulary.encode(["d", "zzz", "b"])
    assert ids.dtype == np.int32 and ids.tolist() == [3, 0]  # zzz is left out
    assert vocabulary.decode(ids) == ["d", "b"]
    assert vocabulary.encode([]).shape == (0,)
    with_unknown = Vocabulary.build(SENTENCES, unknown="?")
    assert with_unknown.encode(["d", "zzz", "b"]).tolist() == [4, 0, 1]
    assert with_unknown["zzz"] == 0


@pytest.mark.parametrize("bad", [-1, 4])
def test_decode_refuses_ids_outside(bad):
    with pytest.raises(IndexError, match=f"id {bad} is not in this vocabulary of 4 tokens"):
        Vocabulary.build(SENTENCES).decode([0, bad])


def test_an_unknown_word_is_an_error_with_three_close_spellings():
    vocabulary = Vocabulary.build([["monkey", "money", "monk", "donkey", "pilgrim"]])
    with pytest.raises(KeyError, match="'monkeys' is not in the vocabulary; close spellings: monkey, ") as caught:
        vocabulary["monkeys"]
    assert str(caught.value).count(",") == 2
    assert "pilgrim" not in str(caught.value)


def test_close_spellings_are_found_fast_in_a_large_vocabulary():
    looked_at = []

    def tokens():
        for i in range(1_000_000):
            looked_at.append(i)
            yield "word" if i == 0 else "xxyy"

    assert closest_spellings("wrod", tokens()) == ["word"]
    assert len(looked_at) <= 20_001


def test_an_empty_vocabulary_says_what_was_seen():
    with pytest.raises(ValueError, match=r"min_count=5, tokens seen: 2 \(2 different\), tokens kept: 0"):
        Vocabulary.build([["a", "b"]], min_count=5, specials=["<pad>"])
    with pytest.raises(ValueError, match="tokens seen: 0"):
        Vocabulary.build([])


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (["hello world"], r"give \['hello', 'world'\]"),
        (["hello", "world"], "a list of sentences, not one sentence"),
        ("hello world", r"\[\['hello', 'world'\]\]"),
        ([b"hello world"], "must be a list of tokens"),
        ({"hello": 1}, "got a dict"),
        ([{"hello": 1}], "got a dict as sentence 0"),
        ([["a"], {"b", "c"}], "got a set as sentence 1"),
        ([7], "got a int as sentence 0"),
        ([["a", 7]], "tokens must be strings, got 7 of type int"),
    ],
)
def test_what_is_not_a_token_list_is_refused_with_advice(sentences, message):
    with pytest.raises(TypeError, match=message):
        Vocabulary.build(sentences)


def test_nonsense_options_are_refused():
    with pytest.raises(ValueError, match="max_size"):
        Vocabulary.build(SENTENCES, max_size=0)
    with pytest.raises(TypeError, match=r"give \['<pad>'\]"):
        Vocabulary.build(SENTENCES, specials="<pad>")
    with pytest.raises(ValueError, match="'a' stands more than once"):
        Vocabulary(["a", "b", "a"], [1, 2, 3])
    with pytest.raises(ValueError, match="2 tokens need 2 counts"):
        Vocabulary(["a", "b"], [1])
    with pytest.raises(ValueError, match="count of 'b' is -1"):
        Vocabulary(["a", "b"], [1, -1])
    with pytest.raises(ValueError, match="'<pad>' is not among the tokens"):
        Vocabulary(["a"], [1], specials=["<pad>"])
    with pytest.raises(TypeError, match="one string"):
        Vocabulary("ab", [1, 1])
    with pytest.raises(TypeError, match="split it first"):
        Vocabulary.build(SENTENCES).encode("a b")


def test_a_saved_vocabulary_comes_back_the_same(tmp_path):
    vocabulary = Vocabulary.build(
        [["观音", "é", "no\u00a0break", "\u3000", "é"], ["<pad>"]],
        specials=["<pad>", "<bos>"],
        unknown="<unk>",
    )
    path = tmp_path / "vocabulary.txt"
    vocabulary.save(path)
    assert path.read_bytes().startswith("<unk> 0 unknown\n<pad> 1 special\n<bos> 0 special\né 2\n观音 1\n".encode())
    loaded = Vocabulary.load(path)
    assert loaded == vocabulary
    assert loaded.unknown == "<unk>" and loaded.specials.tolist() == [0, 1, 2]
    assert os.listdir(tmp_path) == ["vocabulary.txt"]


def test_the_vocabulary_file_of_the_c_tool_and_one_with_crlf_are_read(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_bytes(b"\xef\xbb\xbf</s> 0\r\nthe 10\r\nof 7\r\n")
    vocabulary = Vocabulary.load(path)
    assert vocabulary.tokens == ("</s>", "the", "of") and vocabulary.counts.tolist() == [0, 10, 7]


@pytest.mark.parametrize("token", ["new york", "a\tb", "a\nb", "a\r", ""])
def test_a_token_that_could_not_be_read_back_is_refused_before_anything_is_written(tmp_path, token):
    path = tmp_path / "vocabulary.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="cannot be saved"):
        Vocabulary(["good", token], [1, 1]).save(path)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["vocabulary.txt"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a 1\nb\n", r"line 2: expected 'token count'"),
        (b"a 1\n\nb one\n", r"line 3: the count of 'b' must be a whole number, got 'one'"),
        (b"a 1\nnew york 3 4\n", r"line 2: expected 'token count'"),
        (b"a 1\nb 2\na 3\n", r"line 3: 'a' stands on line 1 too"),
        (b"a 1 unknown\nb 2 unknown\n", r"line 2: a second unknown token, after 'a'"),
        (b"a 1\nb\xff 2\n", r"line 2: not UTF-8"),
        (b"", "holds no tokens"),
    ],
)
def test_errors_on_loading_name_the_line(tmp_path, text, message):
    path = tmp_path / "vocabulary.txt"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=message):
        Vocabulary.load(path)


def test_files_are_utf8_whatever_the_locale(tmp_path):
    program = (
        "import sys; from metagrad.word2vec.vocabulary import Vocabulary\n"
        "v = Vocabulary.build([['\\u89c2\\u97f3', '\\xe9']]); v.save(sys.argv[1])\n"
        "assert Vocabulary.load(sys.argv[1]) == v"
    )
    environment = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    path = tmp_path / "vocabulary.txt"
    run = subprocess.run([sys.executable, "-c", program, path], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert path.read_bytes() == "观音 1\né 1\n".encode()


def test_a_write_that_breaks_off_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), written_beside(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]
