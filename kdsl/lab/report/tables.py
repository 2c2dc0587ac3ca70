"""The tables of a report: figures with their confidence intervals, differences, and runs."""

from __future__ import annotations

import json
from typing import Final

from kdsl.lab.intervals import Interval
from kdsl.lab.report.markup import Markup, tag
from kdsl.lab.report.metrics import Metric
from kdsl.lab.report.plots import Looks
from kdsl.lab.report.study import Study, StudyRun, Variant, shortened

MOST_ROWS: Final = 2_000
"""The runs that the table of runs lists."""
_MANY: Final = 8
"""A table with more columns is set smaller."""
_DIGITS: Final = 12
"""The characters of a digest that are shown."""


def swatch(looks: Looks, variant: int) -> Markup:
    """Return the mark of a variant in its colour."""
    place = looks.places.get(variant)
    return tag("i", class_=f"swatch s{'x' if place is None else place + 1}", aria_hidden="true")


def figures(study: Study, looks: Looks, trace: int) -> Markup:
    """Return the table of all metrics of a trace: means over seeds with their confidence intervals."""
    variants = [variant for variant in range(len(study.variants)) if study.group(trace, variant)]
    best = {metric.key: _best(study, trace, variants, metric) for metric in study.metrics}
    rows = [
        tag(
            "tr",
            _name(study, looks, variant),
            *(
                _mean_cell(metric, study.over_seeds(trace, variant, metric.key), variant in best[metric.key])
                for metric in study.metrics
            ),
            tag(
                "td",
                len(study.group(trace, variant)),
                class_="number",
                data_sort=len(study.group(trace, variant)),
            ),
        )
        for variant in variants
    ]
    load = f", at a load of {study.load} %" if study.load is not None else ""
    caption = (
        f"Means over seeds ± half of the 95 % confidence interval{load}. Bold is the best of a column, with"
        " those that are not clearly apart from it."
    )
    return _table(caption, ["Policy", *(_head(metric) for metric in study.metrics), "Seeds"], rows)


def differences(study: Study, looks: Looks, trace: int) -> Markup | None:
    """Return the table of differences from the first variant, seed by seed; None if there is no other."""
    variants = [variant for variant in range(len(study.variants)) if study.group(trace, variant)]
    if len(variants) < 2:
        return None
    baseline, *others = variants
    rows = [
        tag(
            "tr",
            _name(study, looks, variant),
            *(
                _difference_cell(metric, study.difference(trace, variant, baseline, metric.key))
                for metric in study.metrics
            ),
        )
        for variant in others
    ]
    caption = (
        f"Difference from {study.variants[baseline].label}, each seed against the same seed, with its 95 %"
        " confidence interval. Better and worse stand where the interval does not hold 0."
    )
    return _table(caption, ["Policy", *(_head(metric) for metric in study.metrics)], rows)


def runs(study: Study, looks: Looks) -> Markup:
    """Return the table of runs, each with a link to its part of the page."""
    rows = [
        tag(
            "tr",
            tag(
                "th", tag("a", run.digest[:_DIGITS], href=f"#run-{run.digest}", class_="digest"), scope="row"
            ),
            tag("td", shortened(study.traces[run.trace])),
            tag("td", swatch(looks, run.variant), study.variants[run.variant].label),
            tag("td", run.seed, class_="number", data_sort=run.seed),
            *(_value_cell(metric, run) for metric in study.metrics),
        )
        for run in study.runs[:MOST_ROWS]
    ]
    count = len(study.runs)
    caption = f"All {count:,} runs." if count <= MOST_ROWS else f"The first {MOST_ROWS:,} of {count:,} runs."
    heads = ["Run", "Trace", "Policy", "Seed", *(_head(metric) for metric in study.metrics)]
    return _table(caption, heads, rows, key="runs-table", texts=3)


def number_text(metric: Metric, value: float, digits: int | None = None) -> str:
    """Return a value with the digits of its metric, without its unit."""
    return f"{value:,.{metric.digits if digits is None else digits}f}".replace("-", "−")


