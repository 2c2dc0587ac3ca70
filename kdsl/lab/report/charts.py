"""Plots that compare variants on a trace: spread over seeds, Pareto front, reasons why pods wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kdsl.lab.report.evidence import Evidence
from kdsl.lab.report.metrics import SHOWN_FIRST, Metric
from kdsl.lab.report.plots import (
    LABEL_LIMIT,
    MOST_ROWS,
    Looks,
    Plot,
    Row,
    Spec,
    frame,
    label_width,
    number_format,
    rounded,
)
from kdsl.lab.report.study import Study, shortened

MOST_REASONS: Final = 6
OTHER: Final = "other reasons"
_ROW: Final = 34
HEAD: Final = 56
NAMES: Final = {"labelLimit": 190, "labelColor": "var(--ink)", "labelFontWeight": 600, "grid": False}
_LABEL: Final = {"type": "text", "align": "left", "fontWeight": 600}


def seeds(study: Study, looks: Looks, trace: int) -> Iterator[Plot]:
    """Yield a box plot over seeds for each of the first metrics."""
    variants = _with_rows(study, trace)
    at = f" at a load of {study.load} %" if study.load is not None else ""
    for key in SHOWN_FIRST[study.is_timed]:
        metric = next((each for each in study.metrics if each.key == key), None)
        if metric is None:
            continue
        rows: list[Row] = [
            {"v": looks.labels[variant], "value": rounded(value), "seed": run.seed, "run": run.digest}
            for variant in variants
            for run in study.group(trace, variant)
            if (value := run.values.get(key)) is not None
        ]
        if not rows:
            continue
        where = "" if key == "pending" else at
        better = "More" if metric.is_more_better else "Less"
        yield Plot(
            f"seeds-{key}",
            f"{metric.title}{where}, seed by seed",
            f"{better} is better. The box holds the middle half of the seeds, its line is the median, and the"
            f" thin line goes from the smallest to the largest. Each dot is a run.{_rows_left_out(study)}",
            trace,
            frame(_ROW * len(variants) + HEAD, _boxes(metric, looks, variants), description=metric.title),
            {"runs": rows},
        )


def pareto(study: Study, looks: Looks, trace: int, chosen: tuple[Metric, Metric]) -> Plot | None:
    """Return the plot of two metrics with the front of those variants that no other beats in both."""
    across, up = chosen
    rows: list[Row] = []
    for variant in range(len(study.variants)):
        x = study.over_seeds(trace, variant, across.key)
        y = study.over_seeds(trace, variant, up.key)
        example = study.example(trace, variant)
        if x is None or y is None or example is None:
            continue
        row = {"v": looks.labels[variant], "run": example.digest, "n": x.count, "place": variant}
        for name, each in (("x", x), ("y", y)):
            row[name] = rounded(each.mean)
            row[f"{name}1"] = rounded(each.least if each.low is None else each.low)
            row[f"{name}2"] = rounded(each.most if each.high is None else each.high)
        rows.append(row)
    if not rows:
        return None
    best = front([(row["x"], row["y"]) for row in rows], across.is_more_better, up.is_more_better)
    rows = [{**row, "front": at in best} for at, row in enumerate(rows)]
    names = [row["v"] for row in rows if row["front"] or len(rows) <= MOST_ROWS]
    variants = [row["place"] for row in rows]
    at_load = f", at a load of {study.load} %" if study.load is not None else ""
    return Plot(
        "pareto",
        f"{up.title} against {across.inline}",
        f"Means over seeds{at_load}, with 95 % confidence intervals. Filled points are the Pareto front: no"
        " other variant is at least as good in both and better in one.",
        trace,
        frame(
            340,
            _front_layers(across, up, looks, variants),
            right=label_width([str(name) for name in names]),
            description=f"{up.title} against {across.title}",
        ),
        {
            "variants": rows,
            "front": sorted((row for row in rows if row["front"]), key=lambda row: row["x"]),
            "names": [row for row in rows if row["v"] in names],
        },
    )


def front(points: Sequence[tuple[float, float]], more_across: bool, more_up: bool) -> set[int]:
    """Return the places of the points that no other one beats: at least as good in both, better in one."""
    good = [(x if more_across else -x, y if more_up else -y) for x, y in points]

    def is_beaten(one: tuple[float, float]) -> bool:
        return any(other[0] >= one[0] and other[1] >= one[1] and other != one for other in good)

    return {at for at, one in enumerate(good) if not is_beaten(one)}


def reasons(study: Study, evidence: Evidence, looks: Looks, trace: int) -> Plot | None:
    """Return the plot of pods that wait in the end, by their main reason; None if none waits."""
    variants = _with_rows(study, trace)
    counts: dict[int, Counter[str]] = {}
    for variant in variants:
        runs = [run.digest for run in study.group(trace, variant) if run.digest in evidence.reasons]
        total: Counter[str] = sum((evidence.reasons[run] for run in runs), Counter())
        counts[variant] = Counter({reason: pods / len(runs) for reason, pods in total.items()})
    ranked = sum(counts.values(), Counter()).most_common()
    if not ranked:
        return None
    named = [reason for reason, _ in ranked[:MOST_REASONS]]
    shown = {reason: shortened(reason, 70) for reason in named}
    order = [*shown.values(), *([OTHER] if len(ranked) > len(named) else [])]
    rows: list[Row] = []
    for variant, of_variant in counts.items():
        for name in order:
            pods = sum(each for reason, each in of_variant.items() if shown.get(reason, OTHER) == name)
            rows.append(
                {"v": looks.labels[variant], "reason": name, "at": order.index(name), "pods": rounded(pods)}
            )
    totals: list[Row] = [
        {"v": looks.labels[variant], "pods": rounded(sum(each.values()))} for variant, each in counts.items()
    ]
    return Plot(
        "reasons",
        "Pods without a node, by reason",
        "Mean over seeds, at the end of the run. A pod counts for the reason that most nodes rejected it for."
        f"{_rows_left_out(study)}",
        trace,
        frame(
            _ROW * len(variants) + HEAD,
            _bars(looks, variants, order),
            right=40,
            description="Pending pods by reason",
        ),
        {"pods": rows, "totals": totals},
    )


def _with_rows(study: Study, trace: int) -> list[int]:
    return [variant for variant in range(len(study.variants)) if study.group(trace, variant)][:MOST_ROWS]


def _rows_left_out(study: Study) -> str:
    count = len(study.variants)
    return f" Only the first {MOST_ROWS} of {count} variants are drawn." if count > MOST_ROWS else ""


def _row_axis(looks: Looks, variants: Sequence[int]) -> Spec:
    return {
        "field": "v",
        "type": "nominal",
        "title": None,
        "sort": [looks.labels[variant] for variant in variants],
        "axis": NAMES,
    }


def value_axis(field: str, metric: Metric) -> Spec:
    """Return the axis of a metric across a plot."""
    return {
        "field": field,
        "type": "quantitative",
        "title": metric.axis,
        "scale": {"zero": False, "nice": True, "padding": 8},
        "axis": {"grid": True, "tickCount": 5, "domain": False},
    }


def _boxes(metric: Metric, looks: Looks, variants: Sequence[int]) -> list[Spec]:
    colour = {"field": "v", "type": "nominal", "scale": looks.colour(variants), "legend": None}
    y, x = _row_axis(looks, variants), value_axis("value", metric)
    return [
        {
            "data": {"name": "runs"},
            "mark": {
                "type": "boxplot",
                "extent": "min-max",
                "size": 16,
                "box": {"fillOpacity": 0.22, "cornerRadius": 2, "aria": False},
                "median": {"strokeWidth": 2, "color": "var(--ink)", "aria": False},
                "rule": {"strokeWidth": 1.25, "color": "var(--soft)"},
            },
            "encoding": {"y": y, "x": x, "color": colour, "tooltip": {"value": None}},
        },
        {
            "data": {"name": "runs"},
            "mark": {"type": "point", "filled": True, "size": 38, "opacity": 0.9, "cursor": "pointer"},
            "encoding": {
                "y": y,
                "x": x,
                "color": colour,
                "tooltip": [
                    {"field": "v", "title": "policy"},
                    {"field": "seed", "title": "seed", "format": "d"},
                    {"field": "value", "title": metric.axis, "format": number_format(metric)},
                ],
            },
        },
    ]


def _front_layers(across: Metric, up: Metric, looks: Looks, variants: Sequence[int]) -> list[Spec]:
    x: Spec = value_axis("x", across)
    y: Spec = {**value_axis("y", up), "scale": {"zero": False, "nice": True, "padding": 12}}
    colour = {"field": "v", "type": "nominal", "scale": looks.colour(variants), "legend": None}
    point: Spec = {
        "x": x,
        "y": y,
        "tooltip": [
            {"field": "v", "title": "policy"},
            {"field": "x", "title": across.axis, "format": number_format(across)},
            {"field": "y", "title": up.axis, "format": number_format(up)},
            {"field": "n", "title": "seeds"},
        ],
    }
    # A step from one point reaches only what that point or the next offers.
    step = "step-before" if across.is_more_better else "step-after"
    rule: Spec = {"type": "rule", "strokeWidth": 1.25, "opacity": 0.7}
    return [
        {
            "data": {"name": "front"},
            "mark": {"type": "line", "interpolate": step, "strokeDash": [4, 4], "color": "var(--soft)"},
            "encoding": {"x": x, "y": y, "order": {"field": "x"}},
        },
        {
            "data": {"name": "variants"},
            "mark": rule,
            "encoding": {"x": {**x, "field": "x1"}, "x2": {"field": "x2"}, "y": y, "color": colour},
        },
        {
            "data": {"name": "variants"},
            "mark": rule,
            "encoding": {"x": x, "y": {**y, "field": "y1"}, "y2": {"field": "y2"}, "color": colour},
        },
        {
            "data": {"name": "variants"},
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1, "cursor": "pointer"},
            "encoding": {
                **point,
                "fill": {
                    "condition": {"test": "!datum.front", "value": "var(--paper)"},
                    "field": "v",
                    "type": "nominal",
                    "scale": looks.colour(variants),
                    "legend": None,
                },
                "stroke": colour,
            },
        },
        {
            "data": {"name": "names"},
            "mark": {**_LABEL, "baseline": "bottom", "dx": 9, "dy": -3, "limit": LABEL_LIMIT},
            "encoding": {"x": x, "y": y, "text": {"field": "v", "type": "nominal"}, "color": colour},
        },
    ]


def _bars(looks: Looks, variants: Sequence[int], order: Sequence[str]) -> list[Spec]:
    colours = [f"var(--s{at + 1})" if name != OTHER else "var(--other)" for at, name in enumerate(order)]
    encoding: Spec = {
        "y": _row_axis(looks, variants),
        "x": {
            "field": "pods",
            "type": "quantitative",
            "title": "Pods",
            "stack": "zero",
            "axis": {"grid": True, "tickCount": 5, "domain": False, "format": ",d"},
        },
        "order": {"field": "at"},
    }
    legend = {"orient": "top", "direction": "vertical", "title": None, "columns": 1, "offset": 8}
    return [
        {
            "data": {"name": "pods"},
            "mark": {"type": "bar", "height": 20, "stroke": "var(--paper)", "strokeWidth": 1},
            "encoding": {
                **encoding,
                "color": {
                    "field": "reason",
                    "type": "nominal",
                    "sort": list(order),
                    "scale": {"domain": list(order), "range": colours},
                    "legend": legend,
                },
                "tooltip": [
                    {"field": "v", "title": "policy"},
                    {"field": "reason", "title": "reason"},
                    {"field": "pods", "title": "pods", "format": ",.1f"},
                ],
            },
        },
        {
            "data": {"name": "totals"},
            "mark": {**_LABEL, "dx": 6},
            "encoding": {
                "y": encoding["y"],
                "x": {"field": "pods", "type": "quantitative"},
                "text": {"field": "pods", "type": "quantitative", "format": ",.0f"},
            },
        },
    ]
