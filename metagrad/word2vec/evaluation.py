"""How good vectors are: correlation with human similarity scores, and analogies.

The files are those that the field passes around; where they differ, each is read as it is. Measures are
written out here with NumPy, and agree with gensim's on the same vectors.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .vectors import WordVectors

_SCORE_BYTES = 1 << 26  # of analogy scores computed at a time


@dataclass(frozen=True)
class PairsResult:
    """Agreement of cosines with human scores.

    spearman, pearson: −1 … 1; NaN where fewer than two pairs could be used, or all scores are alike.
    used, total: how many of the file's pairs were. unknown: the words for want of which the others were not,
    in order of appearance.
    """

    spearman: float
    pearson: float
    used: int
    total: int
    unknown: tuple[str, ...]

    @property
    def oov(self) -> int:
        """How many pairs were left out because a word is unknown."""
        return self.total - self.used

    def __str__(self) -> str:
        return (
            f"Spearman {self.spearman:.3f}, Pearson {self.pearson:.3f}, "
            f"{self.used} of {self.total} pairs ({self.oov} with unknown words)"
        )


class Score(NamedTuple):
    """Analogies answered rightly, those whose four words are known, and all there are."""

    correct: int
    used: int
    total: int

    @property
    def accuracy(self) -> float:
        """correct / used, 0 … 1; NaN if none could be used."""
        return self.correct / self.used if self.used else float("nan")


@dataclass(frozen=True)
class AnalogiesResult:
    """Scores by section, in the file's order. Sections named gram… are syntactic, the others semantic."""

    sections: dict[str, Score]

    @property
    def total(self) -> Score:
        return _sum(list(self.sections.values()))

    @property
    def semantic(self) -> Score:
        return _sum([score for name, score in self.sections.items() if not name.startswith("gram")])

    @property
    def syntactic(self) -> Score:
        return _sum([score for name, score in self.sections.items() if name.startswith("gram")])

    @property
    def accuracy(self) -> float:
        """Over all sections: right answers of those that could be asked."""
        return self.total.accuracy

    def __str__(self) -> str:
        rows = {**self.sections, "semantic": self.semantic, "syntactic": self.syntactic, "total": self.total}
        width = max(len(name) for name in rows)
        return "\n".join(
            f"{name:<{width}}  {100 * score.accuracy:5.1f} %  {score.correct} of {score.used} "
            f"({score.total - score.used} with unknown words)"
            for name, score in rows.items()
        )


def evaluate_pairs(
    vectors: WordVectors, path: str | os.PathLike[str], *, lower: bool = True, restrict: int | None = None
) -> PairsResult:
    """Compare cosines with the human scores of a file such as WordSim-353, SimLex-999, MEN or RW.

    A line is two words and a score, between tabs (words may hold spaces then), commas, or spaces; # starts a
    comment, and a first line without a number is a heading. Where more columns follow, the first that is a
    number is the score.
    lower: compare words without regard to case; of tokens that differ in case only, the first stands for all.
    restrict: only the first so many tokens are known. ValueError names the line at fault.
    """
    ids = _ids_by_word(vectors, lower, restrict)
    pairs: list[tuple[int, int]] = []
    human: list[float] = []
    unknown: dict[str, None] = {}
    total = 0
    for first, second, score in _scored_pairs(path):
        total += 1
        missing = [word for word in (first, second) if _folded(word, lower) not in ids]
        if missing:
            unknown.update(dict.fromkeys(missing))
        else:
            pairs.append((ids[_folded(first, lower)], ids[_folded(second, lower)]))
            human.append(score)
    rows = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    left, right = vectors.directions(rows[:, 0]), vectors.directions(rows[:, 1])
    cosines = np.einsum("ij,ij->i", left, right, dtype=np.float64)
    scores = np.array(human)
    return PairsResult(spearman(cosines, scores), pearson(cosines, scores), len(pairs), total, tuple(unknown))


def evaluate_analogies(
    vectors: WordVectors,
    path: str | os.PathLike[str],
    *,
    restrict: int | None = 30_000,
    lower: bool = True,
) -> AnalogiesResult:
    """Ask the analogies of a file such as questions-words.txt: of "a b c d", is d the nearest to b − a + c?

    Four words a line in sections, each after a line ": name" (3CosAdd, Mikolov et al. 2013; a, b and c are no
    answers). restrict: only the first so many tokens are known and searched; None for all. lower: as for
    evaluate_pairs. A question with an unknown word is left out of the accuracy and counted.

    Memory: a copy of the rows that are searched, and 64 MiB of scores. ValueError names the line at fault.
    """
    ids = _ids_by_word(vectors, lower, restrict)
    names: dict[str, int] = {}
    sections: list[int] = []  # of each question
    questions: list[list[int]] = []  # the ids of its words, −1 for the unknown
    for section, words in _analogies(path):
        sections.append(names.setdefault(section, len(names)))
        questions.append([ids.get(_folded(word, lower), -1) for word in words])
    table = np.array(questions, dtype=np.intp).reshape(-1, 4)
    section_of = np.array(sections, dtype=np.intp)
    is_known = (table >= 0).all(axis=1)
    is_right = np.zeros(len(table), dtype=bool)
    is_right[is_known] = _answered(vectors, table[is_known], ids, lower, restrict)
    tallies = (
        np.bincount(section_of[chosen], minlength=len(names)).tolist() for chosen in (is_right, is_known, slice(None))
    )
    return AnalogiesResult(dict(zip(names, map(Score, *tallies), strict=True)))


