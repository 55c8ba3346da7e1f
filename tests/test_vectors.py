"""WordVectors: what queries answer, at their edges too, and that files hold what was saved."""

import subprocess
import sys

import numpy as np
import pytest

from metagrad import Tensor
from metagrad.word2vec import WordVectors, load_pretrained, save_pretrained

TEXT = ["vec", "txt.gz", "bin", "bin.gz", "glove", "npz", "npy"]


def random_vectors(n=50, d=8, seed=0):
    rng = np.random.default_rng(seed)
    return WordVectors([f"w{i}" for i in range(n)], rng.standard_normal((n, d)).astype(np.float32))


def test_a_zero_vector_ranks_last_with_score_0_and_without_a_warning():
    store = WordVectors(["a", "b", "zero"], [[1, 0], [0.5, 0.5], [0, 0]])
    with np.errstate(all="raise"):
        assert [token for token, _ in store.nearest([1, 0])] == ["a", "b", "zero"]
        assert store.nearest([1, 0])[-1] == ("zero", 0.0)
        assert store.most_similar("a")[-1] == ("zero", 0.0)
        assert store.cosmul("a")[-1] == ("zero", 0.0)
        assert store.similarity("a", "zero") == 0.0
        assert store.similarity("a", "b") == pytest.approx(0.70710678)


def test_topn_at_its_edges():
    store = random_vectors()
    assert store.most_similar("w3", topn=0) == []
    assert len(store.most_similar("w3", topn=1000)) == 49
    assert len(store.nearest(store["w3"], topn=1000)) == 50
    assert store.most_similar("w3", topn=40)[:25] == store.most_similar("w3", topn=25)


def test_ties_go_by_id_and_the_query_word_is_left_out_by_name():
    store = WordVectors(["a", "b", "c", "d"], [[1, 0], [1, 0], [0, 1], [1, 0]])
    assert [t for t, _ in store.most_similar("a", topn=3)] == ["b", "d", "c"]
    assert [t for t, _ in store.most_similar("d", topn=1)] == ["a"]
    assert [t for t, _ in store.nearest([2.0, 0.0], topn=1)] == ["a"]


def test_analogies_by_addition_and_by_products():
    store = WordVectors(
        ["king", "man", "woman", "queen", "apple"],
        np.array([[3, 0, 1], [1, 0, 0.2], [1, 1, 0.2], [3, 1.2, 1], [0, 0, 5]], np.float32),
    )
    for answer in (store.most_similar, store.cosmul):
        assert answer(["king", "woman"], ["man"], topn=1)[0][0] == "queen"
    raw = store.most_similar([store["king"], "woman"], "man", topn=1)
    assert raw[0][0] in ("king", "queen")  # a raw vector leaves no word out
    assert store.doesnt_match(["king", "queen", "apple"]) == "apple"


def test_cosmul_is_its_formula():
    store = random_vectors()
    (token, score), *_ = store.cosmul(["w1", "w2"], ["w3"])
    shifted = {w: (1 + store.similarity(token, w)) / 2 for w in ("w1", "w2", "w3")}
    assert score == pytest.approx(shifted["w1"] * shifted["w2"] / (shifted["w3"] + 1e-6), rel=1e-5)


def test_many_queries_answer_as_one_by_one():
    store = random_vectors()
    together = store.nearest(store.vectors[:7], topn=4)
    assert [[t for t, _ in found] for found in together] == [
        [t for t, _ in store.nearest(v, topn=4)] for v in store.vectors[:7]
    ]


def test_restrict_searches_the_first_words_only():
    found = random_vectors().most_similar("w40", topn=50, restrict=10)
    assert {t for t, _ in found} == {f"w{i}" for i in range(10)}


def test_an_unknown_word_is_named_with_close_spellings():
    store = WordVectors(["server", "serve", "client"], np.eye(3))
    with pytest.raises(KeyError, match="servr.*server.*serve"):
        store.most_similar("servr")
    assert "servr" not in store


def test_nothing_that_is_queried_changes():
    given = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    before = given.copy()
    store = WordVectors([f"w{i}" for i in range(50)], given)
    store.most_similar(["w1", "w2"], ["w3"])
    store.cosmul("w1")
    store.nearest(given[3])
    store.doesnt_match(["w1", "w2", "w3"])
    assert (given == before).all()
    with pytest.raises(ValueError, match="read-only"):
        store["w1"][0] = 1


