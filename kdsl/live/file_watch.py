"""Tells when files have changed, mounted ConfigMaps included: by looking every few seconds.

A mounted ConfigMap is a folder of links into `..data`, itself a link that is swapped for a new folder. What
counts is therefore what a path leads to. Looking is cheap: as long as no file's identity, size and times are
different nothing is read; then the contents decide.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from kdsl.base.file_policy import read_named

MAX_FILES: Final = 10_000
MAX_BYTES: Final = 4 * 1024 * 1024

Stamp = tuple[tuple[str, str, int, int, int, int], ...]
"""Of each file: its path, what it leads to, device, inode, size, and time of change."""


class FileWatch:
    """Watches the files below some paths. `wants` says of a file's name whether it counts."""

    def __init__(self, paths: Callable[[], Iterable[Path]], wants: Callable[[str], bool]) -> None:
        """`paths` are asked for at every look: a configuration may name others than before."""
        self._paths, self._wants = paths, wants
        self._stamp = self._look()
        self._digest = self._read(self._stamp)

    def has_changed(self) -> bool:
        """Tell whether the contents are others than at the last call."""
        stamp = self._look()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        digest = self._read(stamp)
        if digest == self._digest:
            return False
        self._digest = digest
        return True

    def _look(self) -> Stamp:
        found = (stamp for path in self._paths() for stamp in self._below(path))
        return tuple(sorted(islice(found, MAX_FILES)))

    def _below(self, path: Path) -> Iterator[tuple[str, str, int, int, int, int]]:
        # Files that are named count whatever they are called.
        if not path.is_dir():
            yield _stamp(path)
            return
        for folder, folders, names in os.walk(path, followlinks=True):
            # Hidden names are the copies that a mounted ConfigMap is made of.
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            if Path(folder) != path and os.path.realpath(folder) in map(
                os.path.realpath, Path(folder).parents
            ):
                folders.clear()
                continue
            for name in sorted(names):
                if not name.startswith(".") and self._wants(name):
                    yield _stamp(Path(folder, name))

    def _read(self, stamp: Stamp) -> bytes:
        digest = hashlib.sha256()
        for path, *_ in stamp:
            digest.update(path.encode("utf-8", "surrogateescape") + b"\0")
            try:
                digest.update(hashlib.sha256(read_named(Path(path), MAX_BYTES)).digest())
            except OSError as error:
                # What cannot be read is told by who loads the files.
                digest.update(f"{type(error).__name__} {error.errno}".encode())
        return digest.digest()


def _stamp(path: Path) -> tuple[str, str, int, int, int, int]:
    real = os.path.realpath(path)
    try:
        state = Path(real).stat()
    except OSError:
        return (str(path), real, 0, 0, -1, 0)
    return (str(path), real, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
