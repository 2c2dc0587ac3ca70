"""The sentences of a report: the result, the computation of figures, and the parts left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.lab.report import tables
from kdsl.lab.report.contents import Contents
from kdsl.lab.report.markup import Markup, tag
from kdsl.lab.report.study import Study, shortened

MOST_PROBLEMS: Final = 20
_LONGEST: Final = 400
_INTERVALS: Final = (
    "Intervals: mean ± t · s / √n over the seeds of a policy on a trace, where s is the standard deviation of"
    " the sample and t the 97.5 % quantile of Student’s t distribution with n − 1 degrees of freedom. They"
    " suppose that seeds are drawn independently and that figures are about normal. A single seed has none."
)
_DIFFERENCES: Final = (
    "Differences: a seed gives all policies the same pods in the same order, so the interval is that of the"
    " differences of each seed. It is often narrower than those of the two means."
)
_NO_CARDS: Final = (
    "Cards: the folder does not have the nodes of the traces, so the page shows no cards. `kdsl lab run` adds"
    " them, and runs nothing again."
)
_NO_CARDS_OVER_TIME: Final = (
    "Cards and decisions: cards come free again in runs over time, so the page shows none at their end, and"
    " `kdsl lab explain` and `kdsl lab record` do not repeat their decisions. A decision has the last reason"
    " for which its pod waits."
)


def sentence(study: Study, trace: int) -> str | None:
    """Return the result by the first metric: the best variant, and the next one."""
    metric = study.metrics[0]
    known = [
        (each, variant)
        for variant in range(len(study.variants))
        if (each := study.over_seeds(trace, variant, metric.key)) is not None
    ]
    if len(known) < 2:
        return None
    known.sort(key=lambda pair: (-1 if metric.is_more_better else 1) * pair[0].mean)
    (best, first), (after, second) = known[:2]
    unit = f" {metric.unit}" if metric.unit else ""
    apart = study.difference(trace, second, first, metric.key)
    is_near = apart is not None and apart.half is not None and abs(apart.mean) <= apart.half
    return (
        f"{study.variants[first].label} is best in {metric.inline}:"
        f" {tables.number_text(metric, best.mean)}{unit}. The next is {study.variants[second].label} with"
        f" {tables.number_text(metric, after.mean)}{unit}{', not clearly apart' if is_near else ''}."
    )


def cards_note(contents: Contents) -> Markup | None:
    """Return the note on the parts that the section on cards leaves out; None if there are none."""
    held, all_of_them = len(contents.evidence.cards), len(contents.evidence.excerpts)
    if held == all_of_them:
        return None
    traces = dict.fromkeys(shortened(contents.study.traces[trace]) for trace, _ in contents.evidence.cards)
    text = f"The page holds the cards of {held} of {all_of_them} runs, on {', '.join(traces)}."
    return tag("p", text, class_="note")


def about(contents: Contents) -> list[Markup]:
    """Return the computation and the meaning of each figure."""
    study, evidence = contents.study, contents.evidence
    shown = sum(len(each.places) for each in evidence.excerpts.values())
    total = sum(each.total for each in evidence.excerpts.values())
    decisions = (
        f"Decisions: the page holds {shown:,} of the {total:,} decisions of {len(evidence.excerpts):,} runs,"
        " those nearest to the mean of their seeds: the first pods with a node and the first without one. All"
        f" are in the folder: kdsl.lab.open(“{shortened(study.name, 80)}”).decisions(“RUN”)."
    )
    texts = [_INTERVALS, _DIFFERENCES, decisions]
    if study.is_timed:
        texts.append(_NO_CARDS_OVER_TIME)
    elif not evidence.cards:
        texts.append(_NO_CARDS)
    terms = ((tag("dt", metric.axis), tag("dd", metric.about)) for metric in study.metrics)
    return [*(tag("p", text) for text in texts), tag("dl", *terms, class_="metrics")]


def problems_part(problems: Sequence[Diagnostic]) -> Markup | None:
    if not problems:
        return None
    items = [tag("li", shortened(each.title, _LONGEST)) for each in problems[:MOST_PROBLEMS]]
    more = len(problems) - len(items)
    return tag(
        "aside",
        tag("h2", "Not everything could be read"),
        tag("ul", *items, tag("li", f"and {more:,} more") if more else None),
        class_="problems",
    )
