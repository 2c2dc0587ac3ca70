"""Detects changed files, including mounted ConfigMaps, by polling every few seconds.

A mounted ConfigMap is a folder of links into `..data`, a link that is swapped to a new folder. The watch
therefore compares link targets. Polling is cheap: files are read only if an identity, size or time differs;
then their contents decide.

Files are found and read in the same way as by their loader (`kdsl.base.file_policy`): files that it refuses
are not read here either, and a folder is visited once even if several paths lead to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from kdsl.base.file_policy import FoundFile, files_below, is_folder, named_file

MAX_FILES: Final = 10_000
MAX_BYTES: Final = 4 * 1024 * 1024
_MOST_CHANGES: Final = 10
"""The most changes in a row that are followed within one poll."""


@dataclass(frozen=True, slots=True)
class _Poll:
    """The state of the files at one poll: the files, their stamps, and the errors of refused files."""

    files: tuple[FoundFile, ...]
    stamps: tuple[tuple[str, str, int, int, int, int], ...]
    refused: tuple[str, ...]

    def is_like(self, other: _Poll) -> bool:
        """Return whether both states are equal: files by path, identity, size and time of change."""
        return (self.stamps, self.refused) == (other.stamps, other.refused)


class FileWatch:
    """Watches the files below some paths. `wants` returns whether a file of this name counts."""

    def __init__(self, paths: Callable[[], Iterable[Path]], wants: Callable[[str], bool]) -> None:
        """`paths` is called again after a change: a changed configuration may name other files."""
        self._paths, self._wants = paths, wants
        self._named: tuple[Path, ...] = ()
        self._last = self._settled(self._poll())
        self._digest = _digest(self._last)

    def has_changed(self) -> bool:
        """Return whether the contents have changed since the last call."""
        poll = self._poll()
        if poll.is_like(self._last):
            return False
        self._last = self._settled(poll)
        digest = _digest(self._last)
        if digest == self._digest:
            return False
        self._digest = digest
        return True

    def _settled(self, before: _Poll) -> _Poll:
        """Return the state of the files that are named after a change, which may itself be changed again."""
        for _ in range(_MOST_CHANGES):
            self._named = tuple(self._paths())
            poll = self._poll()
            if poll.is_like(before):
                break
            before = poll
        return before

    def _poll(self) -> _Poll:
        problems: list[OSError] = []
        files = tuple(islice(self._files(problems), MAX_FILES))
        refused = tuple(f"{error.filename} {error.strerror}" for error in problems)
        return _Poll(files, tuple(map(_stamp, files)), refused)

    def _files(self, problems: list[OSError]) -> Iterator[FoundFile]:
        for path in self._named:
            if is_folder(path):
                yield from files_below(path, self._wants, problems)
            else:
                # Named files count regardless of their name.
                yield named_file(path)


def _digest(poll: _Poll) -> bytes:
    digest = hashlib.sha256("\0".join(poll.refused).encode("utf-8", "surrogateescape"))
    for file in poll.files:
        digest.update(b"\0" + str(file.path).encode("utf-8", "surrogateescape") + b"\0")
        try:
            digest.update(hashlib.sha256(file.read(MAX_BYTES)).digest())
        except OSError as error:
            # The loader of the files reports unreadable ones.
            digest.update(f"{type(error).__name__} {error.errno}".encode())
    return digest.digest()


def _stamp(file: FoundFile) -> tuple[str, str, int, int, int, int]:
    path, real = str(file.path), str(file.real)
    try:
        state = file.real.stat()
    except OSError:
        return (path, real, 0, 0, -1, 0)
    return (path, real, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
