"""Applies the fixes of diagnostics that are certain, and returns one new text for each source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kdsl.base.diagnostic import Diagnostic, Edit, Fix
from kdsl.base.span import Source


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
