"""The policy for files that users give: links, special files, sizes, and files with several names.

Every command finds, opens and replaces such files through this module. So no content of a folder makes a
command hang, read without end, or leave the folder.

- A path that the user names may be a link or a pipe: it is opened as it is.
- A link found in a folder is followed only if its target lies below that folder. Any other link is refused:
  the right to write one folder gives no right over the content of another.
- A search visits each folder once and returns each file once, however many links lead to it. The name that
  is no link comes first.
- The `places` of a file decide to whom it belongs; the name of a link that leaves its folder does not count.
- A search gives up in a folder with too much below it, and returns none of its files.
- Devices, sockets and files beyond the size limit of their kind are refused before they are read; in folders,
  pipes too.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from kdsl.base.real_path import real_path

_READ: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
# Opening a pipe does not wait for a writer.
_AT_ONCE: Final = getattr(os, "O_NONBLOCK", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_PIECE: Final = 2**20
_HEAD: Final = 2**12
_MOST_LINKS: Final = 40
"""The longest chain of links that the operating system follows."""
MOST_ENTRIES: Final = 50_000
"""The most files and folders that a search looks at: it ends in seconds, also if `/` is named by mistake."""


class Refusal(StrEnum):
    """The reason why a file or link is refused."""

    LEAVES = "it is a link that leads out of the folder it stands in"
    LOOP = "it is a link to a folder that it stands in"
    SPECIAL = "it is no regular file"
    NO_WRITER = "it is a pipe that nothing was written to"
    TOO_LARGE = "it is too large"
    TOO_MANY = f"more than {MOST_ENTRIES:,} files and folders are below it; name smaller folders"


class RefusedError(OSError):
    """The policy refuses a file; `strerror` holds the reason.

    `target` is the target of a link. Of a file that is too large, `size` is the number of bytes, where it is
    known, and `head` the first ones.
    """

    def __init__(
        self,
        refusal: Refusal,
        path: Path,
        *,
        target: Path | None = None,
        size: int | None = None,
        head: bytes = b"",
    ) -> None:
        super().__init__(errno.EPERM, refusal.value, str(path))
        self.refusal = refusal
        self.target = target
        self.size = size
        self.head = head


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a path leads to: `path` is the name to show, `real` the resolved path.

    `places` are the absolute paths that decide to whom the file belongs: its own path, and those of links to
    it that stay in their folders. `is_named` marks a file that the user named.
    """

    path: Path
    real: Path
    places: tuple[str, ...]
    is_named: bool = False

    def read(self, most: int) -> bytes:
        """Read the file, at most `most` bytes. Raises OSError, and RefusedError for a refused file."""
        return read_named(self.path, most) if self.is_named else _read(self.real, most, is_named=False)

    def also_at(self, places: Iterable[str]) -> FoundFile:
        """Return the file with the places of another of its names added."""
        return replace(self, places=tuple(dict.fromkeys((*self.places, *places))))

    def replace(self, content: bytes) -> None:
        """Replace the content of the file. Raises OSError where that is not possible."""
        replace_file(self.real, content)


def named_file(path: Path) -> FoundFile:
    """Return the file of a path that the user names; the file need not exist."""
    names = _names_of(path)
    return FoundFile(path, Path(names[-1]), tuple(dict.fromkeys(names)), is_named=True)


def read_named(path: Path, most: int) -> bytes:
    """Read a file that the user names, at most `most` bytes: through links, and from a pipe to its end.

    Raises OSError, and RefusedError for a device, for a larger file, of which only the head is read, and for
    a pipe without a writer.
    """
    return _read(path, most, is_named=True)


def read_written(folder: Path, name: str, most: int) -> bytes:
    """Read a file that another file names, relative to that file's `folder`; links must stay in their
    folders.
    """
    return _read(follow(folder, name), most, is_named=False)


