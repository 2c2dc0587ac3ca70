"""Detects changed files, including mounted ConfigMaps, by polling every few seconds.

A mounted ConfigMap is a folder of links into `..data`, a link that is swapped to a new folder. The watch
therefore compares link targets. Polling is cheap: files are read only if an identity, size or time differs;
then their contents decide.

Files are found and read in the same way as by their loader: files that it refuses or that a `.kdslignore`
leaves out are not read here either, and a folder is visited once even if several paths lead to it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.file_policy import FoundFile
from kdsl.lang.discovery import SUFFIX, TWIN_SUFFIX, find_rule_files

MAX_BYTES: Final = 4 * 1024 * 1024
_MOST_CHANGES: Final = 10
"""The most changes in a row that are followed within one poll."""


@dataclass(frozen=True, slots=True)
class _Poll:
    """The state of the files at one poll: the files, their stamps, and the errors of the search."""

    files: tuple[FoundFile, ...]
    stamps: tuple[tuple[str, str, int, int, int, int], ...]
    refused: tuple[str, ...]

    def is_like(self, other: _Poll) -> bool:
        """Return whether both states are equal: files by path, identity, size and time of change."""
        return (self.stamps, self.refused) == (other.stamps, other.refused)


class FileWatch:
    """Watches some files, and the rule files below some folders."""

    def __init__(self, paths: Callable[[], Iterable[Path]]) -> None:
        """`paths` is called again after a change: a changed configuration may name other files."""
        self._paths = paths
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
        files, problems = find_rule_files(self._named, (SUFFIX, TWIN_SUFFIX))
        return _Poll(files, tuple(map(_stamp, files)), tuple(map(_text_of, problems)))


def _text_of(problem: Diagnostic) -> str:
    """Return an error with the text it is about: a text that is changed and still wrong is told again."""
    return problem.title if problem.span is None else f"{problem.title}\n{problem.span.source.text}"


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
        state = os.stat(real)  # noqa: PTH116 - of many files, `Path.stat` is slow
    except OSError:
        return (path, real, 0, 0, -1, 0)
    # Programs that copy files may set the time of modification, but never that of the change.
    return (path, real, state.st_dev, state.st_ino, state.st_size, state.st_ctime_ns)
