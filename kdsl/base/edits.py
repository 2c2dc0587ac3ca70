"""Applying what diagnostics propose: the certain fixes, as one new text for each source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kdsl.base.diagnostic import Diagnostic, Edit, Fix
from kdsl.base.span import Source


def certain_fixes(findings: Iterable[Diagnostic]) -> tuple[Fix, ...]:
    """Return the fixes that may be applied unasked, at most one for each finding and each only once."""
    firsts = (next((fix for fix in finding.fixes if fix.is_certain), None) for finding in findings)
    return tuple(dict.fromkeys(fix for fix in firsts if fix is not None))


def apply(fixes: Iterable[Fix]) -> Mapping[Source, str]:
    """Return the new text of every source that fixes edit.

    A fix is applied as a whole or not at all: of those that touch each other the first wins, the others have
    to wait until the text was looked at again.
    """
    accepted: dict[Source, list[Edit]] = {}
    for fix in fixes:
        if all(_is_free(edit, accepted.get(edit.span.source, ())) for edit in fix.edits):
            for edit in fix.edits:
                accepted.setdefault(edit.span.source, []).append(edit)
    return {source: _edited(source.text, edits) for source, edits in accepted.items()}


def _is_free(edit: Edit, others: Iterable[Edit]) -> bool:
    """Tell whether an edit touches none of the others: two insertions at one place do."""
    return all(edit.span.end < other.span.start or other.span.end < edit.span.start for other in others)


def _edited(text: str, edits: Iterable[Edit]) -> str:
    for edit in sorted(edits, key=lambda each: (each.span.start, each.span.end), reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text
