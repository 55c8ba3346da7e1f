"""Writing files so that nothing is lost: beside the target, which is replaced when all is written."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise, before any work is done, where `path` could not be written: no such folder, or something else is there."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{os.fspath(path)!r} exists and is not a file: name a file to write")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {os.fspath(path)!r}: there is no folder {str(target.parent)!r}")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(
            f"cannot write {os.fspath(path)!r}: the folder {str(target.parent)!r} is not yours to write to"
        )


@contextlib.contextmanager
def written_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A name in the same folder to write under; it becomes `path` if the block ends well, else it goes.

    A killed run so leaves the old file. A link is followed and an old file's rights are kept. Raises, before
    anything is written, as check_target does.
    """
    check_target(path)
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield beside
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
