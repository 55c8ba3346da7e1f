"""Benchmarks: the correlations and accuracies of the definition, of files in every usual form, as gensim has them."""

import warnings

import numpy as np
import pytest

from metagrad.word2vec import evaluation
from metagrad.word2vec.evaluation import Score, evaluate_analogies, evaluate_pairs, pearson, ranks, spearman
from metagrad.word2vec.vectors import WordVectors


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def angles():
    """Words at angles from "a", so that cosines with it fall from b to e."""
    turn = np.radians([0, 10, 40, 70, 120])
    return WordVectors(list("abcde"), np.stack([np.cos(turn), np.sin(turn)], axis=1))


@pytest.fixture(scope="module")
def trained():
    """Words and vectors of a small gensim model, as its KeyedVectors and as ours; some words come in two cases."""
    models = pytest.importorskip("gensim.models")
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(120)] + [f"W{i}" for i in range(30)]
    share = 1 / np.arange(1, 151)
    draws = rng.choice(150, size=(600, 12), p=share / share.sum())
    model = models.Word2Vec(
        [[words[i] for i in row] for row in draws], vector_size=12, min_count=1, workers=1, seed=1, epochs=3
    )
    kv = model.wv
    return kv, WordVectors(kv.index_to_key, kv.vectors)


def written(tmp_path, content):
    path = tmp_path / "set.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ── Correlations ────────────────────────────────────────────────────────────────────────────────────────────


def test_ranks_average_ties():
    assert ranks(np.array([10.0, 20, 10, 5, 20, 20])).tolist() == [2.5, 5, 2.5, 1, 5, 5]


def test_correlations_of_known_values():
    a, b = np.array([1.0, 2, 3, 4]), np.array([1.0, 8, 27, 64])
    assert spearman(a, b) == pytest.approx(1) and spearman(a, -b) == pytest.approx(-1)
    assert pearson(a, b) == pytest.approx(0.951369855, abs=1e-9)
    assert spearman(np.array([1.0, 2, 2, 3]), np.array([1.0, 2, 3, 3])) == pytest.approx(5 / 6)
    assert np.isnan(pearson(a, np.ones(4))) and np.isnan(spearman(a[:1], b[:1]))


def test_correlations_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    a, b = np.random.default_rng(0).integers(0, 8, size=(2, 100)).astype(float)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
    assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-12)


# ── Pairs ───────────────────────────────────────────────────────────────────────────────────────────────────

PAIRS = "a\tb\t9\na\tc\t5\na\td\t7\na\te\t0\n"


def test_pairs_give_both_correlations_and_count_what_is_unknown(tmp_path, angles):
    result = evaluate_pairs(angles, written(tmp_path, PAIRS + "a\tnowhere\t3\nnobody\tnowhere\t3\n"))
    cosines = np.cos(np.radians([10, 40, 70, 120]))
    assert result.spearman == pytest.approx(0.8)
    assert result.pearson == pytest.approx(np.corrcoef(cosines, [9, 5, 7, 0])[0, 1])
    assert (result.used, result.total, result.oov) == (4, 6, 2)
    assert result.unknown == ("nowhere", "nobody")
    assert str(result) == f"Spearman 0.800, Pearson {result.pearson:.3f}, 4 of 6 pairs (2 with unknown words)"


@pytest.mark.parametrize(
    "content",
    [
        PAIRS.replace("\t", " "),
        PAIRS.replace("\t", ","),
        PAIRS.replace("\t", "\t "),
        PAIRS.replace("\n", "\r\n").rstrip(),
        "\ufeff" + PAIRS,
        "# The Test data\n# Word 1\tWord 2\tHuman (mean)\n" + PAIRS,
        "Word 1,Word 2,Human (mean)\n" + PAIRS.replace("\t", ","),
        "word1\tword2\tPOS\tSimLex999\tconc\na\tb\tA\t9\t1\na\tc\tN\t5\t2\na\td\tN\t7\t3\na\te\tV\t0\t4\n",
        "a\tb\t9\t10\t8\na\tc\t5\t1\t9\na\td\t7\t0\t0\na\te\t0\t0\t0\n\n",
    ],
)
def test_pairs_in_every_usual_form(tmp_path, angles, content):
    result = evaluate_pairs(angles, written(tmp_path, content))
    assert (result.used, result.total) == (4, 4)
    assert result.spearman == pytest.approx(0.8)


