"""WordVectors: the trained table with its words, to ask, save and load.

It knows nothing of training; the formats on disk are vector_files.py's work, the benchmarks evaluation.py's.
"""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..files import written_beside
from . import vector_files
from .vocabulary import unknown_token_message

Neighbours = list[tuple[str, float]]

_SCORE_BYTES = 1 << 26  # of scores computed at a time for many queries
_BLOCK_ROWS = 1 << 16


class UnknownTokenError(KeyError):
    """A KeyError that looks for close spellings only when its message is read, so that catching it is cheap."""

    def __init__(self, token: object, tokens: Sequence[str]) -> None:
        super().__init__(token, tokens)

    def __str__(self) -> str:
        return unknown_token_message(*self.args)


class WordVectors:
    """V tokens and their vectors, for reading only.

    tokens: V different strings in id order, best most frequent first. vectors: (V, d), an array, a Tensor on
    any device, or nested lists; kept as float32. counts: (V,) how often each token occurs, if that is known.

    `v[token]` is the token's vector, `v.vectors` the (V, d) table and `v.tokens` the tuple of words. What is
    handed out is read-only and what is handed in is copied (unless it is marked read-only already), so no
    query can be answered from lengths that have gone stale. There is no train(): what a trainer needs beside
    these vectors (the context table, the schedule) is in its checkpoint, and training goes on from there.

    Memory: the table (4·V·d bytes, on disk if memory-mapped), the tokens, and from the first search on the
    rows' lengths (4·V bytes). A search takes 4·V bytes a query, at most 64 MiB for many at once.

    Scores are cosines. Equal scores are ordered by id. A row without a direction (zero, not finite, or longer
    than float32 can say) comes last, with score 0.
    """

    def __init__(
        self, tokens: Iterable[str], vectors: Any, counts: Sequence[int] | NDArray[np.integer] | None = None
    ) -> None:
        self.tokens = _checked_tokens(tokens)
        self.vectors = _checked_table(vectors, len(self.tokens))
        self.counts = None if counts is None else _checked_counts(counts, self.tokens)
        self._ids = {token: row for row, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            row, token = next((i, t) for i, t in enumerate(self.tokens) if self._ids[t] != i)
            raise ValueError(f"the token {token!r} stands in rows {row} and {self._ids[token]}")

    # ── Files ───────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        mmap: bool = False,
        errors: str = "strict",
    ) -> WordVectors:
        """Read vectors from a file of any tool.

        format: by default what the name's ending says:
          "text" (.txt, .vec)   a token and its values a line; a first line of two whole numbers is a header
          "glove" (.glove)      the same, and the first line is a vector whatever it looks like
          "binary" (.bin)       word2vec's binary form, with or without a newline after each vector
          "npz", "npy"          what `save` writes; mmap=True leaves an .npy's table on disk until it is read
        The first three may be compressed with gzip, under any name. In text the last d fields of a line are
        the vector and the rest is the token, so tokens with spaces can be read; d comes from the first line.
        errors="replace" reads tokens that are not UTF-8. Of repeated tokens the first is kept, with a warning.

        ValueError names the line, record or row at fault; nothing in a file is ever run.
        """
        tokens, vectors, counts = vector_files.read(path, format, mmap, errors)
        vectors.flags.writeable = False  # nobody else has it, so it need not be copied
        return cls(tokens, vectors, counts)

    def save(self, path: str | os.PathLike[str], format: str | None = None, *, allow_nonfinite: bool = False) -> None:
        """Write the vectors so that `load` gets the same ones back, bit for bit, from every format.

        format: as for `load`; names that end in .gz are compressed. Text and binary files hold no counts,
        .npz and .npy do. It is written beside `path` and renamed when complete.

        ValueError, before a byte is written, for what could not be read back: a token that is empty or holds
        white space (in text and binary), or a vector with NaN or infinity (unless allow_nonfinite).
        """
        vector_files.write(path, self.tokens, self.vectors, self.counts, format, allow_nonfinite)

    def save_projector(self, folder: str | os.PathLike[str], restrict: int | None = None) -> None:
        """Write vectors.tsv and metadata.tsv, which TensorBoard's Embedding Projector takes, into `folder`.

        restrict: only the first so many tokens; a browser handles about ten thousand.
        """
        rows = self.row_count(restrict)
        columns = [self.tokens[:rows]]
        header = ""
        if self.counts is not None:  # the projector expects a header where there is more than one column
            columns.append(tuple(map(str, self.counts[:rows].tolist())))
            header = "token\tcount\n"
        for row, token in enumerate(self.tokens[:rows]):
            if not token or any(separator in token for separator in "\t\n\r"):
                raise ValueError(
                    f"the token {token!r} (row {row}) is empty or holds a tab or a line break, "
                    "which metadata.tsv cannot hold"
                )
        Path(folder).mkdir(parents=True, exist_ok=True)
        metadata = ("\t".join(fields) + "\n" for fields in zip(*columns, strict=True))
        _write_lines(Path(folder, "metadata.tsv"), header, metadata)
        table = (line + "\n" for line in vector_files.rows_as_text(self.vectors[:rows], "\t"))
        _write_lines(Path(folder, "vectors.tsv"), "", table)

    # ── One token ───────────────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __getitem__(self, token: str) -> NDArray[np.float32]:
        """The vector of a token, (d,), read-only. KeyError with close spellings if it is unknown."""
        return self.vectors[self.index(token)]

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} tokens, {self.dim} dimensions)"

    @property
    def dim(self) -> int:
        """d, the length of a vector."""
        return self.vectors.shape[1]

    def index(self, token: str) -> int:
        """The row of a token. KeyError with close spellings if it is unknown."""
        if not isinstance(token, str):
            raise TypeError(f"a token is a string, got {token!r}; row i of the table is v.vectors[i]")
        row = self._ids.get(token)
        if row is None:
            raise UnknownTokenError(token, self.tokens)
        return row

    def directions(self, rows: slice | NDArray[np.integer]) -> NDArray[np.float32]:
        """A copy of rows scaled to length 1, (N, d); a row without a direction is zeros."""
        lengths, undirected = self._lengths
        with np.errstate(invalid="ignore"):
            scaled = self.vectors[rows] / lengths[rows, None]
        if undirected.size:
            scaled[np.isin(np.arange(len(self))[rows], undirected)] = 0
        return scaled

    def row_count(self, restrict: int | None) -> int:
        """How many rows are searched where `restrict` is given. ValueError unless it is None or 1 and more."""
        if restrict is None:
            return len(self)
        if isinstance(restrict, bool) or not isinstance(restrict, numbers.Integral) or restrict < 1:
            raise ValueError(f"restrict must be a whole number, 1 or more, or None, not {restrict!r}")
        return min(operator.index(restrict), len(self))

    # ── Similar tokens ──────────────────────────────────────────────────────────────────────────────────────

    def similarity(self, a: str | ArrayLike, b: str | ArrayLike) -> float:
        """The cosine of two tokens or vectors; 0 if one has no direction."""
        return float(self._direction(a) @ self._direction(b))

    def most_similar(
        self,
        positive: str | ArrayLike | Sequence[str | ArrayLike],
        negative: str | ArrayLike | Sequence[str | ArrayLike] = (),
        topn: int = 10,
        restrict: int | None = None,
    ) -> Neighbours:
        """The tokens whose cosine with Σ positive − Σ negative is greatest: (token, score), best first.

        positive, negative: a token, a vector (d,), or a list of either; each counts at length 1. Tokens that
        were given are not in the answer, tokens with the same vector are. The analogy "man is to king as
        woman is to ?" is most_similar(["king", "woman"], ["man"]) (3CosAdd, Mikolov et al. 2013).
        topn: at most so many; fewer if there are no more. restrict: search the first so many tokens only.
        """
        added, subtracted = self._terms(positive), self._terms(negative)
        if not added and not subtracted:
            raise ValueError("most_similar needs at least one token or vector")
        query = np.zeros(self.dim)
        for term in added:
            query += self._direction(term)
        for term in subtracted:
            query -= self._direction(term)
        scores = self._cosines(query[None], self.row_count(restrict))[0]
        return self._ranked(scores, topn, added + subtracted)

    def cosmul(
        self,
        positive: str | ArrayLike | Sequence[str | ArrayLike],
        negative: str | ArrayLike | Sequence[str | ArrayLike] = (),
        topn: int = 10,
        restrict: int | None = None,
        eps: float = 1e-6,
    ) -> Neighbours:
        """As most_similar, but with scores Π c(positive) / (Π c(negative) + eps), c = (1 + cosine) / 2.

        3CosMul (Levy & Goldberg 2014, equation 4 and note 7): no single large similarity decides alone.
        """
        added, subtracted = self._terms(positive), self._terms(negative)
        if not added:
            raise ValueError("cosmul needs at least one positive token or vector")
        terms = np.array([self._direction(term) for term in added + subtracted])
        cosines = self._cosines(terms, self.row_count(restrict))
        closeness = (1 + np.maximum(cosines, -1)) / 2
        scores = closeness[: len(added)].prod(axis=0) / (closeness[len(added) :].prod(axis=0) + np.float32(eps))
        scores[np.isneginf(cosines[0])] = -np.inf
        return self._ranked(scores, topn, added + subtracted)

    def nearest(self, vectors: ArrayLike, topn: int = 10, restrict: int | None = None) -> Neighbours | list[Neighbours]:
        """The tokens nearest to a vector (d,) by cosine, or for each of many vectors (N, d) a list of its own.

        No token is left out: the nearest to `v["cat"]` is "cat". Many at once cost far less than one by one.
        """
        queries = _host_array(vectors)
        if queries.dtype.kind not in "fiu":
            raise TypeError("nearest takes a vector or a table of vectors; of tokens, give v[token]")
        if queries.ndim not in (1, 2) or queries.shape[-1] != self.dim:
            raise ValueError(f"vectors must be ({self.dim},) or (N, {self.dim}), got shape {queries.shape}")
        if not np.isfinite(queries).all():
            raise ValueError("a query vector holds NaN or infinity")
        rows = self.row_count(restrict)
        table = np.atleast_2d(queries)
        step = max(1, _SCORE_BYTES // (4 * max(rows, 1)))
        answers: list[Neighbours] = []
        for start in range(0, len(table), step):
            scores = self._cosines(table[start : start + step], rows)
            answers += [self._ranked(row, topn) for row in scores]
        return answers[0] if queries.ndim == 1 else answers

    def doesnt_match(self, tokens: Sequence[str]) -> str:
        """The token, of three or more, whose cosine with the mean direction of them all is least."""
        if isinstance(tokens, str):
            raise TypeError(f"doesnt_match takes a list of tokens, got the string {tokens!r}; split it first")
        tokens = list(tokens)
        if len(tokens) < 3:
            raise ValueError(f"doesnt_match needs at least three tokens, got {tokens!r}")
        directions = np.array([self._direction(self[token]) for token in tokens])
        return tokens[int(np.argmin(directions @ directions.sum(axis=0)))]

    # ── How it is done ──────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _lengths(self) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
        """Each row's length, (V,), and the rows without a direction, whose length is set to 1."""
        lengths = np.empty(len(self), dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(self), _BLOCK_ROWS):
                # squares of float32 overflow and vanish, those of float64 do not
                block = self.vectors[start : start + _BLOCK_ROWS].astype(np.float64)
                lengths[start : start + _BLOCK_ROWS] = np.sqrt(np.einsum("ij,ij->i", block, block))
        undirected = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
        lengths[undirected] = 1
        return lengths, undirected

    def _cosines(self, queries: NDArray[np.floating], rows: int) -> NDArray[np.float32]:
        """Cosines of queries (N, d) with the first `rows` rows, (N, rows); −∞ at rows without a direction."""
        lengths, undirected = self._lengths
        with np.errstate(over="ignore", invalid="ignore"):
            scores = _unit(queries).astype(np.float32) @ self.vectors[:rows].T
            scores /= lengths[:rows]
        scores[:, undirected[undirected < rows]] = -np.inf
        return scores

    def _ranked(self, scores: NDArray[np.floating], topn: int, excluded: Iterable[str | NDArray] = ()) -> Neighbours:
        if isinstance(topn, bool) or not isinstance(topn, numbers.Integral) or topn < 0:
            raise ValueError(f"topn must be a whole number, 0 or more, not {topn!r}")
        left_out = {self._ids[term] for term in excluded if isinstance(term, str)}
        best = top(scores, operator.index(topn) + len(left_out))
        answers = [(self.tokens[i], float(scores[i])) for i in best.tolist() if i not in left_out]
        return [(token, 0.0 if score == -np.inf else score) for token, score in answers[:topn]]

    def _terms(self, query: Any) -> list[str | NDArray[np.float64]]:
        """A token, a vector, or a list of either, as a list; each is checked."""
        if isinstance(query, str) or _is_vector(query):
            items = [query]
        elif isinstance(query, Iterable) and not isinstance(query, Mapping):
            items = list(query)
        else:
            raise TypeError(f"a query is a token, a vector or a list of them, not {query!r}")
        terms: list[str | NDArray[np.float64]] = []
        for item in items:
            if isinstance(item, str):
                self.index(item)
                terms.append(item)
            else:
                terms.append(self._checked_vector(item))
        return terms

    def _direction(self, term: str | ArrayLike) -> NDArray[np.float64]:
        """A token's or vector's direction, (d,), length 1 or 0."""
        if not isinstance(term, str):
            return _unit(self._checked_vector(term))
        vector = self[term].astype(np.float64)
        return _unit(vector) if np.isfinite(vector).all() else np.zeros(self.dim)

    def _checked_vector(self, vector: ArrayLike) -> NDArray[np.float64]:
        array = _host_array(vector)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"a query vector must hold numbers, got {vector!r}")
        array = array.astype(np.float64)
        if array.shape != (self.dim,):
            raise ValueError(f"a query vector must have shape ({self.dim},), got {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError("a query vector holds NaN or infinity")
        return array


def top(scores: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """The indices of the `count` greatest of scores (V,), best first; equal scores in order of index."""
    count = min(count, len(scores))
    if count == 0:
        return np.empty(0, dtype=np.intp)
    least = np.partition(scores, -count)[-count]
    above = np.flatnonzero(scores > least)
    level = np.flatnonzero(scores == least)[: count - len(above)]
    indices = np.concatenate([above, level])
    return indices[np.lexsort((indices, -scores[indices]))]


def save_pretrained(vocab: Iterable[str], weight: Any, path: str | os.PathLike[str]) -> None:
    """Write a vocabulary (its tokens in id order) and its (V, d) table, an array or Tensor, to a vector file.

    The format goes by the ending of `path`, as for `WordVectors.save`, whose errors it raises.
    """
    WordVectors(vocab, weight, getattr(vocab, "counts", None)).save(path)


def load_pretrained(path: str | os.PathLike[str]) -> tuple[list[str], NDArray[np.float32]]:
    """The tokens of a vector file in id order and their (V, d) table, which is the caller's to change."""
    tokens, vectors, _ = vector_files.read(path)
    return tokens, vectors


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Vectors (…, d) scaled to length 1, in float64; zeros stay zeros."""
    exact = vectors.astype(np.float64)
    largest = np.abs(exact).max(axis=-1, keepdims=True)  # taken out first, so that no square overflows
    exact /= np.where(largest == 0, 1, largest)
    lengths = np.linalg.norm(exact, axis=-1, keepdims=True)
    return exact / np.where(lengths == 0, 1, lengths)


def _host_array(values: Any) -> NDArray:
    """Values as a NumPy array: a Tensor gives its own by .numpy(), from whatever device."""
    to_host = getattr(values, "numpy", None)
    return np.asarray(to_host() if callable(to_host) else values)


def _is_vector(query: Any) -> bool:
    """Whether a query is one vector: an array or Tensor of numbers, or a list of plain ones."""
    if isinstance(query, np.ndarray) or callable(getattr(query, "numpy", None)):
        return _host_array(query).dtype.kind in "fiu"
    return isinstance(query, Sequence) and len(query) > 0 and all(isinstance(x, numbers.Real) for x in query)


def _checked_tokens(tokens: Iterable[str]) -> tuple[str, ...]:
    if isinstance(tokens, str | bytes | Mapping):
        raise TypeError(
            f"tokens must be a list of strings in id order, got a {type(tokens).__name__}; "
            "of a dict from tokens to ids, give sorted(d, key=d.get)"
        )
    result = tuple(tokens)
    for row, token in enumerate(result):
        if not isinstance(token, str):
            raise TypeError(f"tokens must be strings, but token {row} is {token!r}")
    return result


def _checked_table(vectors: Any, rows: int) -> NDArray[np.float32]:
    """The table as read-only float32, copied unless it is that already."""
    array = _host_array(vectors)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"vectors must be numbers, got an array of {array.dtype}")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"vectors must have shape (V, d) with d of 1 or more, got {array.shape}")
    if len(array) != rows:
        raise ValueError(f"{rows} tokens need {rows} vectors, got {len(array)}")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and save refuses that
        table = np.array(array, dtype=np.float32, order="C", copy=True if array.flags.writeable else None)
    table.flags.writeable = False
    return table


def _checked_counts(counts: Any, tokens: tuple[str, ...]) -> NDArray[np.int64]:
    given = _host_array(counts)
    if given.shape != (len(tokens),) or (given.dtype.kind not in "iu" and given.size):
        raise ValueError(
            f"{len(tokens)} tokens need {len(tokens)} whole numbers as counts, got {given.dtype} {given.shape}"
        )
    if given.size and given.min() < 0:
        row = int(given.argmin())
        raise ValueError(f"the count of {tokens[row]!r} (row {row}) is {given[row]}, below 0")
    array = given.astype(np.int64)
    array.flags.writeable = False
    return array


def _write_lines(path: Path, header: str, lines: Iterable[str]) -> None:
    with written_beside(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
        file.write(header)
        file.writelines(lines)
