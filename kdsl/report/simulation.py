"""The result of `kdsl simulate`, as text for people and as one document for machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from kdsl.base.visible import visible, visible_sections
from kdsl.cycle.decision import Decision, Outcome
from kdsl.report.amounts import amount_text, bytes_text
from kdsl.report.cards import CardReport, summary_lines
from kdsl.report.decisions import API_VERSION, Json, decision_document
from kdsl.report.faults import GoneWrong, fault_lines, who
from kdsl.report.summary import Summary
from kdsl.report.tables import plural, table, wrapped

SHOWN = 40
"""The most placed and the most pending pods in the text form; `wide` lists all."""
_LEAST_REASON = 20
"""The least width of reasons, beside long names of pods."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """A finished run: its decisions in order, and its summary.

    `cards` are those of the cluster at the end, if the profile has devices and some pod requested cards.
    """

    decisions: Sequence[Decision]
    summary: Summary
    cards: CardReport | None = None


def simulation_document(simulation: Simulation, traceback: bool = False) -> dict[str, Json]:
    """Return the run as one versioned document; with `traceback` it includes those of plugins."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Simulation",
        "decisions": [decision_document(decision, traceback) for decision in simulation.decisions],
        "summary": simulation.summary.document(),
        **({} if simulation.cards is None else {"cards": simulation.cards.document()}),
    }


def simulation_text(
    simulation: Simulation, wide: bool = False, traceback: bool = False, width: int | None = None
) -> str:
    """Return the run as text: placed pods, pending pods with reasons, faults, and the summary.

    Reasons are broken into lines of `width` columns, if it is given.
    """
    evictions = [decision for decision in simulation.decisions if decision.victims]
    last = _last_decisions(simulation.decisions)
    placed = [decision for decision in last if decision.outcome is Outcome.PLACED]
    pending = [decision for decision in last if decision.outcome is not Outcome.PLACED]
    sections = [
        _evictions(evictions, wide),
        _placements(placed, wide),
        _pending(pending, wide, width),
        *_totals(simulation, wide, traceback),
    ]
    return visible_sections(sections)


def totals_text(simulation: Simulation, traceback: bool = False) -> str:
    """Return the run without its pods: faults, the summary, and that of the cards."""
    return visible_sections(_totals(simulation, False, traceback))


def _totals(simulation: Simulation, wide: bool, traceback: bool) -> list[list[str]]:
    return [
        _faults(simulation.summary.faults, wide, traceback),
        summary_text(simulation.summary),
        [] if simulation.cards is None else summary_lines(simulation.cards),
    ]


def _last_decisions(decisions: Sequence[Decision]) -> list[Decision]:
    """Return the last decision of each pod; evicted pods that did not return are left out."""
    last: dict[str, Decision] = {}
    for decision in decisions:
        last.pop(decision.pod, None)
        last[decision.pod] = decision
        for victim in decision.victims:
            last.pop(victim.pod, None)
    return list(last.values())


def _evictions(decisions: Sequence[Decision], wide: bool) -> list[str]:
    """List preemptors with their victims."""
    rows = [
        [victim.pod, decision.pod, decision.nominated]
        for decision in decisions
        for victim in decision.victims
    ]
    shown = rows if wide else rows[:SHOWN]
    return table(["EVICTED", "FOR", "ON"], shown) + _more(len(rows) - len(shown)) if rows else []


def _placements(placed: Sequence[Decision], wide: bool) -> list[str]:
    if not placed:
        return []
    shown = placed if wide else placed[:SHOWN]
    header = ["PLACED", "NODE", "SCORE", "FEASIBLE"]
    rows = [
        [d.pod, d.node, "-" if d.total is None else str(d.total), f"{d.feasible}/{d.nodes}"] for d in shown
    ]
    if wide:
        header += ["EVALUATED", "TIED", "PROFILE"]
        for row, decision in zip(rows, shown, strict=True):
            row += [str(decision.evaluated), str(decision.tied), decision.profile]
    return table(header, rows, right={2, 3, 4, 5} if wide else {2, 3}) + _more(len(placed) - len(shown))


def _pending(pending: Sequence[Decision], wide: bool, width: int | None) -> list[str]:
    if not pending:
        return []
    shown = pending if wide else pending[:SHOWN]
    rows = [[d.pod, d.message] for d in shown]
    if width is not None:
        left = width - max(cell_len(visible(name)) for name, _ in rows) - len("  ")
        rows = [
            ["" if number else name, line]
            for name, why in rows
            for number, line in enumerate(wrapped(why, max(left, _LEAST_REASON)))
        ]
    return table(["PENDING", "WHY"], rows) + _more(len(pending) - len(shown))


def _faults(found: Sequence[GoneWrong], wide: bool, traceback: bool) -> list[str]:
    """List faults with their number of attempts, the most frequent first."""
    shown = found if wide else found[:SHOWN]
    return [*fault_lines(shown, traceback), *_more(len(found) - len(shown))]


def _more(count: int) -> list[str]:
    return [f"… and {count:,} more (-o wide lists all)"] if count > 0 else []


def summary_text(summary: Summary) -> list[str]:
    """Return the lines of the summary."""
    evicted = f", {plural(summary.evicted, 'pod')} evicted" if summary.evicted else ""
    wrong = f"; {who(summary.faults)} went wrong" if summary.faults else ""
    lines = [f"{plural(summary.placed, 'pod')} placed, {summary.pending:,} pending{evicted}{wrong}"]
    if summary.reasons:
        reasons = [[reason, f"{count:,}"] for reason, count in summary.reasons.items()]
        lines += ["", *table(["PENDING BY REASON", "PODS"], reasons, right={1})]
    rows = [
        [
            name,
            amount_text(name, use.allocatable),
            amount_text(name, use.before),
            f"{use.share(use.before):.1%}",
            amount_text(name, use.after),
            f"{use.share(use.after):.1%}",
        ]
        for name, use in summary.utilisation.items()
    ]
    header = ["RESOURCE", "ALLOCATABLE", "BEFORE", "", "AFTER", ""]
    if rows:
        lines += ["", *table(header, rows, right=range(1, 6))]
    if summary.placed + summary.pending == 0:
        return lines
    lines.append("")
    lines.append(
        f"{summary.pods_per_second:,.0f} pods/s, p50 {summary.p50_ms:.2f} ms, p99 {summary.p99_ms:.2f} ms, "
        f"peak memory {bytes_text(summary.peak_memory_bytes)}"
    )
    return lines


def placement_lines(decisions: Iterable[Decision]) -> Iterable[str]:
    """Return a line `pod node evaluated feasible` per decision, with `-` for a pod that did not fit.

    The form equals that of the reference sequences: pods without namespace, and no numbers for a pod that did
    not fit, since kube-scheduler returns none with its error.
    """
    for decision in decisions:
        name = visible(decision.pod.split("/", 1)[1])
        if decision.node:
            yield f"{name} {visible(decision.node)} {decision.evaluated} {decision.feasible}"
        else:
            yield f"{name} - 0 0"
