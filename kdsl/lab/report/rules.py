"""The rules that ran: their digests, their texts, and how each differs from the first."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Final

from kdsl.lab.report.evidence import Evidence
from kdsl.lab.report.markup import Markup, joined, tag
from kdsl.lab.report.plots import Looks
from kdsl.lab.report.study import Study, shortened
from kdsl.lab.report.tables import settings_of, swatch

MOST_TEXTS: Final = 24
"""The rules whose texts a page holds."""
MOST_LINES: Final = 2_000
LONGEST_LINE: Final = 240
_CLASSES: Final = {"+": "added", "-": "removed", "@": "place"}


def rules_section(study: Study, evidence: Evidence, looks: Looks) -> Markup:
    """Return the part of a page about rules: one entry for each variant."""
    baseline: tuple[int, list[str]] | None = None
    entries: list[Markup] = []
    for variant in range(len(study.variants))[:MOST_TEXTS]:
        lines = _lines(study, evidence, variant)
        if lines is None:
            entries.append(_entry(study, evidence, looks, variant, None, None))
        elif baseline is None:
            baseline = variant, lines
            entries.append(_entry(study, evidence, looks, variant, lines, None))
        else:
            first, text = baseline
            old, new = study.variants[first].label, study.variants[variant].label
            difference = list(unified_diff(text, lines, old, new, lineterm="", n=2))
            entries.append(_entry(study, evidence, looks, variant, lines, difference, old))
    left_out = len(study.variants) - len(entries)
    if left_out:
        note = f"Of {left_out} variants more the page holds no rules. Their digests are with their runs."
        entries.append(tag("p", note, class_="note"))
    return joined(entries)


def _entry(
    study: Study,
    evidence: Evidence,
    looks: Looks,
    variant: int,
    lines: list[str] | None,
    difference: list[str] | None,
    compared_with: str = "",
) -> Markup:
    each = study.variants[variant]
    settings = settings_of(each.parameters)
    digests: dict[tuple[str, str], dict[str, None]] = {}
    for run in study.of_variant(variant):
        inputs = evidence.inputs.get(run.digest)
        if inputs is not None:
            key = shortened(str(inputs.get("rules", "")), 64), shortened(str(inputs.get("profile", "")), 120)
            digests.setdefault(key, {})[shortened(study.traces[run.trace])] = None
    listed = (
        tag("li", tag("code", digest[:12], title=digest), f" {profile}", f" on {', '.join(traces)}")
        for (digest, profile), traces in list(digests.items())[:MOST_TEXTS]
    )
    left_out = len(digests) - MOST_TEXTS
    parts: list[Markup] = []
    if lines is None:
        parts.append(tag("p", "The page does not hold the text of these rules.", class_="note"))
    else:
        parts.append(tag("details", tag("summary", "Text of the rules"), _pre(lines, "rules")))
    if difference is not None:
        summary = f"Difference from {compared_with}: {_counts(difference)}"
        parts.append(tag("details", tag("summary", summary), _pre(difference, "diff")))
    return tag(
        "article",
        tag("h3", swatch(looks, variant), each.label),
        tag("p", shortened(settings, 400), class_="note") if settings != "–" else None,
        tag("ul", *listed, class_="digests"),
        tag("p", f"and {left_out} more", class_="note") if left_out > 0 else None,
        *parts,
        class_="rules",
    )


def _lines(study: Study, evidence: Evidence, variant: int) -> list[str] | None:
    """Return the text of the rules of a variant on the first trace, without the origins of lines."""
    texts = (
        text for run in study.of_variant(variant) if (text := evidence.rules.get(run.digest)) is not None
    )
    text = next(texts, None)
    return None if text is None else list(_shown(text))


def _shown(text: str) -> Iterator[str]:
    lines = text.splitlines()
    for line in lines[:MOST_LINES]:
        kept = line if line.startswith("//") else line.partition("  // ")[0].rstrip()
        more = len(kept) - LONGEST_LINE
        yield kept if more <= 0 else f"{kept[:LONGEST_LINE]} … {more:,} more characters"
    if len(lines) > MOST_LINES:
        yield f"… {len(lines) - MOST_LINES:,} more lines"


def _counts(difference: list[str]) -> str:
    body = difference[2:]
    added = sum(line.startswith("+") for line in body)
    removed = sum(line.startswith("-") for line in body)
    return f"{added} lines added, {removed} removed" if difference else "none"


def _pre(lines: list[str], kind: str) -> Markup:
    if kind == "rules":
        body: Markup = joined("\n".join(lines))
    else:
        body = joined([tag("span", line, class_=_CLASSES.get(line[:1])) for line in lines])
    return tag("pre", tag("code", body), class_=kind, tabindex=0)
