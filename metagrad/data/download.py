"""Downloads: a file from the web, fetched once into a cache folder, checked, and never seen half-written.

Plain urllib over HTTP. Which files exist and what their sums are is the caller's knowledge.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from tqdm import tqdm

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_TIMEOUT = 30  # seconds without a byte
_BLOCK = 1 << 20
_HEX_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64}


def cache_folder() -> Path:
    """$METAGRAD_HOME if it is set, else ~/.cache/metagrad."""
    home = os.environ.get("METAGRAD_HOME")
    return Path(home).expanduser() if home else Path.home() / ".cache" / "metagrad"


def fetch(
    url: str,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    sha1: str | None = None,
    size: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    name: str | None = None,
    progress: bool = True,
) -> Path:
    """The path of the file behind `url`, downloaded if it is not in the cache yet.

    sha256, md5, sha1: hex digests that the whole file must have; size: its bytes.
    folder: where to keep it, `cache_folder()` unless given.
    name: its file name, the last part of the URL's path unless given.
    progress: show a tqdm bar.

    A file that is there already is used without touching the network. Its size and sums are checked at
    *every* call (a second or two per GB), since it may have been put there by hand. If they do not fit,
    ValueError says so, and the file stays: it is not known to be ours to delete.

    A download is written to `name.part` and renamed when it is whole and its sums fit; one with wrong sums is
    deleted, and ValueError shows both sums. A download that broke off, even by a kill, is resumed at the next
    call if the server can and still has the same file, and begun anew otherwise. Of several processes that
    fetch one file at once, one downloads and the others wait for it. Network trouble raises ConnectionError,
    which names the place to put the file by hand.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"fetch needs a URL that starts with http:// or https://, got {url!r}")
    sums = _checked_sums({"sha256": sha256, "sha1": sha1, "md5": md5})
    path = Path(cache_folder() if folder is None else folder) / _file_name(url, name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(_beside(path, ".lock")):
            if not path.exists():  # another process may have finished it while this one waited
                _download(url, path, sums, size, progress)
                return path
    fault = _fault(path, sums, size)
    if fault:
        raise ValueError(f"{path} exists but {fault}; delete it to download it anew from {url}")
    return path


def fetch_member(
    url: str,
    member: str,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    sha1: str | None = None,
    size: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    name: str | None = None,
    progress: bool = True,
) -> Path:
    """The path of one file out of the zip archive behind `url`, which is fetched as `fetch` does.

    The member is extracted once, to the folder `<archive name>.members` beside the archive, never outside it.
    The zip's own checksum is verified on the way; a copy of the right length that is there is used as it is.
    Raises ValueError if the archive is not a zip, has no such member, or `member` leads out of that folder.
    """
    inside = PurePosixPath(member)
    if inside.is_absolute() or ".." in inside.parts or set(member) & set("\\:\0") or not inside.parts:
        raise ValueError(f"{member!r} is not a plain path inside an archive, so it is not extracted")
    archive = fetch(url, sha256=sha256, md5=md5, sha1=sha1, size=size, folder=folder, name=name, progress=progress)
    target = _beside(archive, ".members").joinpath(*inside.parts)
    try:
        with zipfile.ZipFile(archive) as opened:
            _extract(opened, member, target)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # RuntimeError: it is encrypted
        raise ValueError(f"{member!r} cannot be read from {archive} as a zip archive: {error}") from error
    return target


def _extract(archive: zipfile.ZipFile, member: str, target: Path) -> None:
    names = archive.namelist()
    if member not in names or member.endswith("/"):
        some = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        raise ValueError(f"{archive.filename} has no file {member!r}; it holds {some or 'nothing'}")
    if target.is_file() and target.stat().st_size == archive.getinfo(member).file_size:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = _beside(target, ".part")
    with _locked(_beside(target, ".lock")):
        with archive.open(member) as source, open(part, "wb") as file:
            shutil.copyfileobj(source, file, _BLOCK)
        os.replace(part, target)


def _checked_sums(sums: dict[str, str | None]) -> dict[str, str]:
    given = {kind: digest.strip().lower() for kind, digest in sums.items() if digest is not None}
    for kind, digest in given.items():
        if len(digest) != _HEX_DIGITS[kind] or set(digest) - set("0123456789abcdef"):
            raise ValueError(f"a {kind} sum is {_HEX_DIGITS[kind]} hex digits, got {digest!r}")
    return given


def _file_name(url: str, name: str | None) -> str:
    last_part = urllib.parse.urlsplit(url).path.rpartition("/")[2]
    chosen = urllib.parse.unquote(last_part) if name is None else name
    if chosen in ("", ".", "..") or set(chosen) & set("/\\:\0"):
        raise ValueError(f"{chosen!r} is not a plain file name: pass name= for what {url} is to be called")
    return chosen


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _fault(path: Path, sums: dict[str, str], size: int | None) -> str | None:
    """What is wrong with the file, as the rest of a sentence; None if nothing is."""
    actual_size = path.stat().st_size
    if size is not None and actual_size != size:
        return f"is {actual_size} bytes long instead of {size}"
    if not sums:
        return None
    hashes = {kind: hashlib.new(kind, usedforsecurity=False) for kind in sums}
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            for digest in hashes.values():
                digest.update(block)
    for kind, wanted in sums.items():
        actual = hashes[kind].hexdigest()
        if actual != wanted:
            return f"has the {kind} sum {actual} instead of {wanted}"
    return None


def _download(url: str, path: Path, sums: dict[str, str], size: int | None, progress: bool) -> None:
    """Bring `path` into being, or raise. The caller holds the lock."""
    part, tag = _beside(path, ".part"), _beside(path, ".part.tag")
    resumed = _receive(url, path, progress)
    fault = _fault(part, sums, size)
    if fault and resumed:  # the earlier piece may be of another version of the file: once more, all of it
        part.unlink()
        _receive(url, path, progress)
        fault = _fault(part, sums, size)
    if fault:
        part.unlink()
        tag.unlink(missing_ok=True)
        raise ValueError(f"the file from {url} {fault}; it was deleted")
    os.replace(part, path)
    tag.unlink(missing_ok=True)


def _receive(url: str, path: Path, progress: bool) -> bool:
    """Make `path`.part whole, going on from what is there if the server agrees. True if it did go on."""
    part, tag = _beside(path, ".part"), _beside(path, ".part.tag")
    by_hand = f"try again, or put the file by hand at {path}"
    have, version = _resumable(url, part, tag)
    with _network(url, by_hand):
        response, kept = _ask(url, have, version)
    with response:
        if not kept:
            part.unlink(missing_ok=True)  # first: a kill must not leave the old bytes under the new tag
            tag.write_text(f"{url}\n{_version(response) or ''}\n", encoding="utf-8")
        length = response.headers.get("Content-Length")
        total = None if length is None else kept + int(length)
        look = {"unit": "B", "unit_scale": True, "unit_divisor": 1024, "disable": not progress}
        with open(part, "ab") as file, tqdm(desc=path.name, total=total, initial=kept, **look) as bar:
            for block in _blocks(response, url, by_hand):
                file.write(block)
                bar.update(len(block))
            got = file.tell()
    if total is not None and got != total:
        raise ConnectionError(f"{url} broke off after {got} of {total} bytes; {by_hand}")
    return kept > 0


def _resumable(url: str, part: Path, tag: Path) -> tuple[int, str]:
    """How many bytes are there already, and of which version of the file; (0, "") if they are of no use."""
    if not (part.exists() and tag.exists()):
        return 0, ""
    lines = tag.read_text(encoding="utf-8").splitlines()
    if len(lines) < 2 or lines[0] != url or not lines[1]:
        return 0, ""
    return part.stat().st_size, lines[1]


def _ask(url: str, have: int, version: str) -> tuple[Any, int]:
    """The server's reply, and how many of the `have` bytes the reply goes on from: all of them or none."""
    if have:
        try:
            response = _open(url, {"Range": f"bytes={have}-", "If-Range": version})
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 416:  # "range not satisfiable": there are not that many bytes any more
                raise
        else:
            if response.status == 200:  # it sends the whole file: it cannot resume, or the file has changed
                return response, 0
            # Not every server heeds If-Range: the rest of another version would come as 206 too.
            begins = response.headers.get("Content-Range", "")
            if begins.startswith(f"bytes {have}-") and _version(response) in (None, version):
                return response, have
            response.close()
    return _open(url, {}), 0


def _open(url: str, headers: dict[str, str]) -> Any:
    ascii_url = urllib.parse.quote(url, safe="%/:=&?~#+!$,;'@()*[]")  # users type any letter; HTTP has fewer
    request = urllib.request.Request(ascii_url, headers={"User-Agent": "metagrad", **headers})
    return urllib.request.urlopen(request, timeout=_TIMEOUT)


def _version(response: Any) -> str | None:
    """The mark by which the server knows this version of the file: what If-Range takes (RFC 9110, 13.1.5)."""
    etag = response.headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified")


def _blocks(response: Any, url: str, by_hand: str) -> Iterator[bytes]:
    while True:
        with _network(url, by_hand):
            # read1 hands over what has arrived: a kill then loses little, and the bar moves on a slow line.
            block = response.read1(_BLOCK)
        if not block:
            return
        yield block


@contextlib.contextmanager
def _network(url: str, by_hand: str) -> Iterator[None]:
    """Turn every way a connection fails into one ConnectionError; a full disk is not among them."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        raise ConnectionError(f"{url}: the server says {error.code} {error.reason}; {by_hand}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ConnectionError(f"{url} cannot be reached or broke off ({reason}); {by_hand}") from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file for the length of the block. The system lets go of it if the process dies."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _wait_for_lock(handle)
            if not _is_named(handle, path):
                continue  # the holder before us removed it on leaving
            try:
                yield
            finally:
                with contextlib.suppress(PermissionError):  # Windows keeps an open file: then it stays
                    path.unlink()
            return
        finally:
            os.close(handle)


def _is_named(handle: int, path: Path) -> bool:
    """Whether `path` is still the name of the open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _wait_for_lock(handle: int) -> None:
    if sys.platform == "win32":
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return
            except OSError:
                time.sleep(0.1)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX)