def test_words_of_pairs_may_hold_spaces_between_tabs(tmp_path):
    v = WordVectors(["new york", "paris", "x"], np.eye(3))
    assert evaluate_pairs(v, written(tmp_path, "new york\tparis\t3\nnew york\tx\t1\n")).used == 2


@pytest.mark.parametrize(
    "content, place",
    [
        ("a\tb\t9\na\tc\tmuch\n", "line 2: two words and a score"),
        ("a\tb\t9\na\tc\n", "line 2: two words and a score"),
        ("head\tings\tonly\nand\tagain\tnone\n", "line 2: two words and a score"),
        ("a b\n", "line 1: two words and a score"),
        ("a\tb\t9\n\tc\t3\n", "line 2: two words and a score"),
        ("# x\n\na\tb\t9\na\tc\tnan\n", "line 4: two words and a score"),
        (b"a\tb\t9\na\t\xe9\t3\n", "line 2: not UTF-8"),
    ],
)
def test_a_bad_line_of_pairs_names_itself(tmp_path, angles, content, place):
    with pytest.raises(ValueError, match=f"set.txt, {place}"):
        evaluate_pairs(angles, written(tmp_path, content))


def test_without_usable_pairs_the_correlation_is_nan(tmp_path, angles):
    result = evaluate_pairs(angles, written(tmp_path, "x\ty\t1\na\tb\t3\n"))
    assert np.isnan(result.spearman) and (result.used, result.total) == (1, 2)
    empty = evaluate_pairs(angles, written(tmp_path, ""))
    assert np.isnan(empty.pearson) and (empty.used, empty.total) == (0, 0)


def test_case_and_restriction(tmp_path):
    v = WordVectors(["Paris", "rome", "PARIS", "oslo"], [[1, 0], [1, 1], [0, 1], [0, -1]])
    path = written(tmp_path, "paris\tRome\t3\nparis\toslo\t1\n")
    assert evaluate_pairs(v, path).used == 2
    assert evaluate_pairs(v, path, lower=False).unknown == ("paris", "Rome")
    assert evaluate_pairs(v, path, restrict=2).unknown == ("oslo",)
    with pytest.raises(ValueError, match="restrict must be"):
        evaluate_pairs(v, path, restrict=0)


def test_pairs_agree_with_gensim(tmp_path, trained):
    kv, v = trained
    rng = np.random.default_rng(1)
    rows = [(f"w{i}", f"W{j}", s) for i, j, s in rng.integers(0, 125, size=(300, 3))]
    path = written(tmp_path, "".join(f"{a}\t{b}\t{s % 10}\n" for a, b, s in rows))
    for lower in (True, False):
        theirs = kv.evaluate_word_pairs(str(path), case_insensitive=lower)
        ours = evaluate_pairs(v, path, lower=lower)
        assert ours.pearson == pytest.approx(theirs[0][0], abs=1e-6)
        assert ours.spearman == pytest.approx(theirs[1][0], abs=1e-4)
        assert 100 * ours.oov / ours.total == pytest.approx(theirs[2])
        assert ours.oov > 0


# ── Analogies ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def grid():
    """ "a1" … "c3": each letter and each figure moves the vector its own way, so every analogy holds."""
    tokens = [letter + figure for letter in "abc" for figure in "123"]
    turns = np.array([[np.cos(i), np.sin(i), np.cos(j + 2), np.sin(j + 2)] for i in range(3) for j in range(3)])
    return WordVectors(tokens, turns)


def test_analogies_by_section_with_sums(tmp_path, grid):
    content = (
        ": capital\na1 a2 b1 b2\na1 a2 b1 b3\nA1 a2 B1 B2\na1 a2 x1 x2\n"
        ": gram1-adverb\na1 b1 a3 b3\n: gram2\nb1 b2 zz b3\n"
    )
    result = evaluate_analogies(grid, written(tmp_path, content))
    assert result.sections == {
        "capital": Score(2, 3, 4),
        "gram1-adverb": Score(1, 1, 1),
        "gram2": Score(0, 0, 1),
    }
    assert result.total == (3, 4, 6) and result.accuracy == 0.75
    assert result.semantic == (2, 3, 4) and result.syntactic == (1, 1, 2)
    assert np.isnan(result.sections["gram2"].accuracy)
    assert "capital        66.7 %  2 of 3 (1 with unknown words)" in str(result)


