"""What is kept on disk between runs, so that it need not be made again: a folder of files of the user's own.

A kept copy is named by a digest of everything it depends on, is written to a temporary file and renamed into
place, and carries a checksum: a missing, torn, foreign or unwritable copy only costs the time to make it
again. Several processes may read and write at once.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

_CHECKSUM_SIZE = hashlib.sha256().digest_size


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for kept copies, `$XDG_CACHE_HOME/kdsl` or `~/.cache/kdsl`, if there is a home."""
    base = environ.get("XDG_CACHE_HOME") or (f"{environ['HOME']}/.cache" if environ.get("HOME") else "")
    return Path(base, "kdsl") if base and Path(base).is_absolute() else None


def digest_of(*parts: str) -> str:
    """Return a name for what depends on these texts."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()[:32]


def read_kept(path: Path) -> bytes | None:
    """Return a kept copy if the file is whole and our own."""
    try:
        with path.open("rb") as stream:
            if os.name == "posix" and os.fstat(stream.fileno()).st_uid != os.getuid():
                return None
            content = stream.read()
    except OSError:
        return None
    checksum, payload = content[:_CHECKSUM_SIZE], content[_CHECKSUM_SIZE:]
    return payload if hashlib.sha256(payload).digest() == checksum else None


def write_kept(path: Path, payload: bytes) -> None:
    """Keep a copy. The rename is atomic: no reader sees a half file. Errors cost only time."""
    temporary = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(hashlib.sha256(payload).digest() + payload)
        Path(temporary).replace(path)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def prune(folder: Path, prefix: str, most: int) -> None:
    """Remove the oldest copies whose names begin with `prefix`, all but the `most` that were written last."""
    try:
        copies = sorted(folder.glob(f"{prefix}*"), key=lambda path: path.stat().st_mtime_ns)
        for path in copies[:-most]:
            path.unlink(missing_ok=True)
    except OSError:
        return
