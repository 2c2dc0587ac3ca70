"""Tokens, certificates and kubeconfigs: small files that may be replaced at any time."""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeAlias

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.base.file_policy import read_named
from kdsl.live.codes import AccessCode

MAX_FILE: Final = 2**20

Stamp: TypeAlias = tuple[int, int, int] | None


def stamp(path: Path) -> Stamp:
    """Return a value that changes when a file is replaced or written; None without a file."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size


def read_small(path: Path, what: str, code: AccessCode, *help: str) -> bytes:
    """Read a file of at most 1 MiB; `what` names its role in the diagnostic of the InvalidInputError.

    Devices are refused, and reading a pipe without a writer does not block.
    """
    try:
        return read_named(path, MAX_FILE)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidInputError(
            [Diagnostic(code, f"{what} cannot be read: {reason}", where=str(path), help=help)]
        ) from None
