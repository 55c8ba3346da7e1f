"""The files that hold word vectors: word2vec text and binary, GloVe, .npz, and a .npy that can be memory-mapped.

`read` and `write` move (tokens, vectors, counts) between memory and disk, bit for bit. What the vectors are
good for is vectors.py's work.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..files import check_target, written_beside

Path = str | os.PathLike[str]

FORMATS = ("text", "glove", "binary", "npz", "npy")
ENDINGS = {
    ".txt": "text",
    ".vec": "text",
    ".glove": "glove",
    ".bin": "binary",
    ".npz": "npz",
    ".npy": "npy",
}
_BLOCK_BYTES = 1 << 22  # read at a time
_BLOCK_ROWS = 4096  # formatted or checked at a time
_LONGEST_TOKEN = 1 << 16  # bytes; a binary file that goes on so long without a space is none
_GZIP_MAGIC = b"\x1f\x8b"
_WHITESPACE = re.compile(r"[ \t\n\r\v\f]")
_FRACTION = re.compile(rb"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")


class Contents(NamedTuple):
    """What a file holds: V tokens in id order, vectors (V, d) float32, counts (V,) int64 or None."""

    tokens: list[str]
    vectors: NDArray[np.float32]
    counts: NDArray[np.int64] | None


def read(path: Path, format: str | None = None, mmap: bool = False, errors: str = "strict") -> Contents:
    """Read word vectors; see `WordVectors.load`, which this serves, for formats, options and errors."""
    name = os.fspath(path)
    kind = format_of(path, format)
    if mmap and kind != "npy":
        raise ValueError(f"{name}: only an .npy file can be memory-mapped, not {kind}; save it as .npy first")
    if errors not in ("strict", "replace"):
        raise ValueError(f'errors must be "strict" or "replace", not {errors!r}')
    if kind == "npz":
        contents = _read_npz(name)
    elif kind == "npy":
        contents = _read_npy(name, mmap)
    else:
        with _opened(name) as file:
            if kind == "binary":
                contents = _read_binary(file, name, errors)
            else:
                contents = _read_text(file, name, kind == "glove", errors)
    return _without_repeats(contents, name)


def write(
    path: Path,
    tokens: Sequence[str],
    vectors: NDArray[np.float32],
    counts: NDArray[np.int64] | None = None,
    format: str | None = None,
    allow_nonfinite: bool = False,
) -> None:
    """Write word vectors; see `WordVectors.save`, which this serves, for formats, options and errors."""
    name = os.fspath(path)
    kind = format_of(path, format)
    check_target(name)
    _check_tokens(tokens, kind)
    if not allow_nonfinite:
        _check_finite(tokens, vectors)
    with written_beside(name) as temporary, open(temporary, "wb") as plain:
        if kind == "npz":
            np.savez(plain, **_members(tokens, vectors, counts))  # type: ignore[arg-type]
        elif kind == "npy":
            for member in _members(tokens, vectors, counts).values():
                np.lib.format.write_array(plain, member, allow_pickle=False)
        else:
            with _compressed(plain) if name.endswith(".gz") else contextlib.nullcontext(plain) as file:
                _write_word2vec(file, tokens, vectors, kind)


def format_of(path: Path, format: str | None = None) -> str:
    """The format of a file: the one asked for, else what its name's ending says; ValueError if neither does."""
    stem = os.fspath(path).removesuffix(".gz")
    is_gzip = stem != os.fspath(path)
    kind = ENDINGS.get(os.path.splitext(stem)[1].lower()) if format is None else format
    if kind is None:
        raise ValueError(
            f"the ending of {os.fspath(path)} names no format ({', '.join(ENDINGS)}, "
            f"some with .gz); give format=, one of {', '.join(FORMATS)}"
        )
    if kind not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {kind!r}")
    if is_gzip and kind in ("npz", "npy"):
        raise ValueError(f"{os.fspath(path)}: {kind} files are not compressed with gzip; leave off .gz")
    return kind


def rows_as_text(vectors: NDArray[np.float32], separator: str = " ") -> Iterator[str]:
    """Each row's values as the shortest decimals that read back as the same float32."""
    pattern = separator.join(["%.9g"] * vectors.shape[1])
    for start in range(0, len(vectors), _BLOCK_ROWS):
        for row in _rounded(vectors[start : start + _BLOCK_ROWS]).tolist():
            yield pattern % tuple(row)


# ── Text: `token v1 … vd` a line, after a line `V d` (word2vec) or not (GloVe) ──────────────────────────────