def _best(study: Study, trace: int, variants: list[int], metric: Metric) -> frozenset[int]:
    """Return the best variant and those that are not clearly apart from it; none if that is all of them."""
    means = {
        variant: each.mean
        for variant in variants
        if (each := study.over_seeds(trace, variant, metric.key)) is not None
    }
    if not means:
        return frozenset()
    first = (max if metric.is_more_better else min)(means, key=means.__getitem__)
    best = {variant for variant, mean in means.items() if mean == means[first]}
    for variant in means:
        apart = study.difference(trace, variant, first, metric.key)
        if apart is not None and apart.half is not None and abs(apart.mean) <= apart.half:
            best.add(variant)
    return frozenset(best) if len(best) < len(means) else frozenset()


def _title(variant: Variant) -> str:
    parameters = "" if variant.parameters in ("", "{}") else f" with {variant.parameters}"
    return shortened(f"{variant.profile}{parameters}", 400)


def _head(metric: Metric) -> Markup:
    unit = tag("span", f" {metric.unit}", class_="unit") if metric.unit else ""
    return tag("span", metric.title, unit, title=metric.about)


def _name(study: Study, looks: Looks, variant: int) -> Markup:
    each = study.variants[variant]
    return tag("th", swatch(looks, variant), each.label, scope="row", title=_title(each))


def _table(
    caption: str, heads: list[str], rows: list[Markup], key: str | None = None, texts: int = 1
) -> Markup:
    """Return a table that sorts by its columns; the first ones, `texts`, hold text and all others numbers."""
    columns = (
        tag(
            "th",
            tag("button", head, type="button"),
            scope="col",
            aria_sort="none",
            class_="number" if at >= texts else None,
        )
        for at, head in enumerate(heads)
    )
    table = tag(
        "table",
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", *columns)),
        tag("tbody", *rows),
        class_="sortable many" if len(heads) > _MANY else "sortable",
        id=key,
    )
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=shortened(caption, 80))


def _mean_cell(metric: Metric, each: Interval | None, is_best: bool) -> Markup:
    if each is None:
        return tag("td", "–", class_="number")
    spread = "" if each.half is None else tag("span", f" ± {number_text(metric, each.half)}", class_="spread")
    mean = number_text(metric, each.mean)
    limits = (
        f"from {number_text(metric, each.least)} to {number_text(metric, each.most)} in {each.count} seeds"
    )
    shown = tag("strong", mean) if is_best else mean
    return tag("td", shown, spread, class_="number", data_sort=f"{each.mean:.9g}", title=limits)


def _difference_cell(metric: Metric, each: Interval | None) -> Markup:
    if each is None:
        return tag("td", "–", class_="number")
    sign = "+" if each.mean > 0 else ""
    text = f"{sign}{number_text(metric, each.mean)}"
    if each.half is None:
        return tag("td", text, class_="number", data_sort=f"{each.mean:.9g}")
    spread = tag("span", f" ± {number_text(metric, each.half)}", class_="spread")
    verdict = None
    if abs(each.mean) > each.half:
        is_better = (each.mean > 0) == metric.is_more_better
        verdict = tag("span", " better" if is_better else " worse", class_="better" if is_better else "worse")
    return tag("td", text, spread, verdict, class_="number", data_sort=f"{each.mean:.9g}")


def _value_cell(metric: Metric, run: StudyRun) -> Markup:
    value = run.values.get(metric.key)
    if value is None:
        return tag("td", "–", class_="number")
    return tag(
        "td", number_text(metric, value, metric.digits_of_one), class_="number", data_sort=f"{value:.9g}"
    )


def settings_of(text: str) -> str:
    """Return parameters as people write them: `name = value`, one after the other."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(values, dict) or not values:
        return "–" if not values else text
    return ", ".join(f"{name} = {value}" for name, value in values.items())
