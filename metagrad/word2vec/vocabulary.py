"""Vocabulary: words and their ids, with counts.

Ids are ordered by count, so that a small id is a frequent word. Reading text is corpus.py's work; which words
are drawn as noise, and how often, is sampling.py's.
"""

from __future__ import annotations

import difflib
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from ..files import written_beside

_SEPARATORS = frozenset(" \t\n\r")

KeepRule = Callable[[str, int], "bool | None"]


class Vocabulary:
    """Tokens and ids 0 … V−1, one to one, with the count of each token.

    tokens: the tokens in id order, no two alike. counts: (V,) whole numbers ≥ 0.
    specials: those of the tokens that are reserved, such as "<pad>": no words of the language, wherever they
    stand. unknown: the one of the tokens whose id stands for everything that has none; it counts as special.

    `vocabulary.tokens` is a tuple, `vocabulary.counts` a read-only (V,) int64 array, and
    `vocabulary.specials` the ids of the special tokens, ascending: what a noise table has to leave out.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        counts: Sequence[int] | NDArray[np.integer],
        specials: Iterable[str] = (),
        unknown: str | None = None,
    ) -> None:
        if isinstance(tokens, str):
            raise TypeError(f"tokens must be a sequence of strings, got the one string {tokens!r}")
        self.tokens = tuple(tokens)
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            twice = next(token for i, token in enumerate(self.tokens) if self._ids[token] != i)
            raise ValueError(f"the token {twice!r} stands more than once in the vocabulary")
        self.counts = np.array(counts, dtype=np.int64)
        if self.counts.shape != (len(self),):
            raise ValueError(f"{len(self)} tokens need {len(self)} counts, got an array of shape {self.counts.shape}")
        if len(self) and self.counts.min() < 0:
            least = int(self.counts.argmin())
            raise ValueError(f"the count of {self.tokens[least]!r} is {self.counts[least]}, below 0")
        self.counts.flags.writeable = False
        special_tokens = _special_tokens(specials, unknown)
        missing = [token for token in special_tokens if token not in self._ids]
        if missing:
            raise ValueError(f"the special token {missing[0]!r} is not among the tokens")
        self.specials = np.array(sorted(self._ids[token] for token in special_tokens), dtype=np.int64)
        self.specials.flags.writeable = False
        self.unknown = unknown

    @classmethod
    def build(
        cls,
        sentences: Iterable[Iterable[str]],
        min_count: int = 1,
        max_size: int | None = None,
        specials: Iterable[str] = (),
        keep: KeepRule | None = None,
        unknown: str | None = None,
        progress: bool = False,
    ) -> Vocabulary:
        """Count the tokens of `sentences` (lists of strings) in one pass and choose as `from_counts` does.

        Memory grows with the number of different tokens only. TypeError where a sentence is a string or
        another thing that is not a list of tokens.
        """
        if isinstance(sentences, (str, bytes, os.PathLike)):
            raise TypeError(
                f"sentences must be token lists, such as [['hello', 'world']], got {sentences!r}; "
                "a file is read by Sentences(path)"
            )
        counts: Counter[str] = Counter()
        checked = checked_sentences(sentences)
        counted = iter(tqdm(checked, "counting", unit=" sentences", disable=not progress))
        while batch := list(itertools.islice(counted, 1000)):
            counts.update(itertools.chain.from_iterable(batch))
        return cls.from_counts(counts, min_count, max_size, specials, keep, unknown)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        min_count: int = 1,
        max_size: int | None = None,
        specials: Iterable[str] = (),
        keep: KeepRule | None = None,
        unknown: str | None = None,
    ) -> Vocabulary:
        """The vocabulary of a text whose tokens have these counts, given in order of first appearance.

        specials: reserved tokens; they take the first ids, in this order, whatever their count, and keep the
            count that they have in the text. `unknown` is one of them, put first if it is not in the list.
        min_count: ordinary tokens that are rarer are dropped.
        keep: a rule (token, count) -> True keeps the token, False drops it, None leaves it to min_count.
        max_size: of the tokens kept, only so many of the most frequent, the special ones not counted.
        unknown: the token that stands for the dropped ones; its count is then theirs and its own.

        Ordinary tokens are ordered by count, and by first appearance where counts are equal. All counting is
        exact: no token is pruned on the way. ValueError if no ordinary token is left.
        """
        if min_count < 0 or (max_size is not None and max_size < 1):
            raise ValueError(f"min_count must be ≥ 0 and max_size ≥ 1 or None, got {min_count} and {max_size}")
        for token in counts:
            if not isinstance(token, str):
                raise TypeError(f"tokens must be strings, got {token!r} of type {type(token).__name__}")
        special_tokens = _special_tokens(specials, unknown)
        reserved = set(special_tokens)
        words = [
            token
            for token, count in counts.items()
            if token not in reserved and _is_kept(token, int(count), min_count, keep)
        ]
        if not words:
            seen = sum(counts.values())
            raise ValueError(
                f"the vocabulary is empty: min_count={min_count}, tokens seen: {seen} "
                f"({len(counts)} different), tokens kept: 0; lower min_count or give more text"
            )
        word_counts = np.array([counts[word] for word in words], dtype=np.int64)
        order = np.argsort(-word_counts, kind="stable")[:max_size]
        special_counts = [int(counts.get(token, 0)) for token in special_tokens]
        if unknown is not None:
            named = sum(counts.get(token, 0) for token in special_tokens) + int(word_counts[order].sum())
            special_counts[special_tokens.index(unknown)] += sum(counts.values()) - named
        tokens = special_tokens + [words[i] for i in order]
        return cls(tokens, special_counts + word_counts[order].tolist(), reserved, unknown)

    def __getitem__(self, token: str) -> int:
        """The id of a token; that of `unknown` where it has none, else KeyError with close spellings."""
        found = self._ids.get(token)
        if found is not None:
            return found
        if self.unknown is not None:
            return self._ids[self.unknown]
        raise KeyError(unknown_token_message(token, self.tokens))

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return (
            self.tokens == other.tokens
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.specials, other.specials)
            and self.unknown == other.unknown
        )

    __hash__ = None  # type: ignore[assignment]  # equality is by content, which is too long to hash

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} tokens, {len(self.specials)} special)"

    def encode(self, tokens: Iterable[str]) -> NDArray[np.int32]:
        """The ids of tokens, (N,) int32.

        A token without an id becomes `unknown`'s, or is *left out* where the vocabulary has no unknown token:
        the result is then shorter than the input.
        """
        if isinstance(tokens, str):
            raise TypeError(f"encode takes a list of tokens, got the string {tokens!r}; split it first")
        missing = -1 if self.unknown is None else self._ids[self.unknown]
        ids = np.array([self._ids.get(token, missing) for token in tokens], dtype=np.int32)
        return ids if self.unknown is not None else ids[ids >= 0]

    def decode(self, ids: Iterable[int] | NDArray[np.integer]) -> list[str]:
        """The tokens of ids. IndexError for an id that is not in 0 … V−1."""
        result = []
        for i in ids:
            if not 0 <= i < len(self):
                raise IndexError(f"id {i} is not in this vocabulary of {len(self)} tokens (0 to {len(self) - 1})")
            result.append(self.tokens[i])
        return result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one token a line, in id order: `token count`, then `special` or `unknown` if it is that.

        UTF-8 whatever the locale; written beside and renamed. ValueError, before a byte is written, for a
        token that could not be read back: one that is empty or holds a space, a tab or a line break.
        """
        for token in self.tokens:
            if not token or not _SEPARATORS.isdisjoint(token):
                raise ValueError(
                    f"the token {token!r} cannot be saved: it is empty or holds a space, tab or line break"
                )
        marks = dict.fromkeys(self.specials.tolist(), " special")
        if self.unknown is not None:
            marks[self._ids[self.unknown]] = " unknown"
        with written_beside(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
            for i, (token, count) in enumerate(zip(self.tokens, self.counts.tolist(), strict=True)):
                file.write(f"{token} {count}{marks.get(i, '')}\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read what `save` wrote, or the C tool's vocabulary file. ValueError names the line at fault."""
        tokens: list[str] = []
        counts: list[int] = []
        specials: list[str] = []
        unknown: str | None = None
        first_lines: dict[str, int] = {}
        for number, line in _numbered_lines(path):
            token, count, mark = _parsed(line, f"{os.fspath(path)}, line {number}")
            if token in first_lines:
                raise ValueError(f"{os.fspath(path)}, line {number}: {token!r} stands on line {first_lines[token]} too")
            first_lines[token] = number
            tokens.append(token)
            counts.append(count)
            if mark:
                specials.append(token)
            if mark == "unknown":
                if unknown is not None:
                    raise ValueError(f"{os.fspath(path)}, line {number}: a second unknown token, after {unknown!r}")
                unknown = token
        if not tokens:
            raise ValueError(f"{os.fspath(path)} holds no tokens")
        return cls(tokens, counts, specials, unknown)


def checked_sentences(sentences: Iterable[Iterable[str]]) -> Iterator[Iterable[str]]:
    """Pass sentences on; TypeError at the first that is no list of tokens, with advice."""
    if isinstance(sentences, Mapping):
        raise TypeError("sentences must be token lists, such as [['hello', 'world']], got a dict")
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, (str, bytes)):
            if len(sentence.split()) > 1:
                advice = f"sentence {number} is the string {sentence[:40]!r}: give {sentence.split()[:6]!r}"
            else:
                advice = f"sentence {number} is {sentence!r}: give a list of sentences, not one sentence"
            raise TypeError(f"a sentence must be a list of tokens, but {advice}")
        if isinstance(sentence, (Mapping, Set)) or not isinstance(sentence, Iterable):
            raise TypeError(
                f"a sentence must be a list of tokens, got a {type(sentence).__name__} as sentence {number}"
            )
        yield sentence


def unknown_token_message(token: object, tokens: Iterable[str]) -> str:
    """What to say of a token that is not among `tokens`, which come most frequent first."""
    close = closest_spellings(token, tokens) if isinstance(token, str) else []
    hint = f"; close spellings: {', '.join(close)}" if close else ""
    return f"the token {token!r} is not in the vocabulary{hint}"


def closest_spellings(token: str, tokens: Iterable[str], number: int = 3) -> list[str]:
    """Up to `number` of the tokens that are spelled most alike, best first.

    Looked for among the first 20 000 of like length, which keeps an error message from taking seconds.
    """
    alike = (other for other in tokens if abs(len(other) - len(token)) <= 2)
    return difflib.get_close_matches(token, itertools.islice(alike, 20_000), number)


def _special_tokens(specials: Iterable[str], unknown: str | None) -> list[str]:
    if isinstance(specials, str):
        raise TypeError(f"specials must be a list of tokens, got the string {specials!r}: give [{specials!r}]")
    tokens = list(dict.fromkeys(specials))
    return tokens if unknown is None or unknown in tokens else [unknown, *tokens]


def _is_kept(token: str, count: int, min_count: int, keep: KeepRule | None) -> bool:
    verdict = None if keep is None else keep(token, count)
    return count >= min_count if verdict is None else bool(verdict)


def _numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(f"{os.fspath(path)}, line {number}: not UTF-8 ({error.reason})") from None
            if line:
                yield number, line


def _parsed(line: str, place: str) -> tuple[str, int, str]:
    token, *rest = line.split(" ")
    if not token or len(rest) not in (1, 2) or rest[1:] not in ([], ["special"], ["unknown"]):
        raise ValueError(f"{place}: expected 'token count', with 'special' or 'unknown' behind or not, got {line!r}")
    if not (rest[0].isascii() and rest[0].isdigit()):
        raise ValueError(f"{place}: the count of {token!r} must be a whole number, got {rest[0]!r}")
    return token, int(rest[0]), rest[1] if len(rest) == 2 else ""
