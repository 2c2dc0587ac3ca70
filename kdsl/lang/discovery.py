"""Finds and reads rule files: what a list of paths means. The loader and `kdsl fmt` use it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.globs import glob
from kdsl.base.span import Source
from kdsl.lang.codes import LangCode

SUFFIX = ".kdsl"
TWIN_SUFFIX = ".kdsl.yaml"
"""The form of rule files in YAML: see `twin.py`."""
IGNORE_FILE: Final = ".kdslignore"
"""Names what a search of its folder passes by: a pattern a line, from that folder; `#` starts a comment."""

MAX_BYTES: Final = 128 * 1024
"""Of a rule file. The largest that ships has a sixth; one of nothing but literals takes seconds to check."""


def find_rule_files(
    paths: Iterable[Path | str], suffixes: tuple[str, ...] = (SUFFIX,)
) -> tuple[tuple[Path, ...], tuple[Diagnostic, ...]]:
    """List the rule files that the paths mean, each once, in the order given and sorted inside folders.

    A file counts whatever its suffix; of a folder count all with one of `suffixes` below it, through symbolic
    links too. Names that start with a dot are skipped, which leaves out the hidden copies that Kubernetes
    makes of a mounted ConfigMap, and so is what an `IGNORE_FILE` in a folder on the way names.
    """
    files: dict[Path, Path] = {}
    diagnostics: list[Diagnostic] = []
    for path in map(Path, paths):
        before = len(diagnostics)
        try:
            found = _below(path, (), (), suffixes, diagnostics) if path.is_dir() else [path]
            if not found and len(diagnostics) == before:
                title = f"no `*{SUFFIX}` file below `{path}`"
                diagnostics.append(Diagnostic(LangCode.NO_RULES, title, where=str(path)))
            for file in found:
                files.setdefault(file.resolve(), file)
        except (OSError, RuntimeError) as error:
            diagnostics.append(unreadable(path, error))
    return tuple(files.values()), tuple(diagnostics)


def read_sources(
    paths: Iterable[Path | str], read: Callable[[Path], bytes] = Path.read_bytes
) -> tuple[list[Source], list[Diagnostic]]:
    """Read the rule files that the paths mean, in both forms; what cannot be read is a diagnostic."""
    files, problems = find_rule_files(paths, (SUFFIX, TWIN_SUFFIX))
    diagnostics = list(problems)
    sources: list[Source] = []
    for path in files:
        try:
            source = read_source(path, read(path))
        except OSError as error:
            diagnostics.append(unreadable(path, error))
            continue
        if isinstance(source, Source):
            sources.append(source)
        else:
            diagnostics.append(source)
    return sources, diagnostics


def read_source(path: Path, content: bytes) -> Source | Diagnostic:
    """Decode a rule file, without its byte order mark if it has one."""
    if len(content) > MAX_BYTES:
        title = f"`{path}` is too large: {len(content):,} bytes, {MAX_BYTES:,} are allowed"
        help_ = ("split it: files of one package share what they declare",)
        return Diagnostic(LangCode.FILE_TOO_LARGE, title, where=str(path), help=help_)
    try:
        return Source(str(path), content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        note = f"byte 0x{error.object[error.start]:02x} in line {line} starts no character"
        title = f"`{path}` is not UTF-8 text"
        return Diagnostic(LangCode.NOT_UTF8, title, where=str(path), notes=(note,))


def unreadable(path: Path, error: OSError | RuntimeError) -> Diagnostic:
    """Describe a file or folder that the operating system does not let us read."""
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return Diagnostic(LangCode.UNREADABLE, f"cannot read `{path}`: {reason}", where=str(path))


@dataclass(frozen=True, slots=True)
class _Ignored:
    """What the `IGNORE_FILE` of a folder names; a pattern that ends in `/` means folders."""

    folder: Path
    patterns: tuple[re.Pattern[str], ...]

    def has(self, path: Path) -> bool:
        name = path.relative_to(self.folder).as_posix()
        names = (name, f"{name}/") if path.is_dir() else (name,)
        return any(pattern.fullmatch(each) for pattern in self.patterns for each in names)


def _ignored_in(folder: Path, diagnostics: list[Diagnostic]) -> tuple[_Ignored, ...]:
    """Read the `IGNORE_FILE` of a folder, if it has one."""
    path = folder / IGNORE_FILE
    if not path.exists():
        return ()
    try:
        source = read_source(path, path.read_bytes())
    except OSError as error:
        source = unreadable(path, error)
    if isinstance(source, Diagnostic):
        diagnostics.append(source)
        return ()
    lines = (line.strip() for line in source.text.splitlines())
    return (_Ignored(folder, tuple(glob(line) for line in lines if line and not line.startswith("#"))),)


def _below(
    folder: Path,
    above: tuple[Path, ...],
    ignored: tuple[_Ignored, ...],
    suffixes: tuple[str, ...],
    diagnostics: list[Diagnostic],
) -> list[Path]:
    """List the rule files below a folder that are not `ignored`; `above` are the real places of the folders
    around it.
    """
    place = folder.resolve()
    if place in above:
        title = f"`{folder}` is a link to a folder that it stands in"
        diagnostics.append(Diagnostic(LangCode.LINK_LOOP, title, where=str(folder)))
        return []
    ignored += _ignored_in(folder, diagnostics)
    found: list[Path] = []
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        diagnostics.append(unreadable(folder, error))
        return []
    for entry in entries:
        if any(each.has(entry) for each in ignored):
            continue
        if entry.is_dir():
            found += _below(entry, (*above, place), ignored, suffixes, diagnostics)
        elif entry.name.endswith(suffixes):
            found.append(entry)
    return found
