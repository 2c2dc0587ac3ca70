"""`--fix` and `--diff`: apply the safe fixes of findings, and check them before any file is written."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from kdsl.base.diagnostic import Diagnostic, Edit, Fix
from kdsl.base.errors import KdslError, reason_of
from kdsl.base.file_policy import read_named, replace_file
from kdsl.base.span import Source
from kdsl.base.visible import visible
from kdsl.cli.output import emit, emit_line
from kdsl.lang.discovery import MAX_BYTES, NO_DRAFTS, Drafts, read_source
from kdsl.report.diagnostics import summary

Check = Callable[[Drafts], tuple[Diagnostic, ...]]
"""Checks rule files, some of them replaced by drafts."""

T = TypeVar("T", bound=Callable[..., Any])

_BOM = b"\xef\xbb\xbf"
MAX_TRIES = 200
"""The most checks of rules in one `--fix`."""
_STOPS_THE_CHECK = ("K01", "K035")
"""Errors that hide all others, because the rules cannot be loaded."""


class FileChange(NamedTuple):
    """A file before and after."""

    before: bytes
    after: bytes


class Left(NamedTuple):
    """A safe fix that was not applied, and why."""

    fix: Fix
    why: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """The result of fixing: the changed files, the remaining findings, and the safe fixes that were not
    applied.
    """

    findings: tuple[Diagnostic, ...]
    changes: Mapping[Path, FileChange] = field(default_factory=dict)
    left: tuple[Left, ...] = ()


def fix(check: Check, tries: int | None = None) -> Fixed:
    """Apply safe fixes of the findings of `check` until none is left. Nothing is written.

    A fix is rejected if it adds errors, or restores an earlier text. `tries` bounds the number of checks.
    """
    return _Fixing(check, MAX_TRIES if tries is None else tries).run()


def write(changes: Mapping[Path, FileChange]) -> None:
    """Replace the files, each atomically: a reader sees the old text or the new one.

    Raises OSError if that fails.
    """
    for path, change in changes.items():
        replace_file(path, change.after)


def fix_options(command: T) -> T:
    """Add `--fix` and `--diff` to a command."""
    fix_ = click.option("--fix", is_flag=True, help="Apply the safe fixes, then check again.")
    diff = click.option("--diff", is_flag=True, help="Print what --fix would change, and change nothing.")
    return fix_(diff(command))


def settle_fixes(check: Check, is_diff: bool) -> Fixed:
    """Apply and write the safe fixes, or print them for `--diff`; the command continues with the rest.

    Raises KdslError if a file cannot be written.
    """
    fixed = fix(check)
    if is_diff:
        show(fixed.changes)
        _print_left(fixed.left)
        return fixed
    try:
        write(fixed.changes)
    except OSError as error:
        raise KdslError(f"cannot write `{error.filename}`: {reason_of(error)}") from None
    for path in fixed.changes:
        emit_line(f"fixed {path}", to_stderr=True)
    _print_left(fixed.left)
    return fixed


def _print_left(left: Iterable[Left]) -> None:
    """Print the safe fixes that were not applied, and why."""
    for each in left:
        place = f"{each.fix.edits[0].span}: {each.fix.title}"
        emit(f"left {visible(place)}: {each.why}", to_stderr=True)


def show(changes: Mapping[Path, FileChange]) -> None:
    """Print the changes as a unified diff."""
    for path, change in changes.items():
        before, after = (text.decode().splitlines(keepends=True) for text in change)
        lines = difflib.unified_diff(before, after, str(path), f"{path} (fixed)")
        emit("".join(lines), nl=False, is_exact=True)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Texts that replace those of the files, and their findings."""

    check: Check
    texts: Drafts
    findings: tuple[Diagnostic, ...]

    def read(self, path: Path) -> bytes:
        return self.texts[path] if path in self.texts else read_named(path, MAX_BYTES)

    def with_texts(self, texts: Mapping[Path, bytes]) -> _Attempt:
        merged = {**self.texts, **texts}
        return _Attempt(self.check, merged, self.check(merged))

    def with_fixes(self, fixes: Iterable[Fix]) -> _Attempt:
        """Apply fixes; of overlapping ones only the first. Returns this attempt if no file changes."""
        texts = apply(fixes)
        encoded = ((Path(source.path), self._encoded(source, text)) for source, text in texts.items())
        changed = {path: data for path, data in encoded if data is not None}
        return self.with_texts(changed) if changed else self

    def _encoded(self, source: Source, text: str) -> bytes | None:
        """Return the bytes of a new text; None if the source is not the text of a file as stored."""
        path = Path(source.path)
        try:
            data = self.read(path)
        except OSError:
            return None
        read = read_source(path, data)
        if isinstance(read, Diagnostic) or read.text != source.text:
            return None
        return (_BOM if data.startswith(_BOM) else b"") + text.encode()

    def changes(self) -> Mapping[Path, FileChange]:
        return {path: FileChange(read_named(path, MAX_BYTES), text) for path, text in self.texts.items()}