def open_written(folder: Path, name: str) -> BinaryIO:
    """Open a file that another file names, for readers that take it piece by piece; see `read_written`.

    Its size has no limit here. Raises OSError, and RefusedError for anything but a regular file.
    """
    path = follow(folder, name)
    file = os.fdopen(os.open(path, _READ | _AT_ONCE | _NO_LINK), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise RefusedError(Refusal.SPECIAL, path)
    return file


def follow(folder: Path, name: str) -> Path:
    """Return the target of a path that a file in `folder` names.

    Raises RefusedError where a link on the way leaves its folder, OSError where the path does not exist.
    """
    written = Path(name)
    base, steps = (written.parent, (written.name,)) if written.is_absolute() else (folder, written.parts)
    place = real_path(base)
    for step in steps:
        place = real_path(place / step) if step == ".." else _step(place, step)
    return place


def replace_file(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically: a reader gets the old content or the new one.

    Other hard links keep the old content. If `path` is a link, its target is replaced. Raises OSError where
    that is not possible.
    """
    target = real_path(path)
    mode = target.stat().st_mode
    if not stat.S_ISREG(mode):
        raise RefusedError(Refusal.SPECIAL, path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(stat.S_IMODE(mode))
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def distinct(files: Iterable[FoundFile]) -> list[FoundFile]:
    """Return each file once, under the first of its names in `files`.

    Two hard links are two files, as two copies are: each belongs to its own folder.
    """
    first: dict[Path, FoundFile] = {}
    for file in files:
        first[file.real] = first[file.real].also_at(file.places) if file.real in first else file
    return list(first.values())


def is_folder(path: str | Path) -> bool:
    """Return whether a path is a folder; false if it cannot be looked at: reading it reports that."""
    return os.path.isdir(path)  # noqa: PTH112 - `Path.is_dir` raises in folders without rights


def files_below(
    folder: Path,
    wants: Callable[[str], bool],
    problems: list[OSError],
    skips: Callable[[Path, str], bool] = lambda folder, name: False,
) -> list[FoundFile]:
    """Return the files below a folder whose names are wanted, sorted, without hidden and skipped ones.

    `skips` gets a folder and a name in it. Errors and refusals are added to `problems`, with the path as
    `filename`.
    """
    search = _FileSearch(wants, skips)
    if not search.run(folder):
        problems.append(RefusedError(Refusal.TOO_MANY, folder))
        return []
    problems += sorted(search.problems, key=lambda error: Path(str(error.filename)).parts)
    return sorted(search.found.values(), key=lambda file: file.path.parts)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder in a search: its name to show, its places, and its resolved path."""

    path: Path
    places: tuple[str, ...]
    real: Path

    def places_of(self, name: str, real: str) -> tuple[str, ...]:
        """Return the places of an entry. A search makes many: as texts, which are faster than paths."""
        return tuple(dict.fromkeys((*(os.path.join(each, name) for each in self.places), real)))  # noqa: PTH118


@dataclass(slots=True)
class _FileSearch:
    """A walk through a folder. It follows links last, so that a file gets the name that is no link."""

    wants: Callable[[str], bool]
    skips: Callable[[Path, str], bool]
    found: dict[str, FoundFile] = field(default_factory=dict)
    problems: list[OSError] = field(default_factory=list)
    _seen: set[Path] = field(default_factory=set)
    _folders: list[_Folder] = field(default_factory=list)
    _links: list[tuple[_Folder, str]] = field(default_factory=list)
    _entries: int = 0

    def run(self, folder: Path) -> bool:
        """Search the folder; return False if the search is given up."""
        root = named_file(folder)
        self._folders.append(_Folder(folder, root.places, root.real))
        while self._folders or self._links:
            while self._folders:
                self._look_through(self._folders.pop())
                if self._entries > MOST_ENTRIES:
                    return False
            links, self._links = sorted(self._links, key=lambda link: (link[0].path / link[1]).parts), []
            for standing, name in links:
                self._take_link(standing, name)
        return True

    def _look_through(self, folder: _Folder) -> None:
        if folder.real in self._seen:
            return
        self._seen.add(folder.real)
        try:
            with os.scandir(folder.real) as scan:
                # One more than allowed shows that there are too many.
                entries = sorted(islice(scan, MOST_ENTRIES + 1), key=lambda entry: entry.name)
        except OSError as error:
            self.problems.append(OSError(error.errno, error.strerror, str(folder.path)))
            return
        self._entries += len(entries)
        if self._entries > MOST_ENTRIES:
            return
        for entry in entries:
            name, is_link = entry.name, entry.is_symlink()
            is_folder = entry.is_dir(follow_symlinks=False)
            is_wanted = is_link or is_folder or self.wants(name)
            if name.startswith(".") or not is_wanted or self.skips(folder.path, name):
                continue
            if is_link:
                self._links.append((folder, name))
            else:
                self._take(folder, name, folder.real / name, is_folder)

    def _take(self, standing: _Folder, name: str, real: Path, is_folder: bool) -> None:
        path, key = standing.path / name, str(real)
        places = standing.places_of(name, key)
        if is_folder:
            self._folders.append(_Folder(path, places, real))
        else:
            known = self.found.get(key)
            self.found[key] = known.also_at(places) if known else FoundFile(path, real, places)

    def _take_link(self, standing: _Folder, name: str) -> None:
        """Add the target of a link, unless the link leaves its folder. Links to files with unwanted names are
        ignored.
        """
        path = standing.path / name
        try:
            real = real_path(standing.real / name, strict=True)
        except OSError as error:
            if self.wants(name):
                self.problems.append(OSError(error.errno, error.strerror, str(path)))
            return
        is_folder = real.is_dir()
        if not is_folder and not self.wants(name):
            return
        refusal = _refusal(standing.real, real)
        if refusal is not None:
            self.problems.append(RefusedError(refusal, path, target=real))
        else:
            self._take(standing, name, real, is_folder)


def _refusal(standing: Path, target: Path) -> Refusal | None:
    """Return why a link in a folder is refused, None where it is not; both paths are without links."""
    if standing in target.parents:
        return None
    return Refusal.LOOP if target == standing or target in standing.parents else Refusal.LEAVES


def _step(place: Path, name: str) -> Path:
    """Return the target of an entry of a folder; the path of the folder is without links."""
    here = place / name
    if not here.is_symlink():
        return here
    target = real_path(here, strict=True)
    refusal = _refusal(place, target)
    if refusal is not None:
        raise RefusedError(refusal, here, target=target)
    return target


def _names_of(path: Path) -> list[str]:
    """Return the names on the way from a path to its target, one for each link that is followed.

    They begin behind the last link that leaves its folder: the name of such a link does not count.
    """
    whole = path.absolute()
    place, steps = Path(whole.anchor), list(reversed(whole.parts[1:]))
    names = [str(whole)] if ".." not in steps else []
    links = 0
    while steps and links <= _MOST_LINKS:
        # INVARIANT: `place` is without links.
        step = steps.pop()
        here = place / step
        if step == ".." or not os.path.islink(here):  # noqa: PTH114 - that raises in folders without rights
            place = place.parent if step == ".." else here
            continue
        links += 1
        if not _stays(place, here):
            names.clear()
        target = here.readlink()
        place = Path(target.anchor) if target.is_absolute() else place
        steps += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        while steps and steps[-1] == "..":
            place = place.parent
            steps.pop()
        if ".." not in steps:
            names.append(str(place.joinpath(*reversed(steps))))
    return [*names, os.path.realpath(path)]


def _stays(standing: Path, link: Path) -> bool:
    return standing in real_path(link).parents


def _read(path: Path, most: int, *, is_named: bool) -> bytes:
    descriptor = os.open(path, _READ | _AT_ONCE | (0 if is_named else _NO_LINK))
    try:
        # Check the opened file and not the path, which may lead to another file by now.
        state = os.fstat(descriptor)
        is_pipe = stat.S_ISFIFO(state.st_mode)
        if stat.S_ISDIR(state.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(state.st_mode) and not (is_pipe and is_named):
            raise RefusedError(Refusal.SPECIAL, path)
        if state.st_size > most:
            head = os.read(descriptor, _HEAD)
            raise RefusedError(Refusal.TOO_LARGE, path, size=state.st_size, head=head)
        if is_pipe:
            # A pipe may wait for its writer; without a writer the read ends at once even so.
            os.set_blocking(descriptor, True)
        content = b"".join(_pieces(descriptor, most))
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise RefusedError(Refusal.TOO_LARGE, path, head=content[:_HEAD])
    if is_pipe and not content:
        raise RefusedError(Refusal.NO_WRITER, path)
    return content


def _pieces(descriptor: int, most: int) -> Iterator[bytes]:
    """Yield the content of a file; of a file larger than `most`, yield slightly more than `most` bytes."""
    left = most + 1
    while left > 0 and (piece := os.read(descriptor, min(left, _PIECE))):
        left -= len(piece)
        yield piece
