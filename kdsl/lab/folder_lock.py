"""The lock of a folder of results: one experiment at a time writes to it."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError, reason_of
from kdsl.base.file_policy import follow
from kdsl.lab.codes import LabCode

LOCK: Final = ".lock"
PARTS: Final = ("runs", "series", "rules", "nodes", "failures")
"""The folders in a folder of results."""
_HALF: Final = re.compile(r"\..+\.(parquet|txt)\.[0-9]+")
"""The name of a file that is being written, see `ResultFolder.put`."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if it is not there.

    The lock is one of the operating system on the file `.lock`: it ends with the process, however that ends.
    Files that a killed process left half-written are removed. Raises InvalidInputError if another process
    holds the lock, if the folder cannot be written, or if a part of it is a link that leaves it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            if (folder / part).is_symlink():
                follow(folder, part)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise _refused(folder, error) from error
    try:
        _take(handle, folder)
        try:
            _remove_halves(folder)
        except OSError as error:
            raise _refused(folder, error) from error
        yield
    finally:
        os.close(handle)


def _take(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        title = f"another `kdsl lab run` is writing to `{folder}`"
        help_ = ("wait until it has ended, or name another folder with `--out`",)
        found = Diagnostic(LabCode.IN_USE, title, where=str(folder), help=help_)
        raise InvalidInputError([found]) from error
    except OSError as error:
        raise _refused(folder, error) from error


def _refused(folder: Path, error: OSError) -> InvalidInputError:
    place, reason = error.filename or folder, reason_of(error)
    title = f"cannot write results to `{folder}`: {reason}"
    help_ = ("name another folder with `--out`",)
    return InvalidInputError([Diagnostic(LabCode.RESULTS, title, where=str(place), help=help_)])


def _remove_halves(folder: Path) -> None:
    for part in (".", *PARTS):
        for path in (folder / part).glob(".*"):
            if _HALF.fullmatch(path.name):
                path.unlink(missing_ok=True)
