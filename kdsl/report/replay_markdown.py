"""A replay as the comment of a pull request: a summary, counts, and folded tables.

Names and reasons come from anywhere: as code they cannot become links, mentions, HTML or columns. The
comment stays below GitHub's limit, and names the parts that it leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kdsl.base.visible import visible
from kdsl.explain.differences import Difference
from kdsl.report.replay import (
    KINDS,
    ReplayReport,
    evictions,
    faults_of,
    summary,
    unlike_record,
    what_is_counted,
    why,
)
from kdsl.report.tables import plural

LIMIT: Final = 65_000
"""The most bytes of a comment; GitHub takes 65,536 characters."""

_LONGEST: Final = 200
_PLAIN: Final = re.compile(r"[^`|\\]*")
_SAFE: Final = re.compile(r"[A-Za-z0-9 /,=+%()-]")
_END: Final = "</details>"
_HEADER: Final = ("| decision | pod | old node | new node | why |", "|--:|---|---|---|---|")


def replay_markdown(report: ReplayReport, changes: str = "") -> str:
    """Return the comment; `changes` are the changes of rules as Markdown, folded at its end."""
    replayed = report.replayed
    lines = [
        f"### Replay: {summary(replayed)}",
        "",
        f"{in_code(report.record)} decided by {in_code(report.new)}, compared with {in_code(report.old)}; "
        f"mode `{replayed.mode.value}`.",
    ]
    for text in filter(None, (evictions(replayed), unlike_record(replayed), *replayed.notes)):
        lines += ["", f"{text[:1].upper()}{text[1:]}."]
    if report.thresholds:
        lines += ["", *_thresholds(report)]
    lines += ["", *_counts(report)]
    faults = [f"- {in_code(text)} ({plural(count, 'decision')})" for text, count in faults_of(replayed)]
    room = LIMIT - _size(lines)
    blocks = [*_blocks(replayed.differences), _Block("Errors of rules", (), faults)]
    if changes:
        heading, _, rest = changes.partition("\n")
        blocks.append(_Block(heading.lstrip("# "), (), rest.strip("\n").split("\n")))
    for block in blocks:
        if block.rows and any(block.rows):
            found = block.lines(room)
            room -= _size(found)
            lines += found
    return "\n".join(lines)


def in_code(text: str) -> str:
    """Return text as code that is inert in a table as well: nothing in it is Markdown, HTML or a mention."""
    text = visible(text)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 1]}…"
    if text.strip() and text == text.strip() and _PLAIN.fullmatch(text):
        return f"`{text}`"
    if not text:
        return "none"
    escaped = "".join(each if _SAFE.fullmatch(each) else f"&#{ord(each)};" for each in text)
    return f"<code>{escaped}</code>"


class _Block:
    """A folded part: lines at its begin, and rows of which the last may be left out."""

    def __init__(self, title: str, head: Sequence[str], rows: Sequence[str]) -> None:
        self.title, self.head, self.rows = title, head, rows

    def lines(self, room: int) -> list[str]:
        """Return the part within so many bytes, with the number of rows that it leaves out."""
        opening = ["", f"<details><summary>{self.title}</summary>", "", *self.head]
        size = _size([*opening, "", _cut(len(self.rows)), "", _END])
        kept: list[str] = []
        for row in self.rows:
            size += _size([row])
            if size > room:
                break
            kept.append(row)
        rest = len(self.rows) - len(kept)
        if rest == len(self.rows):
            return ["", f"{self.title}: {_cut(rest)}"]
        more = ["", _cut(rest)] if rest else []
        return [*opening, *kept, *more, "", _END]


def _cut(rows: int) -> str:
    return f"{plural(rows, 'line')} left out: the comment would be too long. `kdsl diff … -o json` lists all."


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _thresholds(report: ReplayReport) -> Iterator[str]:
    for each in report.thresholds:
        yield f"- {'❌ passed' if each in report.passed else '✅ not passed'}: {in_code(each)}"


def _counts(report: ReplayReport) -> Iterator[str]:
    replayed = report.replayed
    document = replayed.counts.document()
    yield f"| {what_is_counted(replayed.mode)}s | |"
    yield "|---|--:|"
    for name in ("decided", "same", *(kind.value for kind in KINDS)):
        if document[name] or name in ("decided", "same", "pending"):
            yield f"| {name.replace('_', ' ')} | {document[name]:,} |"


def _blocks(differences: Sequence[Difference]) -> Iterator[_Block]:
    for kind, (one, several) in KINDS.items():
        members = [each for each in differences if each.kind is kind]
        if members:
            title = f"{plural(len(members), 'pod')} {one if len(members) == 1 else several}"
            yield _Block(title, _HEADER, [_row(each) for each in members])


def _row(difference: Difference) -> str:
    number = "" if difference.cycle is None else f"{difference.cycle:,}"
    nodes = (in_code(each) if each else "pending" for each in (difference.before, difference.after))
    return f"| {number} | {in_code(difference.pod)} | {' | '.join(nodes)} | {why(difference, in_code)} |"