def _badness(findings: Iterable[Diagnostic]) -> tuple[int, int, int]:
    """Return a sort key of findings: errors that hide others first, then errors, then all."""
    listed = tuple(findings)
    hiding = sum(each.is_error and each.code.startswith(_STOPS_THE_CHECK) for each in listed)
    return hiding, sum(each.is_error for each in listed), len(listed)


@dataclass(slots=True)
class _Fixing:
    """The search for fixes that reduce the errors. It bounds its tries, and no text comes twice."""

    check: Check
    tries: int
    left: dict[Fix, str] = field(default_factory=dict)
    seen: set[tuple[tuple[Path, bytes], ...]] = field(default_factory=set)

    def run(self) -> Fixed:
        attempt = _Attempt(self.check, NO_DRAFTS, self.check(NO_DRAFTS))
        while True:
            certain = certain_fixes(attempt.findings)
            fixes = [each for each in certain if each not in self.left]
            better = self._improve(attempt, fixes) if fixes else None
            if better is None:
                left = tuple(Left(each, self.left[each]) for each in certain if each in self.left)
                return Fixed(attempt.findings, attempt.changes(), left)
            attempt = better
            self.seen.add(tuple(sorted(attempt.texts.items())))

    def _improve(self, attempt: _Attempt, fixes: Sequence[Fix]) -> _Attempt | None:
        """Apply all of the fixes, or the largest acceptable prefix; a fix that fails alone is rejected."""
        if self.tries <= 0:
            self.left.update(dict.fromkeys(fixes, "the rules were checked often enough; run it again"))
            return None
        self.tries -= 1
        tried = attempt.with_fixes(fixes)
        now, then = _badness(attempt.findings), _badness(tried.findings)
        if then < now:
            return tried
        if len(fixes) > 1:
            middle = len(fixes) // 2
            first = self._improve(attempt, fixes[:middle])
            return first if first is not None else self._improve(attempt, fixes[middle:])
        (alone,) = fixes
        if tried is attempt:
            self.left[alone] = "no file holds this text"
        elif then > now:
            self.left[alone] = (
                f"with it more is reported: {summary(tried.findings)}, not {summary(attempt.findings)}"
            )
        elif tuple(sorted(tried.texts.items())) in self.seen:
            self.left[alone] = "it would undo another fix"
        else:
            # The fix cured an error that had hidden the next one.
            return tried
        return None


def certain_fixes(findings: Iterable[Diagnostic]) -> tuple[Fix, ...]:
    """Return the fixes that may be applied without asking: at most one for each finding, each only once."""
    firsts = (next((fix for fix in finding.fixes if fix.is_certain), None) for finding in findings)
    return tuple(dict.fromkeys(fix for fix in firsts if fix is not None))


def apply(fixes: Iterable[Fix]) -> Mapping[Source, str]:
    """Return the new text of every source that the fixes edit.

    A fix is applied as a whole or not at all. Of fixes that overlap the first wins; the others are left for
    the next check of the new text.
    """
    accepted: dict[Source, list[Edit]] = {}
    for fix in fixes:
        if all(_is_free(edit, accepted.get(edit.span.source, ())) for edit in fix.edits):
            for edit in fix.edits:
                accepted.setdefault(edit.span.source, []).append(edit)
    return {source: _edited(source.text, edits) for source, edits in accepted.items()}


def _is_free(edit: Edit, others: Iterable[Edit]) -> bool:
    """Return whether an edit overlaps none of the others; two insertions at one place overlap."""
    return all(edit.span.end < other.span.start or other.span.end < edit.span.start for other in others)


def _edited(text: str, edits: Iterable[Edit]) -> str:
    for edit in sorted(edits, key=lambda each: (each.span.start, each.span.end), reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text
