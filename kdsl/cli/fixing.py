"""`--fix` and `--diff`: the certain fixes of what a check finds, tried before any file is written."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.edits import apply, certain_fixes
from kdsl.base.errors import KdslError
from kdsl.cli.output import emit
from kdsl.lang.discovery import read_source

if TYPE_CHECKING:
    from kdsl.base.span import Source

Read = Callable[[Path], bytes]
Check = Callable[[Read], tuple[Diagnostic, ...]]
"""Checks rule files that are read through the function that it is given."""

T = TypeVar("T", bound=Callable[..., Any])

_BOM = b"\xef\xbb\xbf"
_STOPS_THE_CHECK = ("K01", "K035")
"""Mistakes that hide all others, because the rules cannot be loaded."""


class Change(NamedTuple):
    """A file before and after."""

    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class Fixed:
    """What fixing comes to: the changed files, and what is still found in them and the others."""

    findings: tuple[Diagnostic, ...]
    changes: Mapping[Path, Change] = field(default_factory=dict)


def fix(check: Check) -> Fixed:
    """Apply the certain fixes of what `check` finds until none is left. Nothing is written.

    A file is fixed only where that leaves fewer findings and no more errors: else it stays as it is.
    """
    attempt = _Attempt(check, {}, check(Path.read_bytes))
    stuck: set[Path] = set()
    while True:
        proposed = {path: text for path, text in attempt.proposals().items() if path not in stuck}
        if not proposed:
            return Fixed(attempt.findings, attempt.changes())
        together = attempt.with_texts(proposed)
        if together.is_better_than(attempt):
            attempt = together
            continue
        for path, text in proposed.items():
            alone = attempt.with_texts({path: text})
            if alone.is_better_than(attempt):
                attempt = alone
            else:
                stuck.add(path)


def write(changes: Mapping[Path, Change]) -> None:
    """Replace the files. Each is replaced as a whole: a reader sees the old text or the new one.

    Raises OSError where that is not possible.
    """
    for path, change in changes.items():
        target = path.resolve()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(change.after)
            Path(name).chmod(target.stat().st_mode)
            Path(name).replace(target)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def fix_options(command: T) -> T:
    """Add `--fix` and `--diff` to a command."""
    fix_ = click.option("--fix", is_flag=True, help="Apply the fixes that are certain, then check again.")
    diff = click.option("--diff", is_flag=True, help="Print what --fix would change, and change nothing.")
    return fix_(diff(command))


def settle_fixes(check: Check, is_diff: bool) -> Fixed:
    """Fix what can be fixed and write it, or print it for `--diff`; then the command goes on with the rest.

    Raises KdslError where a file cannot be written.
    """
    fixed = fix(check)
    if is_diff:
        show(fixed.changes)
        return fixed
    try:
        write(fixed.changes)
    except OSError as error:
        raise KdslError(
            f"cannot write `{error.filename}`: {(error.strerror or str(error)).lower()}"
        ) from None
    for path in fixed.changes:
        emit(f"fixed {path}", to_stderr=True)
    return fixed


def show(changes: Mapping[Path, Change]) -> None:
    """Print what would change as a unified diff."""
    for path, change in changes.items():
        before, after = (text.decode().splitlines(keepends=True) for text in change)
        emit("".join(difflib.unified_diff(before, after, str(path), f"{path} (fixed)")), nl=False)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Texts that replace those of the files, and what is found with them."""

    check: Check
    texts: Mapping[Path, bytes]
    findings: tuple[Diagnostic, ...]

    def read(self, path: Path) -> bytes:
        return self.texts[path] if path in self.texts else path.read_bytes()

    def with_texts(self, texts: Mapping[Path, bytes]) -> _Attempt:
        merged = {**self.texts, **texts}
        return _Attempt(self.check, merged, self.check(_Attempt(self.check, merged, ()).read))

    def proposals(self) -> Mapping[Path, bytes]:
        """Return the new text of each file that certain fixes edit."""
        texts = apply(certain_fixes(self.findings))
        encoded = ((Path(source.path), self._encoded(source, text)) for source, text in texts.items())
        return {path: data for path, data in encoded if data is not None}

    def _encoded(self, source: Source, text: str) -> bytes | None:
        """Return the bytes of a new text; None where the source is not the text of a file as it stands."""
        path = Path(source.path)
        try:
            data = self.read(path)
        except OSError:
            return None
        read = read_source(path, data)
        if isinstance(read, Diagnostic) or read.text != source.text:
            return None
        return (_BOM if data.startswith(_BOM) else b"") + text.encode()

    def is_better_than(self, other: _Attempt) -> bool:
        return _badness(self.findings) < _badness(other.findings)

    def changes(self) -> Mapping[Path, Change]:
        return {path: Change(path.read_bytes(), text) for path, text in self.texts.items()}


def _badness(findings: Iterable[Diagnostic]) -> tuple[int, int, int]:
    """Order what is found: what hides other errors first, then errors, then all."""
    listed = tuple(findings)
    hiding = sum(each.is_error and each.code.startswith(_STOPS_THE_CHECK) for each in listed)
    return hiding, sum(each.is_error for each in listed), len(listed)