def holds_analogies(path: str | os.PathLike[str]) -> bool:
    """Whether a file is for evaluate_analogies, its first line naming a section, rather than for evaluate_pairs."""
    return next(_lines(path), ("", ""))[1].startswith(":")


def spearman(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Spearman's ρ of (N,) and (N,): Pearson's correlation of their ranks, those of equal values averaged."""
    return pearson(ranks(a), ranks(b))


def pearson(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Pearson's correlation of (N,) and (N,); NaN if N < 2 or one of them is constant."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def ranks(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """The rank of each value, 1 for the least; equal values share the mean of their ranks."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[group]


def _answered(
    vectors: WordVectors,
    questions: NDArray[np.intp],
    ids: dict[str, int],
    lower: bool,
    restrict: int | None,
) -> NDArray[np.bool_]:
    """Which of the questions (Q, 4), all of known words, are answered rightly."""
    rows = vectors.row_count(restrict)
    table = vectors.directions(slice(rows))  # (R, d)
    # word[i]: the row that stands for row i's word, so that "Paris" is no answer where "paris" was asked
    word = np.array([ids[_folded(token, lower)] for token in vectors.tokens[:rows]], dtype=np.intp)
    is_right = np.empty(len(questions), dtype=bool)
    step = max(1, _SCORE_BYTES // (4 * max(rows, 1)))
    for start in range(0, len(questions), step):
        block = questions[start : start + step]
        asked = block[:, :3]
        a, b, c = table[asked].transpose(1, 0, 2)
        scores = (b - a + c) @ table.T  # (Q, R); the query's length does not change which is greatest
        each = np.arange(len(block))
        scores[each[:, None], asked] = -np.inf
        answer = scores.argmax(axis=1)
        while True:
            is_answer = scores[each, answer] > -np.inf  # not where every token was asked
            repeats = (word[answer, None] == asked).any(axis=1)  # another spelling of a word that was asked
            again = np.flatnonzero(is_answer & repeats)
            if not again.size:
                break
            scores[again, answer[again]] = -np.inf
            answer[again] = scores[again].argmax(axis=1)
        is_right[start : start + step] = is_answer & (word[answer] == block[:, 3])
    return is_right


def _folded(word: str, lower: bool) -> str:
    return word.lower() if lower else word


def _ids_by_word(vectors: WordVectors, lower: bool, restrict: int | None) -> dict[str, int]:
    """The row of each word that the first `restrict` tokens know: the first token that spells it."""
    ids: dict[str, int] = {}
    for row, token in enumerate(vectors.tokens[: vectors.row_count(restrict)]):
        ids.setdefault(_folded(token, lower), row)
    return ids


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """The lines that say something, each after its place as errors name it: "FILE, line N"."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            place = f"{os.fspath(path)}, line {number}"
            try:
                text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).decode("utf-8").strip()
            except UnicodeDecodeError as error:
                raise ValueError(f"{place}: not UTF-8 ({error.reason})") from None
            if text and not text.startswith("#"):
                yield place, text


def _scored_pairs(path: str | os.PathLike[str]) -> Iterator[tuple[str, str, float]]:
    column = None  # of the score
    has_heading = False
    for place, line in _lines(path):
        separator = "\t" if "\t" in line else "," if "," in line else None
        fields = [field.strip() for field in line.split(separator)]
        if column is None:
            numeric = (i for i, field in enumerate(fields) if i >= 2 and _number(field) is not None)
            column = next(numeric, None)
            if column is None and not has_heading and len(fields) >= 3:
                has_heading = True
                continue
        score = _number(fields[column]) if column is not None and column < len(fields) else None
        if score is None or not fields[0] or not fields[1]:
            raise ValueError(f"{place}: two words and a score are due, found {line[:60]!r}")
        yield fields[0], fields[1], score


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _analogies(path: str | os.PathLike[str]) -> Iterator[tuple[str, list[str]]]:
    """The name of its section and the four words of each question."""
    section = None
    for place, line in _lines(path):
        if line.startswith(":"):
            section = line[1:].strip()
            continue
        words = line.split()
        if section is None:
            raise ValueError(f"{place}: a section, such as ': family', is due before the first question")
        if len(words) != 4:
            raise ValueError(f"{place}: four words are due, found {len(words)} in {line[:60]!r}")
        yield section, words


def _sum(scores: list[Score]) -> Score:
    return Score(*(sum(column) for column in zip(*scores, strict=True))) if scores else Score(0, 0, 0)
