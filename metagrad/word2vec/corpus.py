"""Corpus: a text as one array of word ids and the places where its sentences end.

A text is one sentence a line, UTF-8, words separated by spaces. Cutting it into words is the user's choice
and comes before; windows, subsampling and noise are sampling.py's work.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import itertools
import json
import lzma
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from ..files import written_beside
from .vocabulary import KeepRule, Vocabulary, checked_sentences

_PIECE = 1 << 18  # bytes read at once: the tokens of a piece then stay in the processor's cache
_LONGEST_TOKEN = 1 << 20  # bytes
_LONGEST_SENTENCE = 10_000  # tokens that Sentences hands out at once
_BLOCK = 1 << 20  # numbers translated at once
_BREAK, _EMPTY = 0, 1  # the numbers of a sentence's end and of the empty token in a numbered text
_FORMAT = "metagrad corpus 1"
_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

PathLike = str | os.PathLike[str]


class Sentences:
    """The sentences of one or several text files, as lists of tokens; every loop over it begins anew.

    One sentence a line. A file whose name ends in .gz, .bz2 or .xz is unpacked on the way. Text is UTF-8
    whatever the locale; a byte-order mark at the beginning is no part of the first word. Tokens are separated
    by spaces and tabs, lines end in \\n, \\r\\n or \\r, and *nothing else separates*: a no-break space
    (U+00A0) or an ideographic space (U+3000) is part of its word. Empty lines are skipped.

    A line of more than 10 000 tokens (text8 is one line) is handed out in parts, so that memory stays small.
    Corpus reads the same files without that cut. Errors of encoding name the file and the line.
    """

    def __init__(self, paths: PathLike | Iterable[PathLike]) -> None:
        given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
        if not given:
            raise ValueError("Sentences needs at least one file")
        self.paths = [Path(path) for path in given]
        for path in self.paths:
            if not path.is_file():
                what = "is no regular file" if path.exists() else "does not exist"
                raise FileNotFoundError(
                    f"{os.fspath(path)!r} {what}: give a text file or token lists like [['hello', 'world']]"
                )

    def __iter__(self) -> Iterator[list[str]]:
        sentence: list[str] = []
        for text in _read_pieces(self.paths, progress=False):
            *ended, begun = text.split("\n")
            for line in ended:
                sentence += filter(None, line.split(" "))
                for start in range(0, len(sentence), _LONGEST_SENTENCE):
                    yield sentence[start : start + _LONGEST_SENTENCE]
                sentence = []
            sentence += filter(None, begun.split(" "))
            while len(sentence) > _LONGEST_SENTENCE:
                yield sentence[:_LONGEST_SENTENCE]
                sentence = sentence[_LONGEST_SENTENCE:]

    def __repr__(self) -> str:
        return f"Sentences({[os.fspath(path) for path in self.paths]})"


def as_sentences(source: Any) -> Sentences | Iterable[Sequence[str]]:
    """`source` itself if it is a re-iterable of token lists; Sentences(source) if it is the path of a file.

    TypeError with advice for what is neither: a one-shot generator, a dict, bytes, token lists that are
    strings. Only what can be seen without a pass is checked here.
    """
    if isinstance(source, (str, os.PathLike)):
        return Sentences(source)
    if isinstance(source, (bytes, Mapping)) or not isinstance(source, Iterable):
        raise TypeError(
            "a text is the path of a file or an iterable of token lists, such as [['hello', 'world']], "
            f"got a {type(source).__name__}"
        )
    if iter(source) is source:
        raise TypeError(
            f"a {type(source).__name__} can be read only once, and training reads its text again and again: "
            "give a list of token lists, or an object whose __iter__ begins anew"
        )
    if isinstance(source, Sequence):
        for _ in checked_sentences(itertools.islice(source, 1)):
            pass
    return source


class Corpus:
    """A text as word ids, with the places where sentences end.

    ids: (N,) int32, all sentences one behind the other. offsets: (S + 1,) int64; sentence s is
    ids[offsets[s] : offsets[s + 1]]. Words that the vocabulary dropped are not there, and neither are
    sentences that this emptied. vocabulary: what the ids mean. Both arrays are read-only.
    folder: where they lie as files that are mapped into memory, or None if they are in memory themselves.
    """

    def __init__(
        self,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        vocabulary: Vocabulary,
        folder: Path | None = None,
    ) -> None:
        self.ids = ids
        self.offsets = offsets
        self.vocabulary = vocabulary
        self.folder = folder

    def beginning(self, words: int) -> Corpus:
        """The first sentences, of so many words together at most, with the same vocabulary."""
        offsets = self.offsets[: np.searchsorted(self.offsets, words, side="right")]
        return Corpus(self.ids[: offsets[-1]], offsets, self.vocabulary)

    def occurrences(self) -> NDArray[np.int64]:
        """(V,) how often each word of the vocabulary stands in this text."""
        counts = np.zeros(len(self.vocabulary), np.int64)
        for start in range(0, len(self.ids), _BLOCK):
            counts += np.bincount(self.ids[start : start + _BLOCK], minlength=len(counts))
        return counts

    @classmethod
    def build(
        cls,
        source: Any,
        vocabulary: Vocabulary | None = None,
        *,
        min_count: int = 1,
        max_size: int | None = None,
        specials: Iterable[str] = (),
        keep: KeepRule | None = None,
        unknown: str | None = None,
        folder: PathLike | None = None,
        progress: bool = False,
    ) -> Corpus:
        """Read a text (see `as_sentences`) and turn it into ids.

        vocabulary: whose ids to use; without it one is made of this text, and min_count … unknown say how
            (see `Vocabulary.from_counts`).
        folder: keep the arrays there, as .npy files that are mapped into memory, for `Corpus.open`. Memory
            then grows with the number of different tokens only. Without it the arrays are in memory.
        progress: show two tqdm bars.

        The text itself is read once: every token is written down as the number of its first appearance. When
        all are counted and the vocabulary is chosen, a second pass over these numbers makes ids of them.
        """
        if vocabulary is not None and (min_count != 1 or max_size is not None or specials or keep or unknown):
            raise TypeError(
                "a vocabulary was given, so min_count, max_size, specials, keep and unknown have no use: leave them out"
            )
        sentences = as_sentences(source)
        stamps = _stamps(sentences)  # before reading: a file that changes meanwhile is then found stale
        with _scratch(folder) as numbered:
            tokens = _number(sentences, numbered, progress)
            if vocabulary is None:
                counts = _counts(numbered, len(tokens))
                seen = dict(zip(tokens, counts.tolist(), strict=True))
                vocabulary = Vocabulary.from_counts(seen, min_count, max_size, specials, keep, unknown)
            table = _translation(tokens, vocabulary)
            del tokens
            if folder is None:
                ids, offsets = _Parts(np.int32), _Parts(np.int64)
                _translate(numbered, table, ids, offsets, progress)
                return cls(ids.whole(), offsets.whole(), vocabulary)
            _write(Path(folder), numbered, table, vocabulary, stamps, progress)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: PathLike) -> Corpus:
        """The corpus that `build` left in a folder, its arrays mapped into memory, without reading the text.

        ValueError if the folder's files do not belong together, or if a text file that the corpus was built
        from has changed since (its size or its time); a text file that is gone does not matter.
        """
        place = Path(folder)
        if not (place / "corpus.json").is_file():
            raise FileNotFoundError(f"{os.fspath(place)!r} holds no corpus (no corpus.json): Corpus.build makes one")
        with open(place / "corpus.json", encoding="utf-8") as file:
            description = json.load(file)
        if description.get("format") != _FORMAT:
            raise ValueError(f"{place / 'corpus.json'} is of format {description.get('format')!r}, not {_FORMAT!r}")
        for path, size, time in description["sources"]:
            if os.path.exists(path) and [os.stat(path).st_size, os.stat(path).st_mtime_ns] != [size, time]:
                raise ValueError(f"the text {path} has changed since the corpus in {place} was made: build it anew")
        ids = np.load(place / "ids.npy", mmap_mode="r", allow_pickle=False)
        offsets = np.load(place / "offsets.npy", mmap_mode="r", allow_pickle=False)
        vocabulary = Vocabulary.load(place / "vocabulary.txt")
        whole = (
            _sum_of(place / "vocabulary.txt") == description["vocabulary"]
            and (ids.dtype, ids.shape) == (np.int32, (description["tokens"],))
            and (offsets.dtype, offsets.shape) == (np.int64, (description["sentences"] + 1,))
            and offsets[-1] == len(ids)
        )
        if not whole:
            raise ValueError(f"the files of the corpus in {place} do not belong together: build it anew")
        return cls(ids, offsets, vocabulary, place)

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self.offsets) - 1

    def __getitem__(self, sentence: int) -> NDArray[np.int32]:
        """The ids of one sentence."""
        if not -len(self) <= sentence < len(self):
            raise IndexError(f"sentence {sentence} is not in this corpus of {len(self)}")
        sentence %= len(self)
        return self.ids[self.offsets[sentence] : self.offsets[sentence + 1]]

    def __repr__(self) -> str:
        return f"Corpus({len(self.ids):,} tokens, {len(self):,} sentences, {self.vocabulary!r})"


# ── first pass: text to numbers ─────────────────────────────────────────────────────────────────────────────


def _number(sentences: Any, numbered: _Parts | _NpyFile, progress: bool) -> list[str]:
    """Write the text down as numbers of first appearance. The tokens in that order, whose numbers begin at 2.

    The dict numbers a new key by itself, so that one `map` over the tokens of a piece does all the work in C.
    """
    numbers: dict[Any, int] = defaultdict(itertools.count(2).__next__)
    if isinstance(sentences, Sentences):
        # The line break is made a token of its own: splitting at single spaces then finds tokens, sentence
        # ends and empty strings (between two spaces) in one go.
        end: Any = "\n"
        texts = _read_pieces(sentences.paths, progress)
        pieces: Iterator[list[Any]] = (text.replace("\n", " \n ").split(" ") for text in texts)
    else:
        end = object()
        checked = checked_sentences(sentences)
        pieces = _flattened(tqdm(checked, "reading", unit=" sentences", disable=not progress), end)
    numbers[end], numbers[""] = _BREAK, _EMPTY
    number = numbers.__getitem__
    for piece in pieces:
        try:
            numbered.append(np.fromiter(map(number, piece), np.int32, len(piece)))
        except TypeError:  # not hashable
            odd = next(token for token in piece if not isinstance(token, str) and token is not end)
            raise _not_a_string(odd) from None
    tokens = list(numbers)[2:]
    for token in tokens:
        if not isinstance(token, str):
            raise _not_a_string(token)
    return tokens


def _not_a_string(token: object) -> TypeError:
    return TypeError(f"tokens must be strings, got {token!r} of type {type(token).__name__}")


def _flattened(sentences: Iterable[Iterable[str]], end: Any) -> Iterator[list[Any]]:
    """Sentences one behind the other with `end` behind each, some ten thousand tokens at once."""
    tokens: list[Any] = []
    for sentence in sentences:
        tokens += sentence
        tokens.append(end)
        if len(tokens) > 50_000:
            yield tokens
            tokens = []
    yield tokens


def _read_pieces(paths: Sequence[Path], progress: bool) -> Iterator[str]:
    """The files as pieces of text that end between two tokens; every file's last piece ends in a line break.

    Tabs have become spaces, and all line ends \\n.
    """
    sizes = [path.stat().st_size for path in paths]
    with tqdm(desc="reading", total=sum(sizes), unit="B", unit_scale=True, disable=not progress) as bar:
        for i, path in enumerate(paths):
            with open(path, "rb") as raw:
                for piece in _decoded(path, _OPENERS.get(path.suffix, _as_it_is)(raw)):
                    yield piece
                    bar.update(sum(sizes[:i]) + raw.tell() - bar.n)


def _as_it_is(raw: IO[bytes]) -> IO[bytes]:
    return raw


def _decoded(path: Path, file: IO[bytes]) -> Iterator[str]:
    line = 1
    mark = "\ufeff"  # the byte-order mark, if the file begins with one
    for data in filter(None, _cut_between_tokens(path, file)):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line += data[: error.start].count(b"\n")
            raise ValueError(f"{os.fspath(path)}, line {line}: not UTF-8 ({error.reason})") from None
        line += data.count(b"\n")
        yield text.removeprefix(mark).replace("\t", " ")
        mark = ""


def _cut_between_tokens(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while True:
        try:
            data = file.read(_PIECE)
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault, not the file's
            raise ValueError(f"{os.fspath(path)} is damaged or is not what its ending says: {error}") from error
        if not data:
            break
        data = rest + data
        end = max(data.rfind(b"\n"), data.rfind(b" "), data.rfind(b"\t")) + 1
        if len(data) - end > _LONGEST_TOKEN:
            raise ValueError(
                f"{os.fspath(path)}: more than {_LONGEST_TOKEN:,} bytes without a space or a line break; "
                "words must be separated by spaces"
            )
        rest = data[end:]
        yield _with_plain_line_ends(data[:end])
    yield _with_plain_line_ends(rest) + b"\n"


def _with_plain_line_ends(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


# ── second pass: numbers to ids ─────────────────────────────────────────────────────────────────────────────


def _counts(numbered: _Parts | _NpyFile, different: int) -> NDArray[np.int64]:
    """How often each token stands in the text, (different,)."""
    counts = np.zeros(different + 2, np.int64)
    for block in numbered.blocks():
        counts += np.bincount(block, minlength=different + 2)
    return counts[2:]


def _translation(tokens: Sequence[str], vocabulary: Vocabulary) -> NDArray[np.int32]:
    """What becomes of each number: an id, −1 for a sentence's end, −2 for what is left out."""
    ids = {token: i for i, token in enumerate(vocabulary)}
    missing = -2 if vocabulary.unknown is None else ids[vocabulary.unknown]
    table = np.array([-1, -2, *(ids.get(token, missing) for token in tokens)], dtype=np.int32)
    if table.max() < 0:
        raise ValueError(f"none of the {len(tokens)} different tokens of the text is in the vocabulary")
    return table


