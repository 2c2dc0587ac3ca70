"""One decision told in full: the rule that rejected each node, and the scores of those that were left."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.cycle.decision import Decision, NodeVerdict, Outcome
from kdsl.report.tables import plural, table


def explanation_text(decision: Decision) -> str:
    """Return the explanation of a `full` decision as text."""
    sections = [
        _head(decision),
        _prefilter(decision),
        _scores(decision),
        _rejected(decision.verdicts),
        _unvisited(decision),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _head(decision: Decision) -> list[str]:
    profile = f"profile {decision.profile}" if decision.profile else "no profile"
    lines = [f"pod {decision.pod}  {profile}  rules {decision.rules[:12]}"]
    if decision.outcome is not Outcome.PLACED:
        return [*lines, f"{decision.outcome.value}: {decision.message}"]
    lines.append(f"placed on {decision.node}: {_choice(decision)}")
    return lines


def _choice(decision: Decision) -> str:
    if decision.feasible == 1:
        return "the only feasible node, so nothing was scored"
    chosen = f"total {decision.total}, {plural(decision.feasible, 'feasible node')}"
    if decision.tied > 1:
        return (
            f"{chosen}, {decision.tied} of them with this total; tie broken by `{decision.tie_break.value}`"
        )
    others = {each.node: each.total for each in decision.verdicts if each.total is not None}
    best = others.pop(decision.node, None)
    if not others or best is None:
        return chosen
    second = max(others, key=lambda node: others[node])
    return f"{chosen}, {best - others[second]} ahead of {second}"


def _prefilter(decision: Decision) -> list[str]:
    prefilter = decision.prefilter
    lines = []
    if prefilter.status is not None:
        status = prefilter.status
        lines.append("rejected before any node was looked at:")
        lines.append(f"  {status.plugin} ({status.code.label}): {status.message}")
        lines += [f"  at {site}" for site in status.sites]
    if prefilter.narrowed_by and prefilter.candidates is not None:
        rules, nodes = ", ".join(prefilter.narrowed_by), ", ".join(prefilter.candidates) or "none"
        lines.append(f"{rules} narrowed the candidates to: {nodes}")
    if prefilter.skipped:
        lines.append(f"nothing to do for: {', '.join(prefilter.skipped)}")
    return lines


def _scores(decision: Decision) -> list[str]:
    scored = sorted(
        (verdict for verdict in decision.verdicts if verdict.scores),
        key=lambda verdict: (verdict.node != decision.node, -(verdict.total or 0), verdict.node),
    )
    if not scored:
        feasible = [verdict.node for verdict in decision.verdicts if verdict.feasible]
        return [f"feasible: {', '.join(feasible)}"] if feasible else []
    cells = scored[0].scores
    header = ["FEASIBLE", "TOTAL", *(f"{cell.plugin} x{cell.weight}" for cell in cells)]
    rows = [
        [
            verdict.node + (" *" if verdict.node == decision.node else ""),
            str(verdict.total),
            *(_cell(cell.raw, cell.normalized) for cell in verdict.scores),
        ]
        for verdict in scored
    ]
    return table(header, rows, right=range(1, len(header)))


def _cell(raw: int | float, normalized: int) -> str:
    return str(normalized) if raw == normalized else f"{normalized} (raw {raw:g})"


def _rejected(verdicts: Sequence[NodeVerdict]) -> list[str]:
    rows = []
    for verdict in verdicts:
        status = verdict.status
        if status is None:
            continue
        sites = status.sites or ("",) * len(status.reasons)
        for index, (reason, site) in enumerate(zip(status.reasons, sites, strict=True)):
            first = [verdict.node, status.plugin, status.code.label] if index == 0 else ["", "", ""]
            rows.append([*first, reason, site])
    return table(["REJECTED", "RULE", "CODE", "REASON", "AT"], rows) if rows else []


def _unvisited(decision: Decision) -> list[str]:
    count = sum(1 for verdict in decision.verdicts if not verdict.feasible and verdict.status is None)
    if count == 0:
        return []
    return [f"{plural(count, 'node')} not looked at: {decision.sampled} feasible nodes were enough"]
