"""The cache on disk: bytes that are expensive to compute, kept between runs in a folder of the user.

An entry is named by a digest of everything it depends on. It is written to a temporary file and renamed into
place. Several processes may read and write at once. An entry that cannot be read or trusted is a miss: it
costs only the time to compute the bytes again.

Cached bytes decide the result of a check, so they are hostile input until they prove to be this user's:

- An entry is authenticated (HMAC-SHA256) under its name with a key that lies outside the cache, in the user's
  state folder. An entry that came with a checkout or with a restored CI cache is a miss.
- Entries, the key and their folders must belong to the user; others may not write the folders, and may
  neither read nor write the files.
- Only regular files are opened, never through a link, and never more than `MAX_ENTRY_BYTES` are read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_ENTRY_BYTES: Final = 64 * 2**20
"""The largest size of an entry in bytes."""

KEY_BYTES: Final = 32

_MAC_BYTES = hashlib.sha256().digest_size
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class DiskCache:
    """A folder of entries, authenticated with the key in the file `key`."""

    folder: Path
    key: Path

    def read(self, name: str) -> bytes | None:
        """Return an entry, None where no trusted entry exists."""
        if not _is_private_folder(self.folder):
            return None
        content = _read_private(self.folder / name, MAX_ENTRY_BYTES)
        key = None if content is None else self._read_key()
        if content is None or key is None:
            return None
        payload = content[_MAC_BYTES:]
        return payload if hmac.compare_digest(_mac(key, name, payload), content[:_MAC_BYTES]) else None

    def write(self, name: str, payload: bytes) -> None:
        """Write an entry. The rename is atomic, so readers never get half a file. An error only loses the
        entry.
        """
        if len(payload) + _MAC_BYTES > MAX_ENTRY_BYTES:
            return
        key = self._read_key() or self._make_key()
        if key is not None:
            _write_private(self.folder / name, _mac(key, name, payload) + payload)

    def prune(self, prefix: str, most: int) -> None:
        """Remove the oldest entries whose names begin with `prefix`; keep the `most` that were
        written last.
        """
        try:
            entries = sorted(self.folder.glob(f"{prefix}*"), key=lambda path: path.lstat().st_mtime_ns)
            for path in entries[:-most]:
                path.unlink(missing_ok=True)
        except OSError:
            return

    def _read_key(self) -> bytes | None:
        if not _is_private_folder(self.key.parent):
            return None
        key = _read_private(self.key, KEY_BYTES)
        return key if key is not None and len(key) == KEY_BYTES else None

    def _make_key(self) -> bytes | None:
        """Make a key where no usable key exists; if two processes do so, the last key wins."""
        _write_private(self.key, secrets.token_bytes(KEY_BYTES))
        return self._read_key()


def disk_cache(environ: Mapping[str, str]) -> DiskCache | None:
    """Return the user's cache, None where the user has no home folder.

    Entries lie in `$XDG_CACHE_HOME/kdsl` or `~/.cache/kdsl`, the key in `$XDG_STATE_HOME/kdsl` or
    `~/.local/state/kdsl`.
    """
    cache = _user_folder(environ, "XDG_CACHE_HOME", ".cache")
    state = _user_folder(environ, "XDG_STATE_HOME", ".local/state")
    return None if cache is None or state is None else DiskCache(cache, state / "cache-key")


def digest_of(*parts: str) -> str:
    """Return an entry name for data that depends on these texts."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()[:32]


def _user_folder(environ: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    base = environ.get(variable) or (f"{environ['HOME']}/{below_home}" if environ.get("HOME") else "")
    return Path(base, "kdsl") if base and Path(base).is_absolute() else None


def _mac(key: bytes, name: str, payload: bytes) -> bytes:
    """Return the authentication code of an entry. It covers the name, so no entry can replace another."""
    return hmac.digest(key, b"%s\0%s" % (name.encode(), payload), "sha256")


def _is_private_folder(path: Path) -> bool:
    """Return whether a folder exists, belongs to the user, and is writable for the user only."""
    try:
        state = path.stat()
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o022


def _read_private(path: Path, most: int) -> bytes | None:
    """Return the content of a regular file that belongs to the user and that others cannot read or write.

    Return None for any other file, and for one of more than `most` bytes. It never blocks: the file is opened
    with O_NONBLOCK and checked through its descriptor.
    """
    try:
        descriptor = os.open(path, _OPEN)
    except OSError:
        return None
    try:
        state = os.fstat(descriptor)
        is_private = state.st_uid == os.getuid() and not state.st_mode & 0o077
        if not stat.S_ISREG(state.st_mode) or not is_private or state.st_size > most:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            content = stream.read(most + 1)
        return content if len(content) <= most else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _write_private(path: Path, content: bytes) -> None:
    temporary = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private_folder(path.parent):
            return
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(temporary).replace(path)
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink(missing_ok=True)
