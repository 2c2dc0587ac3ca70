"""Renders the results of shadow and canary as tables and as documents."""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.base.visible import visible_lines
from kdsl.live.rules.canary import SideReport
from kdsl.live.rules.differences import Difference
from kdsl.live.rules.shadow import ShadowReport
from kdsl.report.decisions import API_VERSION, Json
from kdsl.report.tables import plural, table

SHOWN = 20
"""The most differences in a table; the document has all that are kept."""


def shadow_text(report: ShadowReport) -> str:
    """Render a report as text: the number of equal decisions, causes of the others, and the last of them."""
    share = f" ({report.equal / report.compared:.1%})" if report.compared else ""
    lines = [
        f"{plural(report.compared, 'pod')} compared, {report.equal:,} equal{share}, "
        f"{report.waiting:,} not bound yet"
    ]
    if report.rules:
        rows = [
            (f"{count:,}", cause.value, rule)
            for (cause, rule), count in sorted(report.rules.items(), key=lambda item: (-item[1], item[0]))
        ]
        lines += ["", *table(("PODS", "CAUSE", "RULE"), rows, right=(0,))]
    if report.differences:
        shown = report.differences[-SHOWN:]
        rows_of_pods = [(each.pod, each.ours or "-", each.theirs or "-", each.text) for each in shown]
        lines += ["", *table(("POD", "OURS", "THEIRS", "WHY"), rows_of_pods)]
    return visible_lines(lines)


def shadow_document(report: ShadowReport) -> dict[str, Json]:
    """Return a shadow report as a document."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ShadowReport",
        "compared": report.compared,
        "equal": report.equal,
        "waiting": report.waiting,
        "causes": {cause.value: count for cause, count in sorted(report.causes.items())},
        "rules": [
            {"cause": cause.value, "rule": rule, "pods": count}
            for (cause, rule), count in sorted(report.rules.items())
        ],
        "differences": [_difference(each) for each in report.differences],
    }


def canary_text(sides: Iterable[SideReport]) -> str:
    """Render the reports of both sides as a table."""
    sides = tuple(sides)
    rows = [("rules", *(each.rules[:12] for each in sides))]
    rows.append(("attempts", *(f"{each.attempts:,}" for each in sides)))
    rows.append(("placed", *(f"{each.placed_share:.1%}" for each in sides)))
    rows.append(("ms a decision", *(f"{each.mean_seconds * 1000:.2f}" for each in sides)))
    for title, counts in (
        ("rejected by", [each.rejections for each in sides]),
        ("errors of", [each.errors for each in sides]),
    ):
        for rule in sorted({rule for each in counts for rule in each}):
            rows.append((f"{title} {rule}", *(f"{each.get(rule, 0):,}" for each in counts)))
    return visible_lines(table(("", *(each.side.value.upper() for each in sides)), rows, right=(1, 2)))


def canary_document(sides: Iterable[SideReport], percent: float) -> dict[str, Json]:
    """Return the reports of both sides as a document."""
    return {
        "apiVersion": API_VERSION,
        "kind": "CanaryReport",
        "percent": percent,
        "sides": [
            {
                "side": each.side.value,
                "rules": each.rules,
                "attempts": each.attempts,
                "placedShare": each.placed_share,
                "meanSeconds": each.mean_seconds,
                "outcomes": dict(sorted(each.outcomes.items())),
                "rejections": dict(sorted(each.rejections.items())),
                "errors": dict(sorted(each.errors.items())),
            }
            for each in sides
        ],
    }


def _difference(found: Difference) -> dict[str, Json]:
    return {
        "pod": found.pod,
        "cause": found.cause.value,
        "ours": found.ours,
        "theirs": found.theirs,
        "rule": found.rule,
        "reason": found.reason,
        "site": found.site,
        "scores": [{"rule": gap.rule, "weight": gap.weight, "points": gap.points} for gap in found.gaps],
        "text": found.text,
    }
