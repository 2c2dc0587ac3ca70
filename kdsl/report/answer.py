"""The answer of an explanation in few lines, for any cluster size: outcome, changes that would help,
rejecting rules, and events that retry the pod. `explanation.py` renders the details.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rich.cells import cell_len

from kdsl.check.model.sharing import DEVICES
from kdsl.cycle.decision import Decision, NodeVerdict, Outcome
from kdsl.explain.cards import count_refused
from kdsl.explain.explanation import Explanation
from kdsl.explain.failed_requires import FailedRequire
from kdsl.explain.findings import Findings, JudgedNode, Rejected, RejectionGroup
from kdsl.explain.inspection import SHOWN
from kdsl.explain.patience import SECONDS
from kdsl.explain.placement import Placement
from kdsl.hooks.status import Code, Status
from kdsl.report.atoms import AtomPrinter, steps_text
from kdsl.report.tables import plural, table, wrapped

MOST_FITS = 3
"""The most listed changes that make a pod fit."""
_MOST_COLUMNS = 6
_INDENT = "    "
_TOTAL = ("TOTAL", "")
_EVICTS = "preemption: "
_BY_NODE = " nodes are available: "

_WHEN = {
    Code.UNRESOLVABLE: "never",
    Code.UNSCHEDULABLE: "not now",
    Code.PENDING: "pending",
    Code.ERROR: "error",
}
"""When a rejected node could take the pod: `never` without a change of the node or the pod."""

_ENDS = {
    Outcome.GATED: ("is gated", "would be gated"),
    Outcome.SKIPPED: ("is skipped", "would be skipped"),
    Outcome.WAITING: ("is held on its node", "would be held on its node"),
    Outcome.BINDING: ("is being bound to its node", "would be bound to its node"),
    Outcome.ERROR: ("could not be decided", "could not be decided"),
}
"""The outcome of a pod without a decision, and of one that has a node."""


# ---- outcome of the pod ------------------------------------------------------------------------------


def answer_lines(explanation: Explanation, most: int | None = MOST_FITS) -> list[str]:
    """Return the outcome of the pod, and up to `most` changes (None: all) that make it fit if it does not."""
    findings = explanation.findings
    if findings is not None and findings.asked is not None:
        lines = [_asked(explanation.decision.pod, findings, findings.asked)]
    else:
        lines = [outcome_text(explanation.decision, explanation.findings, explanation.home)]
        lines += _room(explanation.decision) + _home(explanation)
    lines += _help(findings, most)
    if explanation.before is not None:
        lines += [f"what if {change}" for change in explanation.changes]
        before = outcome_text(explanation.before, None, explanation.home)
        lines.append(f"without that: {before}")
    return lines


def outcome_text(decision: Decision, findings: Findings | None, home: str = "") -> str:
    """Return the outcome of the pod in one sentence; with a node (`home`), that of a new decision."""
    pod = f"pod {decision.pod}" + (f" is on {home} and" if home else "")
    if decision.outcome is Outcome.PLACED:
        goes = "would go there again" if decision.node == home else f"would now go to {decision.node}"
        return f"{pod} {goes if home else f'goes to {decision.node}'}: {choice_text(decision)}"
    if decision.outcome is not Outcome.UNSCHEDULABLE:
        return f"{pod} {_ENDS[decision.outcome][bool(home)]}: {decision.message}"
    waits = "would find no node now" if home else "waits"
    if decision.turned_away is not None:
        plugin, why = decision.turned_away.plugin, decision.turned_away.message
        return f"{pod} {waits}: {plugin} turned it away from the node that was chosen: {why}"
    status = decision.prefilter.status
    if status is not None:
        return f"{pod} {waits}: {status.plugin} rejects it before any node is evaluated: {status.message}"
    if not decision.nodes:
        return f"{pod} {waits}: {decision.message}"
    late = 0 if findings is None else findings.passing
    passing = f"; {late:,} of them pass all rules and were rejected afterwards" if late else ""
    none = (
        "the only node does not take it"
        if decision.nodes == 1
        else f"none of {decision.nodes:,} nodes takes it"
    )
    return f"{pod} {waits}: {none}{passing}"


def choice_text(decision: Decision) -> str:
    """Describe how the node was chosen."""
    if decision.feasible == 1:
        return "the only feasible node, so nothing was scored"
    chosen = f"total {decision.total}, {plural(decision.feasible, 'feasible node')}"
    if decision.tied > 1:
        return (
            f"{chosen}, {decision.tied:,} of them with this total; tie broken by `{decision.tie_break.value}`"
        )
    others = {each.node: each.total for each in decision.verdicts if each.total is not None}
    best = others.pop(decision.node, None)
    if not others or best is None:
        return chosen
    second = max(others, key=lambda node: others[node])
    return f"{chosen}, {best - others[second]} ahead of {second}"


def _room(decision: Decision) -> list[str]:
    """Describe where the pod can run, and after which evictions, or why it may evict nobody."""
    if not decision.nominated:
        reasons = () if decision.postfilter is None else decision.postfilter.reasons
        # Other reasons count the nodes where no eviction helps.
        refusals = (each for each in reasons if each.startswith(_EVICTS) and _BY_NODE not in each)
        return [f"it evicts nobody: {each.removeprefix(_EVICTS)}" for each in refusals]
    victims = ", ".join(victim.pod for victim in decision.victims)
    return [
        f"nominated to {decision.nominated}" + (f", once these pods are gone: {victims}" if victims else "")
    ]


def _home(explanation: Explanation) -> list[str]:
    """Describe the consequence for a pod on a node, if a new decision would choose another."""
    home, decision, findings = explanation.home, explanation.decision, explanation.findings
    if not home or findings is None:
        return []
    lines = []
    if findings.home is None:
        lines.append(f"{home} is not among the nodes of the input")
    elif findings.home.rejected:
        lines.append(f"{home} would not take it now: {_said(findings.home)}")
    elif decision.node != home:
        total = next((each.total for each in decision.verdicts if each.node == home), None)
        lines.append(
            f"{home} would take it as well" + ("" if total is None else f", with a total of {total}")
        )
    return [*lines, f"decided as if it were off {home} and waited; all nodes were evaluated"]


def _asked(pod: str, findings: Findings, node: JudgedNode) -> str:
    """Describe the outcome of the pod on the requested node."""
    if not node.rejected:
        return f"pod {pod} fits on {node.node}: all {len(findings.rules)} rules let it pass"
    return f"pod {pod} does not fit on {node.node}: {_said(node)}"


def _said(node: JudgedNode) -> str:
    return "; ".join(f"{each.rule}: {', '.join(each.reasons)}" for each in node.rejected)


def _help(findings: Findings | None, most: int | None) -> list[str]:
    """Describe changes that make the pod fit, else changes that satisfy single rules."""
    if findings is None:
        return []
    fits = [f"it fits on {fit.node} with {steps_text(fit.steps)}" for fit in findings.fits[:most]]
    is_stuck = findings.total > 0 and not findings.passing
    note = f"given up after {SECONDS} s: not all nodes were compared, or not all changes were tried"
    given_up = [note] if findings.unfinished else []
    if fits or not is_stuck:
        return [*fits, *given_up]
    cures = [
        f"{each.rule} passes on {each.node} with {steps_text(each.steps)}" for each in findings.cures[:most]
    ]
    return ["no small change was found that makes it fit", *cures, *given_up]


# ---- rejecting rules ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Rejecting:
    """A rule with a reason, and the nodes that it rejects: `groups` are ordered by number of nodes."""

    rule: str
    reason: str
    groups: list[RejectionGroup] = field(default_factory=list)

    @property
    def nodes(self) -> int:
        return sum(group.nodes for group in self.groups)


def group_lines(findings: Findings, atoms: AtomPrinter, width: int) -> list[str]:
    """Return for each rule and reason the number of rejected nodes, with the values of the nearest one."""
    merged = sorted(_merged(findings.groups), key=lambda each: -each.nodes)
    rejected = findings.total - findings.passing
    lines = (
        [f"{rejected:,} of {plural(findings.total, 'node')} rejected:"]
        if rejected and findings.passing
        else []
    )
    for each in merged[:SHOWN]:
        lines += wrapped(_rejecting_text(each), width, _INDENT)
        nearest = _nearest(each, findings)
        if nearest is not None:
            line = f"{_INDENT}{nearest.nearest}: {_decided(nearest.failed, atoms)}"
            lines += wrapped(line, width, _INDENT * 2)
    rest = merged[SHOWN:]
    if rest:
        lines.append(f"… and {plural(len(rest), 'more reason')}: -o wide lists all")
    return lines


def _merged(groups: Iterable[RejectionGroup]) -> Iterator[_Rejecting]:
    """Merge groups that differ only in the place in the rule, in when, or in the number of cards."""
    found: dict[tuple[str, str], _Rejecting] = {}
    for group in groups:
        cards = count_refused([(group.reason, 1)]) if group.rule == DEVICES else ()
        reason = ", ".join(sorted(each.reason for each in cards)) or group.reason
        found.setdefault((group.rule, reason), _Rejecting(group.rule, reason)).groups.append(group)
    yield from found.values()


def _rejecting_text(each: _Rejecting) -> str:
    when: Counter[str] = Counter()
    for group in each.groups:
        when[when_word(group)] += group.nodes
    times = [f"{count:,} {word}" for word, count in when.items()] if len(when) > 1 else list(when)
    alone = sum(group.alone for group in each.groups)
    only = f"; {alone:,} rejected by nothing else" if 0 < alone < each.nodes else ""
    return f"{plural(each.nodes, 'node')}: {each.rule}: {each.reason} ({', '.join(times)}{only})"


def _nearest(each: _Rejecting, findings: Findings) -> RejectionGroup | None:
    """Return the group with the nearest node whose deciding values are known."""
    order = {node.node: at for at, node in enumerate(findings.nodes)}
    known = [group for group in each.groups if any(failed.atoms for failed in group.failed)]
    return min(known, key=lambda group: order.get(group.nearest, len(order)), default=None)


def asked_lines(findings: Findings, node: JudgedNode, atoms: AtomPrinter, width: int) -> list[str]:
    """Return the deciding values in the rules that reject the requested node."""
    lines: list[str] = []
    for each in node.rejected:
        lines += wrapped(f"{each.rule}: {', '.join(each.reasons)} ({when_text(each)})", width, _INDENT)
        if decided := _decided(each.failed, atoms):
            lines += wrapped(f"{_INDENT}{decided}", width, _INDENT * 2)
    passing = len(findings.rules) - len(node.rejected)
    if lines and passing:
        lines.append(f"{plural(passing, 'other rule')} let the pod pass: -o wide lists them")
    return lines


def _decided(failed: Iterable[FailedRequire], atoms: AtomPrinter) -> str:
    """Return the deciding values; for a comparison, the value that would satisfy it."""
    decided = [(atom, atoms.text(atom)) for each in failed for atom in each.atoms]
    texts = (f"needs {text}" if len(atom.parts) > 1 and not atom.holds else text for atom, text in decided)
    return "; ".join(dict.fromkeys(texts))


def when_word(rejection: RejectionGroup | Rejected | Status) -> str:
    """Return when a rejected node could take the pod; empty for a rule that failed."""
    return _WHEN[Code.ERROR if rejection.is_error else rejection.code]


def when_text(rejected: Rejected) -> str:
    """Return when a node could take the pod, and whether nominated pods take its room."""
    when = when_word(rejected)
    return f"{when} (room is promised)" if rejected.promised else when


def late_lines(decision: Decision, findings: Findings, width: int) -> list[str]:
    """Return the rejections of nodes that passed all rules, with reasons."""
    counts = Counter(
        f"{status.plugin}: {status.message} ({when_word(status)})"
        for _, status in late_rejections(decision, findings)
    )
    texts = [f"{plural(count, 'node')}, after the rules: {text}" for text, count in counts.most_common(SHOWN)]
    return [line for text in texts for line in wrapped(text, width, _INDENT)]


def late_rejections(decision: Decision, findings: Findings) -> Iterator[tuple[NodeVerdict, Status]]:
    """List the nodes that passed all rules and were rejected afterwards."""
    for verdict in decision.verdicts:
        status = verdict.status
        if status is not None and any(
            part.plugin not in ("", *findings.rules) for part in status.parts or (status,)
        ):
            yield verdict, status


# ---- chosen node -------------------------------------------------------------------------------------


def narrowed_lines(decision: Decision, width: int) -> list[str]:
    """Return the nodes to which PreFilter restricted the search."""
    prefilter = decision.prefilter
    if not prefilter.narrowed_by or prefilter.candidates is None:
        return []
    names = prefilter.candidates
    shown = ", ".join(names[:SHOWN]) or "none"
    more = f" and {plural(len(names) - SHOWN, 'more node')}" if len(names) > SHOWN else ""
    text = f"{', '.join(prefilter.narrowed_by)} narrowed the candidates to: {shown}{more}"
    return wrapped(text, width, _INDENT)


def score_lines(decision: Decision, home: str, width: int) -> list[str]:
    """Return the scores of the best nodes, one column per node; nodes with equal scores share one."""
    scored = sorted(
        (verdict for verdict in decision.verdicts if verdict.scores),
        key=lambda each: (each.node != decision.node, each.node != home, -(each.total or 0), each.node),
    )
    alike: dict[tuple[int, ...], list[str]] = {}
    for verdict in scored:
        values = (*(cell.normalized for cell in verdict.scores), verdict.total or 0)
        alike.setdefault(values, []).append(verdict.node)
    if not alike:
        return []
    columns = list(alike.items())
    rules = [(cell.plugin, str(cell.weight)) for cell in scored[0].scores]
    for count in range(min(len(columns), _MOST_COLUMNS), 0, -1):
        shown = columns[:count]
        header = ["SCORE", "WEIGHT", *(_title(nodes, decision.node) for _, nodes in shown)]
        rows = [
            [*each, *(str(values[at]) for values, _ in shown)] for at, each in enumerate((*rules, _TOTAL))
        ]
        lines = table(header, rows, right=range(1, len(header)))
        if max(map(cell_len, lines)) <= width:
            break
    left = sum(len(nodes) for _, nodes in columns[count:])
    return [*lines, *([f"… and {plural(left, 'feasible node')} more: -o wide lists them"] if left else [])]


def _title(nodes: list[str], chosen: str) -> str:
    first = nodes[0] + (" *" if nodes[0] == chosen else "")
    match len(nodes):
        case 1:
            return first
        case 2:
            return f"{first}, {nodes[1]}"
    return f"{first} +{len(nodes) - 1}"


def mattered_lines(decision: Decision, placement: Placement | None) -> list[str]:
    """Return the scores that decided: without one of them the pod would get another node."""
    if placement is None or not placement.without:
        return []
    lines = [
        f"without {each.score} it would be {each.node}, {_lead(each.margin)}"
        for each in placement.without
        if each.node
    ]
    return lines or [f"no single score mattered: without any one of them it is {decision.node} as well"]


def _lead(margin: int) -> str:
    return f"{margin} ahead" if margin else "after a tie"