def _translate(
    numbered: _Parts | _NpyFile,
    table: NDArray[np.int32],
    ids: _Parts | _NpyFile,
    offsets: _Parts | _NpyFile,
    progress: bool,
) -> None:
    """Write ids and sentence offsets; what is left out leaves no gap, and a sentence without ids no trace."""
    written = 0
    offsets.append(np.zeros(1, np.int64))
    last_end = 0
    with tqdm(desc="encoding", total=numbered.length, unit=" tokens", unit_scale=True, disable=not progress) as bar:
        for block in numbered.blocks():
            values = np.take(table, block)
            values = values[values != -2]
            breaks = np.flatnonzero(values == -1)
            ends = written + breaks - np.arange(len(breaks))
            ends = ends[np.diff(ends, prepend=last_end) > 0]
            kept = values[values != -1]
            ids.append(kept)
            offsets.append(ends)
            written += len(kept)
            last_end = int(ends[-1]) if len(ends) else last_end
            bar.update(len(block))


def _write(
    folder: Path,
    numbered: _Parts | _NpyFile,
    table: NDArray[np.int32],
    vocabulary: Vocabulary,
    stamps: list[list[Any]],
    progress: bool,
) -> None:
    """All files of the corpus. corpus.json goes first and comes last: a folder that has it is whole."""
    with (
        written_beside(folder / "ids.npy") as ids_path,
        written_beside(folder / "offsets.npy") as offsets_path,
        written_beside(folder / "vocabulary.txt") as vocabulary_path,
    ):
        vocabulary.save(vocabulary_path)
        with _NpyFile(ids_path, np.int32) as ids, _NpyFile(offsets_path, np.int64) as offsets:
            _translate(numbered, table, ids, offsets, progress)
        description = {
            "format": _FORMAT,
            "tokens": ids.length,
            "sentences": offsets.length - 1,
            "vocabulary": _sum_of(vocabulary_path),
            "sources": stamps,
        }
        (folder / "corpus.json").unlink(missing_ok=True)
    with written_beside(folder / "corpus.json") as path:
        path.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


