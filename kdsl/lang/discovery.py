"""Finds and reads the rule files of a list of paths. The loader and `kdsl fmt` use it."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import reason_of
from kdsl.base.file_policy import (
    FoundFile,
    Refusal,
    RefusedError,
    distinct,
    files_below,
    named_file,
    read_written,
)
from kdsl.base.globs import glob
from kdsl.base.span import Source, Span
from kdsl.base.undecodable import undecodable
from kdsl.lang.codes import LangCode

SUFFIX = ".kdsl"
TWIN_SUFFIX = ".kdsl.yaml"
"""The suffix of rule files in YAML: see `twin.py`."""
IGNORE_FILE: Final = ".kdslignore"
"""Lists files that a search of its folder skips: one pattern a line, relative to the folder; `#` starts a
comment.
"""

MAX_BYTES: Final = 128 * 1024
"""The size limit of a rule file. The largest shipped file has a sixth; a file of literals alone takes seconds
to check.
"""

_START: Final = "name a folder of rules, or write one to start from with `kdsl init DIR`"

Drafts = Mapping[Path, bytes]
"""Texts that replace those of files, by the paths to show."""
NO_DRAFTS: Final[Drafts] = MappingProxyType({})

_REFUSALS: Final = {
    Refusal.LEAVES: LangCode.LINK_LEAVES,
    Refusal.LOOP: LangCode.LINK_LOOP,
    Refusal.SPECIAL: LangCode.SPECIAL_FILE,
    Refusal.TOO_LARGE: LangCode.FILE_TOO_LARGE,
}
_IDLE = re.compile(r"!|\.{0,2}/")
"""The starts of patterns that Git knows and that have no meaning here."""
_ABOUT_IDLE: Final = {
    "!": ("no pattern brings a name back", "write patterns that fit the other names alone"),
    "/": ("names are relative to the folder of this file", "leave the start out"),
    "./": ("names are relative to the folder of this file", "leave the start out"),
    "../": (
        "names are below the folder of this file",
        f"write it into the `{IGNORE_FILE}` of the other folder",
    ),
}
"""The reasons, with help."""


def find_rule_files(
    paths: Iterable[Path | str], suffixes: tuple[str, ...] = (SUFFIX,)
) -> tuple[tuple[FoundFile, ...], tuple[Diagnostic, ...]]:
    """Return the rule files of the paths, each once, in the order given and sorted inside folders.

    A named file counts whatever its suffix. In folders all files with one of `suffixes` count, and
    `kdsl.base.file_policy` defines which links are followed. Names that start with a dot are skipped, which
    leaves out the hidden copies that Kubernetes makes of a mounted ConfigMap. So are the names in an
    `IGNORE_FILE` of a folder on the way.
    """
    files: list[FoundFile] = []
    diagnostics: list[Diagnostic] = []
    for path in map(Path, paths):
        try:
            if not path.is_dir():
                files.append(named_file(path))
                continue
        except (OSError, ValueError) as error:
            diagnostics.append(unreadable(path, error))
            continue
        ignored, problems = _Ignored(path), list[OSError]()
        found = files_below(path, lambda name: name.endswith(suffixes), problems, ignored.has)
        files += found
        diagnostics += ignored.diagnostics
        diagnostics += [unreadable(Path(str(error.filename)), error) for error in problems]
        if not found and not problems and not ignored.diagnostics:
            title = f"no `*{SUFFIX}` file below `{path}`"
            notes = tuple(f"`{folder / IGNORE_FILE}` leaves out names" for folder in sorted(ignored.used))
            none = Diagnostic(LangCode.NO_RULES, title, where=str(path), notes=notes, help=(_START,))
            diagnostics.append(none)
    return tuple(distinct(files)), tuple(diagnostics)


def read_sources(
    paths: Iterable[Path | str], drafts: Drafts = NO_DRAFTS
) -> tuple[list[Source], list[Diagnostic]]:
    """Read the rule files of the paths, in both forms; a file that cannot be read becomes a diagnostic."""
    files, problems = find_rule_files(paths, (SUFFIX, TWIN_SUFFIX))
    diagnostics = list(problems)
    sources: list[Source] = []
    for file in files:
        source = read_rule_file(file, drafts)
        if isinstance(source, Source):
            sources.append(source)
        else:
            diagnostics.append(source)
    return sources, diagnostics


def read_library(path: Path | str, drafts: Drafts = NO_DRAFTS) -> list[Source | Diagnostic]:
    """Read the rule files of a library; a file that cannot be read is replaced by its diagnostic."""
    sources, problems = read_sources([path], drafts)
    return [*sources, *problems]


def read_rule_file(file: FoundFile, drafts: Drafts = NO_DRAFTS) -> Source | Diagnostic:
    """Read a rule file that was found."""
    try:
        content = drafts[file.path] if file.path in drafts else file.read(MAX_BYTES)
    except (OSError, ValueError) as error:
        return unreadable(file.path, error)
    return read_source(file.path, content, file.places)


def read_source(path: Path, content: bytes, places: tuple[str, ...] = ()) -> Source | Diagnostic:
    """Decode a rule file, without its byte order mark if it has one."""
    if len(content) > MAX_BYTES:
        return _too_large(path, len(content))
    try:
        return Source(str(path), content.decode("utf-8-sig"), places)
    except UnicodeDecodeError as error:
        return undecodable(LangCode.NOT_UTF8, path, error)


def unreadable(path: Path, error: OSError | ValueError, help: str = _START) -> Diagnostic:
    """Return the diagnostic of a file or folder that the operating system does not let us read, or that is
    refused; `help` is for one that does not exist.
    """
    if isinstance(error, RefusedError):
        return _refused(path, error)
    title = f"cannot read `{path}`: {reason_of(error)}"
    lines = (help,) if isinstance(error, FileNotFoundError) else ()
    return Diagnostic(LangCode.UNREADABLE, title, where=str(path), help=lines)


def _refused(path: Path, error: RefusedError) -> Diagnostic:
    """Return the diagnostic of a refused file or link, with help."""
    if error.refusal is Refusal.TOO_LARGE:
        try:
            # A character may be cut off at the end.
            getincrementaldecoder("utf-8")().decode(error.head)
        except UnicodeDecodeError as undecoded:
            return undecodable(LangCode.NOT_UTF8, path, undecoded)
        return _too_large(path, error.size)
    code = _REFUSALS.get(error.refusal, LangCode.UNREADABLE)
    title = f"cannot read `{path}`: {error.refusal}"
    if error.refusal is not Refusal.LEAVES:
        return Diagnostic(code, title, where=str(path))
    help_ = ("move the files here, or name the folder that they are in beside this one, and remove the link",)
    return Diagnostic(code, title, where=str(path), notes=(f"it leads to `{error.target}`",), help=help_)


def _too_large(path: Path, size: int | None) -> Diagnostic:
    title = (
        f"`{path}` is too large: {'more' if size is None else f'{size:,} bytes'}, {MAX_BYTES:,} are allowed"
    )
    help_ = ("split it: files of one package share their declarations",)
    return Diagnostic(LangCode.FILE_TOO_LARGE, title, where=str(path), help=help_)


@dataclass(slots=True)
class _Ignored:
    """The names in the `IGNORE_FILE`s below a folder; a pattern that ends in `/` matches folders.

    Errors in these files are in `diagnostics`; `used` are the folders whose files named a tested path. Each
    file is read when a path beside it is tested.
    """

    root: Path
    diagnostics: list[Diagnostic] = field(default_factory=list)
    used: set[Path] = field(default_factory=set)
    _patterns: dict[Path, tuple[tuple[Path, tuple[re.Pattern[str], ...]], ...]] = field(default_factory=dict)

    def has(self, parent: Path, name: str) -> bool:
        """Return whether the file of a folder on the way to a path names the path."""
        for folder, patterns in self._above(parent):
            if self._name(folder, patterns, parent / name):
                self.used.add(folder)
                return True
        return False

    def _above(self, folder: Path) -> tuple[tuple[Path, tuple[re.Pattern[str], ...]], ...]:
        """Return the folders from the root to this one that have patterns, with their patterns."""
        if folder not in self._patterns:
            above = () if folder == self.root else self._above(folder.parent)
            own = self._read(folder)
            self._patterns[folder] = (*above, (folder, own)) if own else above
        return self._patterns[folder]

    @staticmethod
    def _name(folder: Path, patterns: tuple[re.Pattern[str], ...], path: Path) -> bool:
        name = path.relative_to(folder).as_posix()
        names = (name, f"{name}/") if path.is_dir() else (name,)
        return any(pattern.fullmatch(each) for pattern in patterns for each in names)

    def _read(self, folder: Path) -> tuple[re.Pattern[str], ...]:
        path = folder / IGNORE_FILE
        try:
            source = read_source(path, read_written(folder, IGNORE_FILE, MAX_BYTES))
        except FileNotFoundError:
            return ()
        except OSError as error:
            source = unreadable(path, error)
        if isinstance(source, Diagnostic):
            self.diagnostics.append(source)
            return ()
        found: list[re.Pattern[str]] = []
        at = 0
        for line in source.text.splitlines(keepends=True):
            pattern = line.strip()
            if (idle := _IDLE.match(pattern)) is not None:
                start = at + line.index(pattern)
                span = Span(source, start, start + len(pattern))
                self.diagnostics.append(_idle_pattern(span, idle[0]))
            elif pattern and not pattern.startswith("#"):
                found.append(glob(pattern))
            at += len(line)
        return tuple(found)


def _idle_pattern(span: Span, start: str) -> Diagnostic:
    """Describe a pattern with the start of one of Git."""
    why, help_ = _ABOUT_IDLE[start]
    title = f"a pattern that begins with `{start}` fits no name"
    return Diagnostic(LangCode.IDLE_PATTERN, title, span, why, help=(help_,))
