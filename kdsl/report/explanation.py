"""One decision in full: the rejecting rules of each node with reasons, the changes that would help, and the
scores of the feasible nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kdsl.base.visible import visible_sections
from kdsl.check.views.view import load_views
from kdsl.cycle.decision import Decision, NodeVerdict, Outcome
from kdsl.explain.explanation import Explanation
from kdsl.explain.findings import Findings, JudgedNode, Rejected
from kdsl.explain.inspection import SHOWN
from kdsl.report.answer import (
    answer_lines,
    asked_lines,
    group_lines,
    late_lines,
    late_rejections,
    mattered_lines,
    narrowed_lines,
    score_lines,
    when_text,
    when_word,
)
from kdsl.report.atoms import AtomPrinter, steps_text
from kdsl.report.explained_cards import cards_lines, given_lines, refused_lines
from kdsl.report.faults import decision_lines
from kdsl.report.tables import plural, table, wrapped
from kdsl.report.values import ValuePrinter

MOST_NODES = 3
"""The most nodes with a list of their cards."""


def explanation_text(explanation: Explanation, width: int, traceback: bool = False) -> str:
    """Return an explanation in few lines: the answer, changes that would help, and the rejecting rules.

    With `traceback` it includes Python tracebacks of plugins.
    """
    decision, findings = explanation.decision, explanation.findings
    atoms = AtomPrinter(ValuePrinter(load_views()))
    answer = [line for text in answer_lines(explanation) for line in wrapped(text, width, "    ")]
    faults = decision_lines(decision.faults, decision.message, traceback)
    sections: list[list[str]] = [answer, faults, narrowed_lines(decision, width)]
    if findings is None or findings.asked is None:
        given = given_lines(explanation.cards)
        sections += [
            [line for text in given for line in wrapped(text, width, "    ")],
            score_lines(decision, explanation.home, width),
            mattered_lines(decision, explanation.placement),
        ]
        if findings is not None:
            sections += [group_lines(findings, atoms, width), late_lines(decision, findings, width)]
        sections.append(_unvisited(decision))
    else:
        sections.append(asked_lines(findings, findings.asked, atoms, width))
    sections.append([line for text in _wakes(explanation) for line in wrapped(text, width, "    ")])
    return visible_sections(sections)


def wide_text(explanation: Explanation, everything: bool = False, traceback: bool = False) -> str:
    """Return an explanation in tables; at most `SHOWN` nodes of a kind, unless `everything`.

    With `traceback` it includes Python tracebacks of plugins.
    """
    decision, findings = explanation.decision, explanation.findings
    report = _Report(AtomPrinter(ValuePrinter(load_views())), None if everything else SHOWN)
    sections: list[list[str]] = [
        answer_lines(explanation, most=None),
        decision_lines(decision.faults, decision.message, traceback),
        _head(decision),
        _prefilter(decision),
        _skipped(decision),
    ]
    if findings is not None and findings.asked is not None:
        asked = findings.asked
        sections += [report.asked(findings, asked), report.cards([asked]), _cures(findings)]
    else:
        sections += [
            report.scores(decision),
            mattered_lines(decision, explanation.placement),
            [] if explanation.cards is None else cards_lines([explanation.cards], report.atoms),
        ]
        if findings is not None:
            sections += [_overview(findings), _groups(findings), report.nodes(findings)]
            sections += [report.late(decision, findings)]
            sections += [report.cards(findings.nodes), refused_lines(findings.cards), _cures(findings)]
        sections += [_unvisited(decision)]
    sections.append(_wakes(explanation))
    return visible_sections(sections)


@dataclass(frozen=True, slots=True)
class _Report:
    """The sections with one entry per node, at most `most`."""

    atoms: AtomPrinter
    most: int | None

    def scores(self, decision: Decision) -> list[str]:
        """Return the score table, the chosen node first."""
        scored = sorted(
            (verdict for verdict in decision.verdicts if verdict.scores),
            key=lambda verdict: (verdict.node != decision.node, -(verdict.total or 0), verdict.node),
        )
        if not scored:
            feasible = [verdict.node for verdict in decision.verdicts if verdict.feasible]
            shown = feasible if self.most is None else feasible[: self.most]
            more = f", and {len(feasible) - len(shown):,} more" if len(shown) < len(feasible) else ""
            return [f"feasible: {', '.join(shown)}{more}"] if feasible else []
        header = ["FEASIBLE", "TOTAL", *(f"{cell.plugin} x{cell.weight}" for cell in scored[0].scores)]
        rows = [_score_row(verdict, decision.node) for verdict in scored[: self.most]]
        return [*table(header, rows, right=range(1, len(header))), *self._more(len(scored), "feasible node")]

    def nodes(self, findings: Findings) -> list[str]:
        """Return the rejected nodes, the nearest first, each with all its rejecting rules."""
        nodes = findings.nodes[: self.most]
        rows = [row for node in nodes for row in self._rows(node)]
        if not rows:
            return []
        title = "REJECTED" if findings.passing else "NEAREST"
        header = [title, "RULE", "WHEN", "REASON", "DECIDED BY", "AT"]
        return [*table(header, rows), *self._more(findings.total - findings.passing, "rejected node")]

    def late(self, decision: Decision, findings: Findings) -> list[str]:
        """Return the nodes that passed all rules and were rejected afterwards."""
        rows = [
            [verdict.node, status.plugin, when_word(status), status.message]
            for verdict, status in late_rejections(decision, findings)
        ]
        if not rows:
            return []
        header = ["REJECTED AFTER THE RULES", "BY", "WHEN", "REASON"]
        return [*table(header, rows[: self.most]), *self._more(len(rows), "such node")]

    def asked(self, findings: Findings, node: JudgedNode) -> list[str]:
        """Return the verdicts of every rule about the requested node."""
        rejected = {each.rule: each for each in node.rejected}
        rows: list[list[str]] = []
        for rule in findings.rules:
            if rule in rejected:
                rows += self._rows(JudgedNode(node.node, (rejected[rule],), node.shortage))
            else:
                rows.append(["", rule, "passes", "", "", ""])
        for row in rows:
            row[0] = ""
        rows[0][0] = node.node
        return table(["NODE", "RULE", "WHEN", "REASON", "DECIDED BY", "AT"], rows)

    def cards(self, nodes: Sequence[JudgedNode]) -> list[str]:
        """Return the cards of the nearest nodes that devices reject, and of the requested one."""
        known = [node.cards for node in nodes if node.cards is not None]
        return cards_lines(known if self.most is None else known[:MOST_NODES], self.atoms)

    def _rows(self, node: JudgedNode) -> Iterator[list[str]]:
        name = node.node
        for each in node.rejected:
            first = [each.rule, when_text(each)]
            for reason, decided, site in self._causes(each):
                yield [name, *first, reason, decided, site]
                name, first = "", ["", ""]

    def _causes(self, rejected: Rejected) -> Iterator[tuple[str, str, str]]:
        sites = rejected.sites or ("",) * len(rejected.reasons)
        for reason, site in zip(rejected.reasons or ("",), sites or ("",), strict=True):
            known = [each for each in rejected.failed if (each.reason, each.site) == (reason, site)]
            atoms = [self.atoms.text(atom) for failed in known for atom in failed.atoms]
            decided = list(dict.fromkeys(atoms)) or [""]
            yield reason, decided[0], site
            for atom in decided[1:]:
                yield "", atom, ""

    def _more(self, count: int, noun: str) -> list[str]:
        if self.most is None or count <= self.most:
            return []
        return [f"… and {plural(count - self.most, noun)} more: --all lists them"]


def _head(decision: Decision) -> list[str]:
    profile = f"profile {decision.profile}" if decision.profile else "no profile"
    return [f"{profile}  rules {decision.rules[:12]}", *([decision.message] if decision.message else [])]


def _prefilter(decision: Decision) -> list[str]:
    prefilter = decision.prefilter
    lines = []
    if prefilter.status is not None:
        status = prefilter.status
        lines.append("rejected before any node was evaluated:")
        lines.append(f"  {status.plugin} ({status.code.label}): {status.message}")
        lines += [f"  at {site}" for site in status.sites]
    if prefilter.narrowed_by and prefilter.candidates is not None:
        rules, nodes = ", ".join(prefilter.narrowed_by), ", ".join(prefilter.candidates) or "none"
        lines.append(f"{rules} narrowed the candidates to: {nodes}")
    return lines


def _skipped(decision: Decision) -> list[str]:
    skipped = decision.prefilter.skipped
    return [f"nothing to do for: {', '.join(skipped)}"] if skipped else []


def _score_row(verdict: NodeVerdict, chosen: str) -> list[str]:
    name = verdict.node + (" *" if verdict.node == chosen else "")
    cells = (_cell(cell.raw, cell.normalized) for cell in verdict.scores)
    return [name, str(verdict.total), *cells]


def _cell(raw: int | float, normalized: int) -> str:
    return str(normalized) if raw == normalized else f"{normalized} (raw {raw:g})"


def _overview(findings: Findings) -> list[str]:
    rejected = findings.total - findings.passing
    if not rejected:
        return []
    nodes: Counter[tuple[str, str]] = Counter()
    for group in findings.groups:
        nodes[group.rule, group.reason] += group.nodes
    (rule, reason), most = nodes.most_common(1)[0]
    now = rejected - findings.never - findings.errors
    wrong = f" {findings.errors:,} error," if findings.errors else ""
    return [
        f"{plural(rejected, 'node')} of {findings.total:,} rejected: {findings.never:,} never,{wrong}"
        f" {now:,} not now (never: no eviction helps, the node or the pod has to change)",
        f"mostly by {rule}: {reason}, on {most:,} of them",
    ]


def _groups(findings: Findings) -> list[str]:
    rows = [
        [group.rule, f"{group.nodes:,}", f"{group.alone:,}", when_word(group), group.reason, group.site]
        for group in findings.groups
    ]
    header = ["RULE", "NODES", "ALONE", "WHEN", "REASON", "AT"]
    return table(header, rows, right=(1, 2)) if rows else []


def _cures(findings: Findings) -> list[str]:
    """Return changes that would satisfy single rules."""
    rows: list[Sequence[str]] = []
    before = ("", "")
    for cure in findings.cures:
        place = cure.rule, cure.node
        shown = ("", "") if place == before else place
        rows.append([*shown, steps_text(cure.steps)])
        before = place
    return table(["TO PASS", "ON", "SMALLEST CHANGE"], rows) if rows else []


def _unvisited(decision: Decision) -> list[str]:
    count = sum(1 for verdict in decision.verdicts if not verdict.feasible and verdict.status is None)
    if count == 0:
        return []
    why = f"{decision.sampled} feasible nodes were enough"
    if decision.outcome is Outcome.ERROR:
        why = "the error ended the search"
    return [f"{plural(count, 'node')} not evaluated: {why}"]


def _wakes(explanation: Explanation) -> list[str]:
    """Return the events that cause another attempt, if the pod waits for one."""
    waits = explanation.wakes and not explanation.home
    return [f"wakes on: {', '.join(explanation.wakes)}"] if waits else []
