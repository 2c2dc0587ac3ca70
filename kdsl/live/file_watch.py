"""Tells when files have changed, mounted ConfigMaps included: by looking every few seconds.

A mounted ConfigMap is a folder of links into `..data`, itself a link that is swapped for a new folder. What
counts is therefore what a path leads to. Looking is cheap: as long as no file's identity, size and times are
different nothing is read; then the contents decide.

Files are found and read as whoever loads them does it (`kdsl.base.file_policy`): what is refused there is not
read here either, and a folder is looked through once whatever leads to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from kdsl.base.file_policy import FoundFile, files_below, named_file

MAX_FILES: Final = 10_000
MAX_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Look:
    """What there is at one look: the files, what tells each of them as it is now, and what is refused."""

    files: tuple[FoundFile, ...]
    stamps: tuple[tuple[str, str, int, int, int, int], ...]
    refused: tuple[str, ...]

    def is_like(self, other: _Look) -> bool:
        """Tell whether nothing has changed: files by path, identity, size and time of change."""
        return (self.stamps, self.refused) == (other.stamps, other.refused)


class FileWatch:
    """Watches the files below some paths. `wants` says of a file's name whether it counts."""

    def __init__(self, paths: Callable[[], Iterable[Path]], wants: Callable[[str], bool]) -> None:
        """`paths` are asked for at every look: a configuration may name others than before."""
        self._paths, self._wants = paths, wants
        self._last = self._look()
        self._digest = _digest(self._last)

    def has_changed(self) -> bool:
        """Tell whether the contents are others than at the last call."""
        look = self._look()
        if look.is_like(self._last):
            return False
        self._last = look
        digest = _digest(look)
        if digest == self._digest:
            return False
        self._digest = digest
        return True

    def _look(self) -> _Look:
        problems: list[OSError] = []
        files = tuple(islice(self._files(problems), MAX_FILES))
        return _Look(files, tuple(map(_stamp, files)), tuple(map(_refused, problems)))

    def _files(self, problems: list[OSError]) -> Iterator[FoundFile]:
        for path in self._paths():
            if path.is_dir():
                yield from files_below(path, self._wants, problems)
            else:
                # Files that are named count whatever they are called.
                yield named_file(path)


def _digest(look: _Look) -> bytes:
    digest = hashlib.sha256("\0".join(look.refused).encode("utf-8", "surrogateescape"))
    for file in look.files:
        digest.update(b"\0" + str(file.path).encode("utf-8", "surrogateescape") + b"\0")
        try:
            digest.update(hashlib.sha256(file.read(MAX_BYTES)).digest())
        except OSError as error:
            # What cannot be read is told by who loads the files.
            digest.update(f"{type(error).__name__} {error.errno}".encode())
    return digest.digest()


def _refused(error: OSError) -> str:
    return f"{error.filename} {error.strerror}"


def _stamp(file: FoundFile) -> tuple[str, str, int, int, int, int]:
    path, real = str(file.path), str(file.real)
    try:
        state = file.real.stat()
    except OSError:
        return (path, real, 0, 0, -1, 0)
    return (path, real, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
