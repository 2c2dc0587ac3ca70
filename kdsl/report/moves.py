"""Pods that move between two sets of rules, as text, as a document, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kdsl.base.visible import visible
from kdsl.explain.moves import Cause, CauseKind, Eviction, Move, MoveKind, Moves, RunFault
from kdsl.report.changes import quoted
from kdsl.report.decisions import Json
from kdsl.report.tables import plural

SHOWN = 20
"""The most listed pods per cause in text and Markdown; JSON lists all."""

_HEADINGS = {
    MoveKind.MOVED: "pods that move",
    MoveKind.PENDING: "pods that become pending",
    MoveKind.PLACED: "pods that become placed",
}
_SIGNS = {MoveKind.MOVED: "~", MoveKind.PENDING: "-", MoveKind.PLACED: "+"}

Code = Callable[[str], str]
"""Formats a name: plain, or as code."""


def moves_text(moves: Moves) -> str:
    """Return moved pods grouped by cause, other evictions, faults, and a count."""
    lines: list[str] = []
    for heading, groups in _sections(moves, visible):
        lines.append(heading)
        for title, members in groups:
            lines.append(f"  {title}")
            lines += [f"    {sign} {text}" for sign, text in _capped(members)]
    return "\n".join((*lines, summary(moves)))


def moves_markdown(moves: Moves) -> str:
    """Return the same as Markdown: a heading with counts, and a list for each reason."""
    lines = [f"### Pods: {summary(moves)}"]
    for heading, groups in _sections(moves, quoted):
        lines += ["", f"**{heading}**"]
        for title, members in groups:
            lines += ["", title, "", *(f"- {text}" for _, text in _capped(members))]
    return "\n".join(lines)


def moves_document(moves: Moves) -> dict[str, Json]:
    """Return the moves as a part of the document of changes."""
    return {
        "moves": [_move_document(each) for each in moves.moves],
        "evictions": [
            {"pod": each.pod, "preemptor": each.preemptor, "kind": "added" if each.is_new else "removed"}
            for each in moves.evictions
        ],
        "faults": [
            {"rules": "new" if each.is_new else "old", "text": each.text, "decisions": each.decisions}
            for each in moves.faults
        ],
        "summary": {
            **{kind.value: moves.count(kind) for kind in MoveKind},
            "unchanged": moves.unchanged,
            "skipped": moves.skipped,
        },
    }


def summary(moves: Moves) -> str:
    """Count pods: `3 pods move, 1 becomes pending, 12 unchanged`."""
    moved = moves.count(MoveKind.MOVED)
    parts = [f"{plural(moved, 'pod')} {'moves' if moved == 1 else 'move'}"]
    for kind in (MoveKind.PENDING, MoveKind.PLACED):
        count = moves.count(kind)
        parts += [f"{count:,} {'becomes' if count == 1 else 'become'} {kind}"] if count else []
    if moves.evictions:
        parts.append(f"{plural(len(moves.evictions), 'other eviction')}")
    skipped = f" ({moves.skipped:,} of them asked for a scheduler without a profile)" if moves.skipped else ""
    return ", ".join((*parts, f"{moves.unchanged:,} unchanged{skipped}"))


_Member = tuple[str, str]
"""A sign and a line."""

_Group = tuple[str, Sequence[_Member]]


def _sections(moves: Moves, code: Code) -> Iterator[tuple[str, list[_Group]]]:
    """List the headings with content, each with its groups."""
    for kind, heading in _HEADINGS.items():
        groups: dict[str, list[_Member]] = {}
        for move in moves.moves:
            if move.kind is kind:
                groups.setdefault(_reason(move.cause, kind, code), []).append(_line(move, code))
        if groups:
            yield heading, sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    evictions = [
        (title, [_eviction(each, code) for each in moves.evictions if each.is_new is is_new])
        for title, is_new in (("only under the new rules", True), ("only under the old rules", False))
    ]
    if any(members for _, members in evictions):
        yield "evictions", [(title, members) for title, members in evictions if members]
    faults = [
        (title, [_fault(each, code) for each in moves.faults if each.is_new is is_new])
        for title, is_new in (("under the new rules", True), ("under the old rules", False))
    ]
    if any(members for _, members in faults):
        yield "went wrong", [(title, members) for title, members in faults if members]


def _reason(cause: Cause, kind: MoveKind, code: Code) -> str:
    """Return the cause without the values that differ from pod to pod, as the key of a group."""
    site = f"  ({code(cause.site)})" if cause.site else ""
    match cause.kind:
        case CauseKind.REJECTS:
            return f"{code(cause.rule)} rejects the old node: {code(cause.reason)}{site}"
        case CauseKind.ACCEPTS:
            return f"{code(cause.rule)} no longer rejects the new node: {code(cause.reason)}{site}"
        case CauseKind.SCORE:
            return f"score {code(cause.rule)} gives the new node more over the old one"
        case CauseKind.UNVISITED:
            return "enough nodes were found before the search came to the other node"
        case CauseKind.TIE:
            return "both nodes have equal totals, and the tie falls to the new one"
        case CauseKind.CARDS:
            return code(cause.reason)
        case CauseKind.EVICTED:
            return f"evicted for {code(cause.reason)}"
        case CauseKind.EVICTS:
            return "other pods are evicted for it"
        case CauseKind.OTHER:
            return f"{'before' if kind is MoveKind.PLACED else 'now'}: {code(cause.reason)}"


def _line(move: Move, code: Code) -> _Member:
    nodes = " → ".join(code(node) for node in (move.before, move.after) if node)
    return _SIGNS[move.kind], f"{code(move.pod)}: {nodes}{_points(move.cause)}"


def _points(cause: Cause) -> str:
    if cause.now is None:
        return ""
    before = "" if cause.before is None else f", before {cause.before:+,}"
    return f" ({cause.now:+,}{before})"


def _eviction(eviction: Eviction, code: Code) -> _Member:
    return "+" if eviction.is_new else "-", f"{code(eviction.pod)} for {code(eviction.preemptor)}"


def _fault(fault: RunFault, code: Code) -> _Member:
    return "!", f"{code(fault.text)} ({plural(fault.decisions, 'decision')})"


def _capped(members: Sequence[_Member]) -> Iterable[_Member]:
    rest = len(members) - SHOWN
    return members if rest <= 0 else (*members[:SHOWN], ("…", f"and {rest:,} more (-o json lists all)"))


def _move_document(move: Move) -> dict[str, Json]:
    cause = move.cause
    return {
        "pod": move.pod,
        "kind": move.kind.value,
        "before": move.before,
        "after": move.after,
        "cause": {
            "kind": cause.kind.value,
            "rule": cause.rule,
            "reason": cause.reason,
            "origin": cause.site,
            "pointsBefore": cause.before,
            "pointsAfter": cause.now,
        },
    }
