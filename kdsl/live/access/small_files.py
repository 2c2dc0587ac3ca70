"""Small files: tokens, certificates and kubeconfigs, which may be replaced at any time; keys for TLS."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError, reason_of
from kdsl.base.file_policy import read_named
from kdsl.live.access.codes import AccessCode

MAX_FILE: Final = 2**20
_LOG: Final = logging.getLogger(__name__)

Stamp: TypeAlias = tuple[int, int, int] | None


def stamp(path: Path) -> Stamp:
    """Return a value that changes when a file is replaced or written; None without a file."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_ctime_ns, state.st_size


def read_small(path: Path, what: str, code: AccessCode, *help: str) -> bytes:
    """Read a file of at most 1 MiB; `what` names its role in the diagnostic of the InvalidInputError.

    Devices are refused, and reading a pipe without a writer does not block.
    """
    try:
        return read_named(path, MAX_FILE)
    except OSError as error:
        raise InvalidInputError(
            [Diagnostic(code, f"{what} cannot be read: {reason_of(error)}", where=str(path), help=help)]
        ) from None


def note_failure(error: InvalidInputError, before: str, consequence: str) -> str:
    """Return the text of a failed renewal, and log it unless it is the one `before`."""
    text = str(error)
    if text != before:
        _LOG.warning("%s: %s", consequence, ": ".join(filter(None, (error.diagnostics[0].where, text))))
    return text


@contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Yield a path to read the content from. The file is in memory where the system allows it, so no disk has
    it.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kdsl")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "content.pem"
        path.touch(mode=0o600)
        path.write_bytes(content)
        yield str(path)
