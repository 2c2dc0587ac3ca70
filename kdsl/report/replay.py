"""The differences of a replay as text and as a part of a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kdsl.base.visible import visible
from kdsl.explain.differences import Cards, Difference, DifferenceKind, Mode, Replayed, Room, card_ids
from kdsl.explain.moves import Cause, CauseKind
from kdsl.report.decisions import Json
from kdsl.report.tables import plural, table

SHOWN = 50
"""The most differences in text; JSON lists all."""

Code = Callable[[str], str]
"""Formats a name: plain, or as code."""

KINDS: Mapping[DifferenceKind, tuple[str, str]] = {
    DifferenceKind.PENDING: ("becomes pending", "become pending"),
    DifferenceKind.MOVED: ("gets another node", "get another node"),
    DifferenceKind.PLACED: ("becomes placed", "become placed"),
    DifferenceKind.OTHER_CARDS: ("gets other cards", "get other cards"),
    DifferenceKind.OTHER_VICTIMS: ("makes room elsewhere", "make room elsewhere"),
}
"""The words for a difference, for one pod and for several; the worst first."""

_SHORT = {
    DifferenceKind.PENDING: "pending",
    DifferenceKind.MOVED: "moved",
    DifferenceKind.PLACED: "placed",
    DifferenceKind.OTHER_CARDS: "other cards",
    DifferenceKind.OTHER_VICTIMS: "other victims",
}


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """A replay and its question: names of the record and both sides, thresholds and those passed."""

    replayed: Replayed
    record: str
    old: str
    new: str
    thresholds: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


def replay_text(report: ReplayReport) -> str:
    """Return a table of the differences, the counts, and the passed thresholds."""
    replayed = report.replayed
    lines: list[str] = []
    if replayed.differences:
        header = ("DECISION", "POD", "NOW", "OLD", "NEW", "WHY")
        rows = [_row(each) for each in replayed.differences[:SHOWN]]
        lines += table(header, rows, right=(0,))
        rest = len(replayed.differences) - SHOWN
        lines += [f"… and {rest:,} more (-o json lists all)"] if rest > 0 else []
        lines.append("")
    lines += [f"{text} ({plural(count, 'decision')})" for text, count in faults_of(replayed)]
    lines.append(summary(replayed))
    lines += [evicted] if (evicted := evictions(replayed)) else []
    if report.old != report.record:
        lines += [unlike] if (unlike := unlike_record(replayed)) else []
    lines += [f"note: {note}" for note in replayed.notes]
    lines += [f"threshold passed: {each}" for each in report.passed]
    return "\n".join(map(visible, lines))


def summary(replayed: Replayed) -> str:
    """Count the differences: `2 of 12 decisions differ: 1 becomes pending, 1 gets another node`."""
    counts, noun = replayed.counts, what_is_counted(replayed.mode)
    document = counts.document()
    kinds = [
        f"{document[kind.value]:,} {one if document[kind.value] == 1 else several}"
        for kind, (one, several) in KINDS.items()
        if document[kind.value]
    ]
    differ = "differs" if 1 in (counts.different, counts.decided) else "differ"
    parts = f": {', '.join(kinds)}" if kinds else ""
    skipped = f" ({counts.skipped:,} skipped: no profile for their scheduler)" if counts.skipped else ""
    return f"{counts.different:,} of {plural(counts.decided, noun)} {differ}{parts}{skipped}"


def evictions(replayed: Replayed) -> str:
    """Say how many pods are evicted on both sides, "" for none."""
    counts = replayed.counts
    if not counts.victims and not counts.old_victims:
        return ""
    return (
        f"{plural(counts.victims, 'victim')} of {plural(counts.preemptions, 'preemption')}, "
        f"under the old rules {plural(counts.old_victims, 'victim')} of "
        f"{plural(counts.old_preemptions, 'preemption')}"
    )


def unlike_record(replayed: Replayed) -> str:
    """Say how often the old rules decide otherwise than the record, "" for never."""
    count = replayed.counts.unlike_record
    if not count:
        return ""
    noun = plural(count, what_is_counted(replayed.mode))
    return f"{noun} of the old rules {'is' if count == 1 else 'are'} not as recorded: the run had other rules"


def what_is_counted(mode: Mode) -> str:
    """Return the noun for the things that a mode counts."""
    return "decision" if mode is Mode.INDEPENDENT else "pod"


def faults_of(replayed: Replayed) -> Iterator[tuple[str, int]]:
    """Yield the errors of rules with their sides, and their numbers of decisions."""
    for side, faults in zip(("old", "new"), replayed.faults, strict=True):
        yield from ((f"error under the {side} rules: {text}", count) for text, count in faults)


def why(difference: Difference, code: Code) -> str:
    """Return the first rule or score that made the difference, with its numbers."""
    cause, before, after = difference.cause, difference.before, difference.after
    site = f" ({code(cause.site)})" if cause.site else ""
    match cause.kind:
        case CauseKind.REJECTS:
            return f"{code(cause.rule)} rejects {code(before)}: {code(cause.reason)}{site}"
        case CauseKind.ACCEPTS:
            return f"{code(cause.rule)} no longer rejects {code(after)}: {code(cause.reason)}{site}"
        case CauseKind.SCORE:
            return f"score {code(cause.rule)}: {_lead(cause, before, after, code)}"
        case CauseKind.UNVISITED:
            return "enough nodes were found before the search came to the other node"
        case CauseKind.TIE:
            return "equal totals: the tie falls to the new node"
        case CauseKind.EVICTED:
            return f"evicted for {code(cause.reason)}" if cause.reason else "evicted"
        case CauseKind.EVICTS:
            return _rooms(difference.rooms, code)
        case CauseKind.CARDS:
            rule = f"{code(cause.rule)}: " if cause.rule else ""
            reason = f"{rule}{code(cause.reason)}{site}" if cause.reason else "an earlier decision differs"
            return f"{cards_text(difference.cards, code)}; {reason}"
        case CauseKind.OTHER:
            reason = code(cause.reason) if cause.reason else "no reason is recorded"
            return f"{'before' if after else 'now'}: {reason}"


def _lead(cause: Cause, before: str, after: str, code: Code) -> str:
    was = "" if cause.before is None else f", before {cause.before:+,}"
    return f"{code(after)} over {code(before)} by {cause.now or 0:+,}{was}"


def _rooms(rooms: tuple[Room, Room], code: Code) -> str:
    if rooms[0] == rooms[1]:
        return "other pods were evicted for it"
    old, new = (_room(each, code) for each in rooms)
    return f"evicts {new}, before {old}"


def _room(room: Room, code: Code) -> str:
    if not room.node:
        return "nothing"
    return f"{', '.join(map(code, room.victims)) or 'nothing'} on {code(room.node)}"


def cards_text(cards: tuple[Cards, Cards], code: Code) -> str:
    """Return the names of the old and the new cards."""
    old, new = (", ".join(map(code, card_ids(each))) or "none" for each in cards)
    return f"{old} → {new}"


def _row(difference: Difference) -> Sequence[str]:
    number = "-" if difference.cycle is None else f"{difference.cycle:,}"
    nodes = (difference.before or "-", difference.after or "-")
    return (number, difference.pod, _SHORT[difference.kind], *nodes, why(difference, str))


def replay_document(report: ReplayReport) -> dict[str, Json]:
    """Return a replay as a part of the document of changes."""
    replayed = report.replayed
    return {
        "record": report.record,
        "mode": replayed.mode.value,
        "differences": [_difference_document(each) for each in replayed.differences],
        "counts": dict(replayed.counts.document().items()),
        "faults": [
            {"rules": side, "text": text, "decisions": count}
            for side, faults in zip(("old", "new"), replayed.faults, strict=True)
            for text, count in faults
        ],
        "notes": list(replayed.notes),
        "thresholds": [{"expression": each, "passed": each in report.passed} for each in report.thresholds],
    }


def _difference_document(difference: Difference) -> dict[str, Json]:
    cause = difference.cause
    old, new = difference.rooms
    return {
        "decision": difference.cycle,
        "pod": difference.pod,
        "kind": difference.kind.value,
        "before": difference.before,
        "after": difference.after,
        "cause": {
            "kind": cause.kind.value,
            "rule": cause.rule,
            "reason": cause.reason,
            "origin": cause.site,
            "pointsBefore": cause.before,
            "pointsAfter": cause.now,
        },
        "cards": {"before": dict(difference.cards[0]), "after": dict(difference.cards[1])},
        "room": {
            "before": {"node": old.node, "victims": list(old.victims)},
            "after": {"node": new.node, "victims": list(new.victims)},
        },
    }