def _read_text(file: IO[bytes], name: str, headerless: bool, errors: str) -> Contents:
    first = file.readline().removeprefix(codecs.BOM_UTF8)
    fields = first.split()
    if not fields:
        raise ValueError(f"{name}, line 1: empty, where a header or a token and its vector are due")
    has_header = not headerless and len(fields) == 2 and all(field.isdigit() for field in fields)
    expected = int(fields[0]) if has_header else None
    dim = int(fields[1]) if has_header else len(fields) - 1
    if dim == 0:
        raise ValueError(f"{name}, line 1: vectors without values; found {first.strip()[:40]!r}")
    tokens: list[str] = []
    table = _GrowingTable(dim, expected)
    lines = file.readlines(_BLOCK_BYTES)
    number = 2
    if not has_header:
        lines.insert(0, first)
        number = 1
    while lines:
        block_tokens, values = _parsed(lines, number, dim, name, errors)
        tokens += block_tokens
        table.append(values)
        number += len(lines)
        lines = file.readlines(_BLOCK_BYTES)
    if expected not in (None, len(tokens)):
        raise ValueError(
            f"{name}: the header promises {expected} vectors, the file holds {len(tokens)} "
            '(if line 1 is no header but a vector, read it with format="glove")'
        )
    return Contents(tokens, table.finished(), None)


def _parsed(lines: list[bytes], number: int, dim: int, name: str, errors: str) -> tuple[list[str], NDArray[np.float32]]:
    """The tokens and values of lines, the first of which is line `number` of the file."""
    regular = _parsed_together(lines, dim, errors)
    if regular is not None:
        return regular
    tokens, rows = [], []
    for place, line in enumerate(lines, number):
        if line.strip():
            token, row = _parsed_line(line, dim, f"{name}, line {place}", errors)
            tokens.append(token)
            rows.append(row)
    return tokens, np.array(rows, dtype=np.float32).reshape(-1, dim)


def _parsed_together(lines: list[bytes], dim: int, errors: str) -> tuple[list[str], NDArray[np.float32]] | None:
    """Lines of which each is a token, a space and the values; None if any is not (ten times as fast)."""
    parts = [line.partition(b" ") for line in lines]
    if any(not token or not rest or rest.isspace() for token, _, rest in parts):
        return None
    try:
        tokens = [token.decode("utf-8", errors) for token, _, _ in parts]
        values = np.loadtxt([rest for _, _, rest in parts], dtype=np.float32, comments=None, ndmin=2)
    except ValueError:  # a UnicodeDecodeError is one, too
        return None
    return (tokens, values) if values.shape == (len(lines), dim) else None


def _parsed_line(line: bytes, dim: int, place: str, errors: str) -> tuple[str, list[float]]:
    """A token, which may hold spaces, and the last `dim` fields.

    A number with a fraction among the token's words would rather be a value too many, so it is refused.
    """
    fields = line.rsplit(None, dim)
    if len(fields) != dim + 1 or any(map(_FRACTION.fullmatch, fields[0].split()[1:])):
        raise ValueError(f"{place}: {len(line.split())} fields, where a token and {dim} values are due by line 1")
    values = []
    for field in fields[1:]:
        try:
            values.append(float(field))
        except ValueError:
            raise ValueError(f"{place}: {field[:40]!r} is not a number") from None
    return _decoded(fields[0].strip(), place, errors), values


_EXPONENTS = range(-14, 7)
_POWERS = np.array([float(f"1e{exponent}") for exponent in _EXPONENTS])
_SCALES = np.array([float(f"1e{exponent}") for exponent in range(23)])  # exact, as all to 1e22


def _rounded(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """float64 numbers whose "%.9g" is a decimal that reads back as the same float32, shortest as a rule.

    Nine digits are always enough for a float32. From 1e-14 to 1e6 (all but the odd value) eight to six are
    tried: scaling by a power of ten that float64 holds exactly makes rint(x·s)/s the very number that anyone
    who reads the k-digit decimal gets, so that comparing it with x is proof. (NumPy's own printing of float32,
    `astype("S")`, gives the same digits in twice the time.)
    """
    exact = values.astype(np.float64)
    magnitude = np.abs(exact)
    interval = np.searchsorted(_POWERS, magnitude, side="right")
    in_range = (interval > 0) & (interval < len(_POWERS))
    exponent = np.where(in_range, interval - 1 + _EXPONENTS.start, 0)  # of the first digit
    result = exact.copy()
    for digits in (8, 7, 6):
        scale = _SCALES[digits - 1 - exponent]
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.rint(exact * scale) / scale
            same = rounded.astype(np.float32) == values
        np.copyto(result, rounded, where=in_range & same)
    return result


# ── Binary: a line `V d`, then token, space, d little-endian float32, and a newline that some leave out ─────


def _read_binary(file: IO[bytes], name: str, errors: str) -> Contents:
    header = file.readline(_LONGEST_TOKEN)
    fields = header.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields) or int(fields[1]) == 0:
        raise ValueError(
            f"{name}: a binary word2vec file starts with a line of its count and dimension, "
            f"this one with {header[:40]!r}"
        )
    expected, dim = int(fields[0]), int(fields[1])
    tokens: list[str] = []
    table = _GrowingTable(dim, expected)
    rest = b""
    while len(tokens) < expected:
        chunk = file.read(max(_BLOCK_BYTES, 8 * dim))
        if not chunk:
            raise ValueError(
                f"{name}: ends within record {len(tokens) + 1}; the header promises {expected} vectors "
                f"of {dim} values, the file holds {len(tokens)}"
            )
        records, values, rest = _split_records(rest + chunk, expected - len(tokens), 4 * dim)
        tokens += [
            _decoded(token, f"{name}, record {number}", errors) for number, token in enumerate(records, len(tokens) + 1)
        ]
        table.append(np.frombuffer(values, dtype="<f4").reshape(-1, dim))
        if len(rest) > 4 * dim + _LONGEST_TOKEN and len(tokens) < expected:
            raise ValueError(f"{name}, record {len(tokens) + 1}: no space after its token")
    if (rest + file.read(_BLOCK_BYTES)).strip():
        raise ValueError(f"{name}: the header promises {expected} vectors, but more data follows them")
    return Contents(tokens, table.finished(), None)