def test_analogies_are_the_same_in_pieces_of_any_size(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    v = WordVectors(list("abcdefgh"), rng.normal(size=(8, 4)))
    content = ": all\n" + "".join(" ".join(rng.choice(v.tokens, 4)) + "\n" for _ in range(500))
    path = written(tmp_path, content)
    whole = evaluate_analogies(v, path)
    assert 0 < whole.total.correct < whole.total.used == 500
    monkeypatch.setattr(evaluation, "_SCORE_BYTES", 3 * 4 * 8)  # three questions at a time
    assert evaluate_analogies(v, path) == whole


def test_words_that_were_asked_are_no_answer_in_any_case(tmp_path):
    v = WordVectors(["a", "b", "c", "C", "B", "d"], [[1, 0], [1, 0.1], [0, 1], [0, 1.2], [0.1, 1.2], [0.3, 1]])
    path = written(tmp_path, ": s\na b c d\n")
    assert evaluate_analogies(v, path).total == (1, 1, 1)
    assert evaluate_analogies(v, path, lower=False).total == (0, 1, 1)  # "C" is another word then
    only = WordVectors(["a", "b", "B"], np.eye(3))
    assert evaluate_analogies(only, written(tmp_path, ": s\na b b a\n")).total == (0, 1, 1)


def test_restriction_limits_questions_and_answers(tmp_path, grid):
    path = written(tmp_path, ": s\na1 a2 b1 b2\na1 a2 c1 c2\n")
    assert evaluate_analogies(grid, path, restrict=6).total == (1, 1, 2)
    assert evaluate_analogies(grid, path, restrict=None).total == (2, 2, 2)


@pytest.mark.parametrize(
    "content, place",
    [
        ("a b c d\n", "line 1: a section, such as ': family'"),
        (": s\na b c d\n\na b c\n", "line 4: four words are due, found 3"),
        (": s\r\na b c d e\r\n", "line 2: four words are due, found 5"),
    ],
)
def test_a_bad_line_of_analogies_names_itself(tmp_path, grid, content, place):
    with pytest.raises(ValueError, match=f"set.txt, {place}"):
        evaluate_analogies(grid, written(tmp_path, content))


@pytest.mark.parametrize("restrict", [60, 1000])
@pytest.mark.parametrize("lower", [True, False])
def test_analogies_agree_with_gensim(tmp_path, trained, restrict, lower):
    kv, v = trained
    rng = np.random.default_rng(2)
    names = ["family", "gram1-x"]
    content = ""
    for name in names:
        content += f": {name}\n"
        for _ in range(150):
            a, b, c = rng.choice(40, size=3, replace=False)
            best = kv.most_similar([f"w{b}", f"w{c}"], [f"w{a}"], topn=2, restrict_vocab=restrict)
            content += f"w{a} w{b} w{c} {best[rng.integers(0, 2)][0]}\n"
        content += "w1 w2 w3 unheard-of\n"
    path = written(tmp_path, content)
    score, sections = kv.evaluate_word_analogies(str(path), restrict_vocab=restrict, case_insensitive=lower)
    ours = evaluate_analogies(v, path, restrict=restrict, lower=lower)
    assert ours.accuracy == pytest.approx(score)
    for name, theirs in zip(names, sections):
        correct, incorrect = len(theirs["correct"]), len(theirs["incorrect"])
        assert ours.sections[name][:2] == (correct, correct + incorrect)
        assert correct and incorrect


def test_real_files_that_gensim_ships(trained):
    datapath = pytest.importorskip("gensim.test.utils").datapath
    _, v = trained
    assert evaluate_pairs(v, datapath("wordsim353.tsv")).total == 353
    assert evaluate_pairs(v, datapath("simlex999.txt")).total == 999
    result = evaluate_analogies(v, datapath("questions-words.txt"))
    assert result.total.total == 19544 and len(result.sections) == 14
    assert (result.semantic.total, result.syntactic.total) == (8869, 10675)
