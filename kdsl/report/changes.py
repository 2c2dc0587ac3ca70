"""Differences between rules as text, as a document, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from kdsl.base.visible import visible_lines
from kdsl.check.analyses.change import ChangeKind, PropertyChange
from kdsl.report.decisions import API_VERSION, Json
from kdsl.report.tables import plural

_SIGNS = {ChangeKind.ADDED: "+", ChangeKind.REMOVED: "-", ChangeKind.CHANGED: "~"}
_NOTHING = "no differences"


def changes_text(changes: Sequence[PropertyChange]) -> str:
    """Return changes as text, grouped by their subject, and a line with counts."""
    lines: list[str] = []
    for subject, members in _groups(changes):
        whole = next((each for each in members if not each.what), None)
        if whole is not None:
            lines.append(f"{_SIGNS[whole.kind]} {subject}  ({whole.site})")
            continue
        lines.append(subject)
        lines += [f"  {_SIGNS[each.kind]} {_words(each)}  ({each.site})" for each in members]
    return visible_lines((*lines, summary(changes)))


def summary(changes: Sequence[PropertyChange]) -> str:
    """Count changes by kind: `2 added, 1 changed`."""
    kinds = [change.kind for change in changes]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in ChangeKind if kind in kinds) or _NOTHING


def changes_document(changes: Iterable[PropertyChange], old: str, new: str) -> dict[str, Json]:
    """Return changes as a document."""
    return {
        "apiVersion": API_VERSION,
        "kind": "RuleChanges",
        "old": old,
        "new": new,
        "changes": [
            {
                "subject": each.subject,
                "kind": each.kind.value,
                "what": each.what,
                "before": each.before,
                "after": each.after,
                "origin": each.site,
            }
            for each in changes
        ],
    }


def changes_markdown(changes: Sequence[PropertyChange]) -> str:
    """Return changes as Markdown: a heading with counts, and a list for each subject."""
    if not changes:
        return f"### Rules: {_NOTHING}"
    subjects = plural(len({change.subject for change in changes}), "declaration")
    lines = [f"### Rules: {summary(changes)} in {subjects}"]
    for subject, members in _groups(changes):
        whole = next((each for each in members if not each.what), None)
        if whole is not None:
            lines += ["", f"**{subject}** {whole.kind} (`{whole.site}`)"]
            continue
        lines += ["", f"**{subject}**", ""]
        lines += [f"- {each.kind}: {_marked(each)} (`{each.site}`)" for each in members]
    return visible_lines(lines)


def _groups(changes: Iterable[PropertyChange]) -> Iterator[tuple[str, list[PropertyChange]]]:
    for subject, members in groupby(changes, key=lambda change: change.subject):
        yield subject, list(members)


def _words(change: PropertyChange) -> str:
    if change.kind is ChangeKind.CHANGED:
        return f"{change.what}: {change.before or 'none'} → {change.after or 'none'}"
    detail = change.before or change.after
    if not detail or detail.startswith(f"{change.what} "):
        return detail or change.what
    return f"{change.what}: {detail}"


def _marked(change: PropertyChange) -> str:
    if change.kind is ChangeKind.CHANGED:
        return f"{change.what} {quoted(change.before)} → {quoted(change.after)}"
    detail = change.before or change.after
    return f"{change.what} {quoted(detail)}" if detail else change.what


def quoted(text: str) -> str:
    """Return text as code in Markdown, with enough backticks."""
    if not text:
        return "none"
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"
