"""WordVectors: queries answer as defined, in a fixed order, change nothing, and refuse what makes no sense."""

import pickle
import time
import warnings

import numpy as np
import pytest

from metagrad.word2vec.vectors import UnknownTokenError, WordVectors, top


@pytest.fixture
def v():
    rng = np.random.default_rng(0)
    return WordVectors([f"w{i}" for i in range(200)], rng.normal(size=(200, 16)))


@pytest.fixture
def royal():
    tokens = ["king", "queen", "man", "woman", "apple"]
    return WordVectors(tokens, [[5, 5, 1], [5, -5, 1], [0, 5, 1], [0, -5, 1], [0, 0, -9]])


def cosine(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# ── The store ───────────────────────────────────────────────────────────────────────────────────────────────


def test_looks_like_a_read_only_mapping_from_tokens_to_rows(v):
    assert len(v) == 200 and v.dim == 16 and list(v)[:2] == ["w0", "w1"]
    assert "w3" in v and "x" not in v and v.index("w3") == 3
    assert np.array_equal(v["w3"], v.vectors[3]) and v["w3"].dtype == np.float32
    assert repr(v) == "WordVectors(200 tokens, 16 dimensions)"


def test_nothing_handed_in_or_out_can_change_the_answers(v):
    given = np.eye(3, dtype=np.float32)
    store = WordVectors(["a", "b", "c"], given, counts=[3, 2, 1])
    before = store.most_similar("a")
    given[:] = 7
    assert store.vectors.tolist() == np.eye(3).tolist() and store.most_similar("a") == before
    for array in (store.vectors, store["a"], store.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    copy = v.vectors.copy()
    v.most_similar("w1"), v.nearest(v.vectors), v.cosmul("w1", "w2"), v.doesnt_match(["w1", "w2", "w3"])
    v.directions(slice(5))[:] = 9
    assert np.array_equal(v.vectors, copy)


def test_queries_leave_the_query_as_it_was(v):
    query = np.arange(16, dtype=np.float32)
    words = ["w1", query]
    v.most_similar(words, [query]), v.nearest(query), v.cosmul(words)
    assert query.tolist() == list(range(16)) and len(words) == 2


def test_takes_anything_that_gives_a_numpy_array():
    class Tensor:
        def numpy(self):
            return np.eye(2)

    store = WordVectors(iter(["a", "b"]), Tensor())
    assert store.vectors.dtype == np.float32
    assert store.nearest(Tensor(), topn=1) == [[("a", 1.0)], [("b", 1.0)]]
    assert WordVectors(["a"], [[1, 2]])["a"].tolist() == [1, 2]


@pytest.mark.parametrize(
    "tokens, vectors, counts, error, message",
    [
        ("ab", np.eye(2), None, TypeError, "list of strings in id order, got a str"),
        ({"a": 0, "b": 1}, np.eye(2), None, TypeError, r"got a dict; .* sorted\(d, key=d.get\)"),
        (["a", 3], np.eye(2), None, TypeError, "token 1 is 3"),
        (["a", "a"], np.eye(2), None, ValueError, "'a' stands in rows 0 and 1"),
        (["a"], np.eye(2), None, ValueError, "1 tokens need 1 vectors, got 2"),
        (["a", "b"], [1, 2], None, ValueError, r"shape \(V, d\)"),
        (["a", "b"], np.zeros((2, 0)), None, ValueError, r"shape \(V, d\)"),
        (["a", "b"], [["x"], ["y"]], None, TypeError, "must be numbers"),
        (["a", "b"], np.eye(2), [1], ValueError, "2 whole numbers as counts"),
        (["a", "b"], np.eye(2), [1, 0.5], ValueError, "2 whole numbers as counts"),
        (["a", "b"], np.eye(2), [1, -1], ValueError, r"count of 'b' \(row 1\) is -1"),
    ],
)
def test_what_fits_not_is_refused_with_its_place(tokens, vectors, counts, error, message):
    with pytest.raises(error, match=message):
        WordVectors(tokens, vectors, counts)


def test_an_unknown_token_is_a_key_error_with_three_close_spellings():
    store = WordVectors(["theater", "theatre", "heater", "zebra", "theaters"], np.eye(5))
    for ask in (
        lambda: store["theatr"],
        lambda: store.most_similar("theatr"),
        lambda: store.similarity("zebra", "theatr"),
    ):
        with pytest.raises(KeyError, match="'theatr' .*theatre, theater, theaters"):
            ask()
    with pytest.raises(KeyError, match="'theatr'"):
        store.doesnt_match(["zebra", "heater", "theatr"])
    with pytest.raises(TypeError, match=r"a token is a string, got 0; row i of the table is v\.vectors\[i\]"):
        store[0]


def test_catching_unknown_tokens_is_cheap_and_reading_the_message_bounded():
    store = WordVectors([f"word{i:06d}" for i in range(100_000)], np.zeros((100_000, 1)))
    start = time.perf_counter()
    for _ in range(1000):
        with pytest.raises(UnknownTokenError):
            store["word"]
    assert time.perf_counter() - start < 1
    with pytest.raises(UnknownTokenError) as caught:
        store["wrod000007"]
    start = time.perf_counter()
    assert "close spellings" in str(caught.value)
    assert time.perf_counter() - start < 5
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# ── Similarity ──────────────────────────────────────────────────────────────────────────────────────────────


def test_similarity_is_the_cosine_of_tokens_or_vectors(v):
    assert v.similarity("w1", "w2") == pytest.approx(cosine(v["w1"], v["w2"]), abs=1e-12)
    assert v.similarity("w1", v["w2"]) == v.similarity(v["w1"], "w2") == v.similarity("w1", "w2")
    assert v.similarity("w1", "w1") == pytest.approx(1, abs=1e-12)
    assert v.similarity("w1", np.zeros(16)) == 0


def test_most_similar_is_ranked_by_cosine_with_the_sum_of_directions(v):
    query = sum(v[w] / np.linalg.norm(v[w]) for w in ("w1", "w2")) - v["w3"] / np.linalg.norm(v["w3"])
    expected = sorted(((cosine(v[w], query), w) for w in v if w not in ("w1", "w2", "w3")), reverse=True)[:7]
    answer = v.most_similar(["w1", "w2"], ["w3"], topn=7)
    assert [token for token, _ in answer] == [token for _, token in expected]
    assert np.allclose([score for _, score in answer], [score for score, _ in expected], atol=1e-6)
    assert v.most_similar("w1") == v.most_similar(["w1"])
    assert v.most_similar(["w1"], "w3") == v.most_similar(["w1"], ["w3"])


def test_analogy(royal):
    assert royal.most_similar(["king", "woman"], ["man"], topn=1)[0][0] == "queen"
    assert royal.cosmul(["king", "woman"], ["man"], topn=1)[0][0] == "queen"


def test_a_vector_in_a_query_counts_as_its_token_but_is_not_left_out(v):
    answer = v.most_similar([v["w1"], v["w2"]], topn=200)
    assert {"w1", "w2"} <= {token for token, _ in answer} and len(answer) == 200
    rest = [(token, score) for token, score in answer if token not in ("w1", "w2")]
    assert v.most_similar(["w1", "w2"], topn=200) == rest
    assert v.most_similar(8 * v["w1"], topn=3) == v.most_similar(v["w1"], topn=3)
    assert v.most_similar(v["w1"].tolist(), topn=3) == v.most_similar(v["w1"], topn=3)


def test_a_zero_row_comes_last_with_score_0():
    store = WordVectors(["x", "y", "zero", "away"], [[1, 0], [0.5, 0.5], [0, 0], [-1, 0]])
    expected = [("x", 1), ("y", 0.5**0.5), ("away", -1), ("zero", 0)]
    for answer in (store.most_similar([1, 0]), store.nearest([1, 0])):
        assert [token for token, _ in answer] == [token for token, _ in expected]
        assert np.allclose([score for _, score in answer], [score for _, score in expected])
    assert store.cosmul([1.0, 0.0])[-1] == ("zero", 0.0)
    assert store.most_similar("zero") == [("x", 0.0), ("y", 0.0), ("away", 0.0)]
    assert store.doesnt_match(["x", "y", "zero"]) == "zero"


def test_rows_that_are_not_finite_come_last_and_extreme_ones_count():
    store = WordVectors(["nan", "inf", "huge", "tiny"], [[np.nan, 1], [np.inf, 0], [1e38, 1e38], [1e-40, 1e-40]])
    answer = store.nearest([1, 1])
    assert {token for token, _ in answer[:2]} == {"huge", "tiny"}
    assert [token for token, _ in answer[2:]] == ["nan", "inf"]
    assert np.allclose([score for _, score in answer], [1, 1, 0, 0], atol=1e-4)
    assert store.similarity("nan", "huge") == 0
    assert store.directions(np.array([0, 2])).tolist() == [[0, 0], pytest.approx([0.5**0.5] * 2)]


def test_topn_from_none_to_all_and_prefixes(v):
    assert v.most_similar("w1", topn=0) == [] and v.nearest(v["w1"], topn=0) == []
    assert len(v.most_similar("w1", topn=10_000)) == 199
    assert len(v.nearest(v["w1"], topn=10_000)) == 200
    assert v.most_similar("w1", topn=150)[:90] == v.most_similar("w1", topn=90)
    for wrong in (-1, 2.5, None, True):
        with pytest.raises(ValueError, match="topn must be a whole number"):
            v.most_similar("w1", topn=wrong)


def test_equal_scores_are_ordered_by_id_and_twins_are_listed():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(5, 4))[rng.integers(0, 5, 64)]  # many identical rows
    store = WordVectors([f"w{i}" for i in range(64)], rows)
    answer = store.most_similar("w0", topn=64)
    twins = [i for i in range(1, 64) if np.array_equal(rows[i], rows[0])]
    assert [int(token[1:]) for token, _ in answer[: len(twins)]] == twins
    assert all(score == pytest.approx(1) for _, score in answer[: len(twins)])
    assert "w0" not in dict(answer)
    assert store.most_similar("w0", topn=9) == answer[:9]


def test_top_orders_ties_by_index():
    scores = np.array([1, 3, 2, 3, 2, 3, -np.inf], dtype=np.float32)
    for count in range(9):
        assert top(scores, count).tolist() == [1, 3, 5, 2, 4, 0, 6][:count]


def test_restrict_searches_the_first_tokens_only(v):
    assert {token for token, _ in v.most_similar("w1", topn=99, restrict=10)} == {f"w{i}" for i in range(10)} - {"w1"}
    assert {token for token, _ in v.cosmul("w150", topn=99, restrict=10)} == {f"w{i}" for i in range(10)}
    assert len(v.nearest(v["w1"], topn=99, restrict=10)) == 10
    assert v.most_similar("w1", restrict=10**9) == v.most_similar("w1")
    for wrong in (0, -3, 1.5):
        with pytest.raises(ValueError, match="restrict must be"):
            v.most_similar("w1", restrict=wrong)


def test_nearest_of_many_is_nearest_of_each(v, monkeypatch):
    queries = np.random.default_rng(2).normal(size=(50, 16))
    monkeypatch.setattr("metagrad.word2vec.vectors._SCORE_BYTES", 4 * 200 * 7)  # seven queries at a time
    many = v.nearest(queries, topn=5)
    assert len(many) == 50
    for query, answer in zip(queries, many):
        alone = v.nearest(query, topn=5)
        assert [token for token, _ in alone] == [token for token, _ in answer]
        assert np.allclose([score for _, score in alone], [score for _, score in answer], atol=1e-6)
    assert v.nearest(np.empty((0, 16))) == []


def test_cosmul_is_the_formula_of_levy_and_goldberg(v):
    positive, negative = ["w1", "w2"], ["w3"]
    close = {p: {w: (1 + cosine(v[w], v[p])) / 2 for w in v} for p in positive + negative}
    expected = {w: close["w1"][w] * close["w2"][w] / (close["w3"][w] + 1e-6) for w in v}
    answer = v.cosmul(positive, negative, topn=197)
    assert len(answer) == 197 and answer == sorted(answer, key=lambda pair: -pair[1])
    assert all(score == pytest.approx(expected[token], rel=1e-4) for token, score in answer)


def test_doesnt_match_is_farthest_from_the_mean_direction():
    store = WordVectors(["a", "b", "c", "odd"], [[1, 0.1], [1, 0], [1, -0.1], [-50, 50]])
    assert store.doesnt_match(["a", "odd", "b", "c"]) == "odd"
    with pytest.raises(TypeError, match="split it first"):
        store.doesnt_match("a b c")
    with pytest.raises(ValueError, match="at least three tokens"):
        store.doesnt_match(["a", "b"])


@pytest.mark.parametrize(
    "ask, error, message",
    [
        (lambda v: v.most_similar([]), ValueError, "at least one token or vector"),
        (lambda v: v.cosmul([], ["w1"]), ValueError, "at least one positive"),
        (lambda v: v.most_similar(np.zeros(3)), ValueError, r"shape \(16,\), got \(3,\)"),
        (lambda v: v.most_similar(np.full(16, np.nan)), ValueError, "holds NaN or infinity"),
        (lambda v: v.nearest(np.full((2, 16), np.inf)), ValueError, "holds NaN or infinity"),
        (lambda v: v.nearest(np.zeros((2, 3))), ValueError, r"got shape \(2, 3\)"),
        (lambda v: v.nearest("w1"), TypeError, "nearest takes a vector"),
        (lambda v: v.nearest(["w1", "w2"]), TypeError, "nearest takes a vector"),
        (lambda v: v.most_similar(5), TypeError, "a token, a vector or a list"),
        (lambda v: v.most_similar({"w1": 1}), TypeError, "a token, a vector or a list"),
        (lambda v: v.similarity("w1", 3), ValueError, r"shape \(16,\), got \(\)"),
    ],
)
def test_queries_that_make_no_sense_are_refused(v, ask, error, message):
    with pytest.raises(error, match=message):
        ask(v)


# ── Beside gensim ───────────────────────────────────────────────────────────────────────────────────────────


def test_queries_agree_with_gensim(v):
    models = pytest.importorskip("gensim.models")
    theirs = models.KeyedVectors(16)
    theirs.add_vectors(list(v.tokens), v.vectors)
    warnings.simplefilter("ignore")  # gensim calls what it deprecates
    for ours, other in [
        (v.most_similar("w1"), theirs.most_similar("w1")),
        (v.most_similar(["w1", "w2"], ["w3"]), theirs.most_similar(["w1", "w2"], ["w3"])),
        (v.cosmul(["w1", "w2"], ["w3"]), theirs.most_similar_cosmul(["w1", "w2"], ["w3"])),
        (v.nearest(v["w4"], topn=5), theirs.similar_by_vector(v["w4"], topn=5)),
    ]:
        assert [token for token, _ in ours] == [token for token, _ in other]
        assert np.allclose([score for _, score in ours], [score for _, score in other], rtol=1e-4)
    words = [f"w{i}" for i in range(9)]
    assert v.doesnt_match(words) == theirs.doesnt_match(words)


# ── The projector ───────────────────────────────────────────────────────────────────────────────────────────


def test_projector_files(tmp_path):
    store = WordVectors(["new york", "b", "c"], [[0.1, 2], [3, 4], [5, 6]], counts=[9, 8, 7])
    store.save_projector(tmp_path / "p", restrict=2)
    assert (tmp_path / "p" / "vectors.tsv").read_text() == "0.1\t2\n3\t4\n"
    assert (tmp_path / "p" / "metadata.tsv").read_text() == "token\tcount\nnew york\t9\nb\t8\n"
    WordVectors(["a"], [[1]]).save_projector(tmp_path / "q")
    assert (tmp_path / "q" / "metadata.tsv").read_text() == "a\n"  # one column has no header
    with pytest.raises(ValueError, match=r"'a\\tb' \(row 0\) is empty or holds a tab"):
        WordVectors(["a\tb"], [[1]]).save_projector(tmp_path / "r")
    assert not (tmp_path / "r").exists()