def _split_records(chunk: bytes, most: int, width: int) -> tuple[list[bytes], bytes, bytes]:
    """The whole records at the start of a chunk: their tokens, their values in one piece, and the rest."""
    tokens: list[bytes] = []
    pieces: list[bytes] = []
    start = 0
    while len(tokens) < most:
        space = chunk.find(b" ", start)
        end = space + 1 + width
        if space < 0 or end > len(chunk):
            break
        tokens.append(chunk[start:space].lstrip(b"\n"))
        pieces.append(chunk[space + 1 : end])
        start = end
    return tokens, b"".join(pieces), chunk[start:]


# ── .npz: members by name; .npy: the same arrays one after the other, vectors first ─────────────────────────
# NumPy writes and reads several arrays in one .npy file, and np.load(path, mmap_mode="r") maps the first. One
# file, unlike a table with a file of tokens beside it, is replaced in one step.


def _members(
    tokens: Sequence[str], vectors: NDArray[np.float32], counts: NDArray[np.int64] | None
) -> dict[str, NDArray]:
    encoded = [token.encode("utf-8") for token in tokens]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(token) for token in encoded], out=offsets[1:])
    members: dict[str, NDArray] = {
        "vectors": vectors,
        "tokens": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "offsets": offsets,
    }
    if counts is not None:
        members["counts"] = counts
    return members


def _read_npz(name: str) -> Contents:
    try:
        with np.load(name, allow_pickle=False) as archive:
            members = {key: archive[key] for key in archive.files}
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{name} is damaged or no .npz file of arrays: {error}") from error
    return _from_members(members, name)


def _read_npy(name: str, mmap: bool) -> Contents:
    members: dict[str, NDArray] = {}
    try:
        with open(name, "rb") as file:
            if mmap:
                members["vectors"] = mapped = np.load(name, mmap_mode="r", allow_pickle=False)
                file.seek(mapped.offset + mapped.nbytes)
            for key in ("vectors", "tokens", "offsets", "counts")[len(members) :]:
                if file.peek(1):
                    members[key] = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError, AttributeError) as error:
        raise ValueError(f"{name} is damaged or no .npy file of arrays: {error}") from error
    return _from_members(members, name)


def _from_members(members: dict[str, NDArray], name: str) -> Contents:
    missing = [key for key in ("vectors", "tokens", "offsets") if key not in members]
    if missing:
        raise ValueError(
            f"{name} holds no array of {missing[0]}, so it was not saved by WordVectors; "
            "a bare table is joined to its tokens by WordVectors(tokens, np.load(path))"
        )
    vectors, buffer, offsets = members["vectors"], members["tokens"], members["offsets"]
    counts = members.get("counts")
    fits = (
        vectors.ndim == 2
        and vectors.dtype.kind == "f"
        and buffer.dtype == np.uint8
        and offsets.dtype == np.int64
        and offsets.shape == (len(vectors) + 1,)
        and offsets[0] == 0
        and offsets[-1] == buffer.size
        and bool(np.all(offsets[1:] >= offsets[:-1]))
        and (counts is None or (counts.shape == (len(vectors),) and counts.dtype == np.int64))
    )
    if not fits:
        raise ValueError(f"{name}: its tokens, vectors and counts do not fit each other; it is damaged")
    data = buffer.tobytes()
    ends = offsets.tolist()
    tokens = [
        _decoded(data[start:end], f"{name}, row {row}", "strict", may_be_empty=True)
        for row, (start, end) in enumerate(zip(ends[:-1], ends[1:], strict=True))
    ]
    return Contents(tokens, vectors, counts)