@pytest.mark.parametrize("ending", TEXT)
def test_files_give_back_every_bit(ending, tmp_path):
    values = np.random.default_rng(1).standard_normal((30, 5)).astype(np.float32)
    values[:3] = [[1e-12, 123456.789, -0.0, 1e38, 1e-38], [0, 1, -1, 1 / 3, 1e-45], [np.float32(0.1)] * 5]
    store = WordVectors(["观音", "é", *(f"w{i}" for i in range(28))], values)
    store.save(tmp_path / f"v.{ending}")
    back = WordVectors.load(tmp_path / f"v.{ending}")
    assert back.tokens == store.tokens
    assert back.vectors.tobytes() == values.tobytes()
    assert not list(tmp_path.glob("*.part")) and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("token", ["new york", "a\tb", "a\nb", ""])
@pytest.mark.parametrize("ending", ["vec", "bin"])
def test_a_token_that_could_not_be_read_back_is_refused_before_a_byte_is_written(token, ending, tmp_path):
    (tmp_path / f"v.{ending}").write_text("old")
    with pytest.raises(ValueError):
        WordVectors(["fine", token], np.eye(2)).save(tmp_path / f"v.{ending}")
    assert (tmp_path / f"v.{ending}").read_text() == "old"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_not_written(value, tmp_path):
    with pytest.raises(ValueError, match="w1"):
        WordVectors(["w0", "w1"], [[0, 1], [value, 1]]).save(tmp_path / "v.vec")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text, tokens", [
    ("2 2\nthe .1 .2\nof .3 .4\n", ["the", "of"]), ("the .1 .2\nof .3 .4\n", ["the", "of"]),
    ("\ufeff2 2\r\nthe .1 .2\r\nof .3 .4", ["the", "of"]), ("2 2\nnew york .1 .2\nof .3 .4\n", ["new york", "of"]),
])  # fmt: skip
def test_what_others_write_is_read(text, tokens, tmp_path):
    (tmp_path / "v.txt").write_text(text, encoding="utf-8", newline="")
    store = WordVectors.load(tmp_path / "v.txt")
    assert list(store.tokens) == tokens
    np.testing.assert_allclose(store.vectors, [[0.1, 0.2], [0.3, 0.4]], rtol=1e-6)


@pytest.mark.parametrize("text, message", [
    ("3 2\na 1 2\nb 1 2\n", "3.*2|2.*3"), ("2 3\na 1 2 3\nb 1 2\n", "line 3"), ("2 2\na 1 2\nb 1 x\n", "line 3"),
])  # fmt: skip
def test_a_file_that_is_not_what_it_says_is_named_with_its_line(text, message, tmp_path):
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        WordVectors.load(tmp_path / "v.txt")


def test_pretrained_vectors_come_from_a_tensor_and_back(tmp_path):
    weight = Tensor.randn(3, 4, requires_grad=True)
    save_pretrained(["a", "b", "c"], weight, tmp_path / "w.vec")
    tokens, vectors = load_pretrained(tmp_path / "w.vec")
    assert tokens == ["a", "b", "c"] and vectors.tobytes() == weight.numpy().tobytes()


def test_utf8_is_written_and_read_whatever_the_locale(tmp_path):
    code = (
        "from metagrad.word2vec import WordVectors;"
        "WordVectors(['\\u89c2', '\\u00e9'], [[1, 2], [3, 4]]).save('v.vec');"
        "assert WordVectors.load('v.vec').tokens == ('\\u89c2', '\\u00e9')"
    )
    env = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True)


@pytest.mark.parametrize("ending, binary", [("vec", False), ("bin", True)])
def test_gensim_reads_what_is_saved_and_the_reverse_bit_for_bit(ending, binary, tmp_path):
    models = pytest.importorskip("gensim.models")
    store = random_vectors()
    store.save(tmp_path / f"ours.{ending}")
    theirs = models.KeyedVectors.load_word2vec_format(str(tmp_path / f"ours.{ending}"), binary=binary)
    assert theirs.index_to_key == list(store.tokens) and theirs.vectors.tobytes() == store.vectors.tobytes()
    theirs.save_word2vec_format(str(tmp_path / f"theirs.{ending}"), binary=binary)
    back = WordVectors.load(tmp_path / f"theirs.{ending}")
    assert back.tokens == store.tokens and back.vectors.tobytes() == store.vectors.tobytes()
    ranks = [t for t, _ in theirs.most_similar("w5", topn=5)]
    assert [t for t, _ in store.most_similar("w5", topn=5)] == ranks


def test_an_npy_file_can_stay_on_disk(tmp_path):
    store = random_vectors()
    store.save(tmp_path / "v.npy")
    mapped = WordVectors.load(tmp_path / "v.npy", mmap=True)
    assert mapped.vectors.tobytes() == store.vectors.tobytes()
    assert mapped.most_similar("w1") == store.most_similar("w1")