def _stamps(sentences: Any) -> list[list[Any]]:
    """Path, size and time of change of every text file: the fingerprint by which a stale corpus is known."""
    if not isinstance(sentences, Sentences):
        return []
    paths = [path.resolve() for path in sentences.paths]
    return [[os.fspath(path), path.stat().st_size, path.stat().st_mtime_ns] for path in paths]


def _sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ── arrays that grow, in memory or in a file ────────────────────────────────────────────────────────────────


class _Parts:
    """A one-dimensional array that is appended to, in memory."""

    def __init__(self, dtype: type) -> None:
        self._dtype = dtype
        self._parts: list[NDArray[Any]] = []
        self.length = 0

    def append(self, part: NDArray[Any]) -> None:
        self._parts.append(part)
        self.length += len(part)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """The array in pieces of about _BLOCK."""
        pending: list[NDArray[Any]] = []
        for part in self._parts:
            pending.append(part)
            if sum(map(len, pending)) >= _BLOCK:
                yield np.concatenate(pending)
                pending = []
        if pending:
            yield np.concatenate(pending)

    def whole(self) -> NDArray[Any]:
        array: NDArray[Any] = np.concatenate(self._parts, dtype=self._dtype)
        array.flags.writeable = False
        return array


class _NpyFile:
    """A one-dimensional .npy file that is appended to; its header gets the length when the block ends."""

    def __init__(self, path: Path, dtype: type) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        self.length = 0

    def __enter__(self) -> _NpyFile:
        self._file = open(self._path, "w+b")  # noqa: SIM115  (closed in __exit__)
        self._write_header()
        self._start = self._file.tell()
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        # NumPy pads the header so that a length of up to 21 digits can be filled in later.
        description = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(self._file, description)

    def append(self, part: NDArray[Any]) -> None:
        self._file.write(part.astype(self._dtype, copy=False).tobytes())
        self.length += len(part)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """The array in pieces of _BLOCK, read from the file; appending meanwhile is not foreseen."""
        self._file.seek(self._start)
        while data := self._file.read(_BLOCK * self._dtype.itemsize):
            yield np.frombuffer(data, self._dtype)


@contextlib.contextmanager
def _scratch(folder: PathLike | None) -> Iterator[_Parts | _NpyFile]:
    """Where the numbered text goes: into memory, or into a file of the folder that is gone afterwards."""
    if folder is None:
        yield _Parts(np.int32)
        return
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    path = place / f".numbers.{os.urandom(4).hex()}.part"
    try:
        with _NpyFile(path, np.int32) as file:
            yield file
    finally:
        path.unlink(missing_ok=True)