# ── What the formats share ──────────────────────────────────────────────────────────────────────────────────


class _GrowingTable:
    """A (rows, dim) float32 table that grows in place, so that reading never holds it twice."""

    def __init__(self, dim: int, expected: int | None) -> None:
        self._array = np.empty((0, dim), dtype=np.float32)
        self._rows = 0
        self._expected = expected

    def append(self, values: NDArray[np.floating]) -> None:
        needed = self._rows + len(values)
        if needed > len(self._array):
            capacity = needed + needed // 4
            if self._expected is not None and needed <= self._expected:
                capacity = min(capacity, self._expected)
            self._resize(capacity)
        self._array[self._rows : needed] = values
        self._rows = needed

    def finished(self) -> NDArray[np.float32]:
        self._resize(self._rows)
        return self._array

    def _resize(self, rows: int) -> None:
        self._array.resize((rows, self._array.shape[1]), refcheck=False)  # no view of it is kept anywhere


@contextlib.contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """The file's bytes, uncompressed if it is a gzip file, whatever its name."""
    with open(name, "rb") as plain:
        if plain.peek(2)[:2] != _GZIP_MAGIC:
            yield plain
            return
        try:
            with gzip.GzipFile(fileobj=plain) as file:
                yield file  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{name}: the gzip file is damaged or cut short ({error})") from error


def _compressed(plain: IO[bytes]) -> gzip.GzipFile:
    # without name and time in it, the same vectors give the same file
    return gzip.GzipFile(filename="", mode="wb", compresslevel=3, fileobj=plain, mtime=0)


def _write_word2vec(
    file: IO[bytes] | gzip.GzipFile, tokens: Sequence[str], vectors: NDArray[np.float32], kind: str
) -> None:
    if kind != "glove":
        file.write(b"%d %d\n" % vectors.shape)
    if kind == "binary":
        for token, row in zip(tokens, vectors.astype("<f4", copy=False), strict=True):
            file.write(b"%b %b\n" % (token.encode("utf-8"), row.tobytes()))
    else:
        for token, line in zip(tokens, rows_as_text(vectors), strict=True):
            file.write(f"{token} {line}\n".encode())


def _check_tokens(tokens: Sequence[str], kind: str) -> None:
    """Refuse what could not be read back, so that no file is written that is worth nothing."""
    for row, token in enumerate(tokens):
        try:
            token.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"the token {token!r} (row {row}) cannot be written as UTF-8: {error}") from None
        if kind in ("text", "glove", "binary") and (not token or _WHITESPACE.search(token)):
            raise ValueError(
                f"the token {token!r} (row {row}) is empty or holds white space, and could not be read back "
                f"from a {kind} file; .npz and .npy files can hold it"
            )
    if kind == "glove" and (not tokens or tokens[0].startswith("\ufeff")):
        what = "no vectors" if not tokens else "a byte-order mark in its first token"
        raise ValueError(f"a headerless file with {what} could not be read back; write it as text")


def _check_finite(tokens: Sequence[str], vectors: NDArray[np.float32]) -> None:
    for start in range(0, len(vectors), _BLOCK_ROWS):
        is_bad = ~np.isfinite(vectors[start : start + _BLOCK_ROWS]).all(axis=1)
        if is_bad.any():
            row = start + int(is_bad.argmax())
            raise ValueError(
                f"the vector of {tokens[row]!r} (row {row}) holds NaN or infinity; "
                "nothing was written (allow_nonfinite=True writes it all the same)"
            )


def _decoded(token: bytes, place: str, errors: str, may_be_empty: bool = False) -> str:
    if not token and not may_be_empty:
        raise ValueError(f"{place}: the token is empty")
    try:
        return token.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise ValueError(
            f'{place}: the token {token[:40]!r} is not UTF-8 ({error.reason}); errors="replace" reads it all the same'
        ) from None


def _without_repeats(contents: Contents, name: str) -> Contents:
    """The contents with the first of each token only, after a warning if there were more."""
    tokens, vectors, counts = contents
    first_rows: dict[str, int] = {}
    for row, token in enumerate(tokens):
        first_rows.setdefault(token, row)
    extra = len(tokens) - len(first_rows)
    if not extra:
        return contents
    repeated = next(token for row, token in enumerate(tokens) if first_rows[token] != row)
    warnings.warn(
        f"{name}: {extra} of {len(tokens)} rows repeat a token, such as {repeated!r}; the first of each is kept",
        stacklevel=4,
    )
    kept = list(first_rows.values())
    return Contents(list(first_rows), vectors[kept], None if counts is None else counts[kept])
