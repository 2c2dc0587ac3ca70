"""Plots of lines with bands over seeds: figures by load, and measures over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kdsl.lab.intervals import Interval
from kdsl.lab.report.evidence import Evidence
from kdsl.lab.report.metrics import Metric
from kdsl.lab.report.plots import (
    LABEL_LIMIT,
    Looks,
    Plot,
    Row,
    Spec,
    frame,
    label_width,
    number_format,
    rounded,
    span_of,
    spread,
)
from kdsl.lab.report.study import Study
from kdsl.lab.report.timelines import MEASURES

HEIGHT: Final = 300
_EQUAL: Final = 0.5
"""Policies whose means differ by less percentage points than this look like one line."""
_LABEL_GAP: Final = 16
_BAND: Final = "The line is the mean over seeds, the band its 95 % confidence interval."

Series = dict[int, list[tuple[float, Interval]]]
"""The points of variants in order of x."""


def by_load(study: Study, looks: Looks, trace: int) -> Iterator[Plot]:
    """Yield a plot of each figure that is measured at loads."""
    for metric in study.metrics:
        series: Series = {}
        for point in study.points:
            if (point.trace, point.metric) == (trace, metric.key) and looks.has(point.variant):
                series.setdefault(point.variant, []).append((point.load, point.over_seeds))
        if not series:
            continue
        note = _BAND
        if metric.key == "allocation":
            series, begin = _where_they_differ(series)
            if begin is not None:
                note += f" Below a load of {begin:g} % all lines are one."
        yield _plot(
            f"load-{metric.key}",
            f"{metric.title} by load",
            f"{metric.sentence} {note}{_left_out(study, looks)}",
            trace,
            metric,
            series,
            ("Requested share of all cards (%)", "d"),
            study,
            looks,
        )


def over_time(study: Study, evidence: Evidence, looks: Looks, trace: int) -> Iterator[Plot]:
    """Yield a plot of each measure over time."""
    for measure in MEASURES:
        series = {
            line.variant: list(line.points)
            for line in evidence.timelines
            if (line.trace, line.measure) == (trace, measure.key) and looks.has(line.variant)
        }
        if not series:
            continue
        end = max(points[-1][0] for points in series.values())
        name, seconds = next((each for each in _TIMES if end >= 3 * each[1]), _TIMES[-1])
        scaled = {
            variant: [(time / seconds, over_seeds) for time, over_seeds in points]
            for variant, points in series.items()
        }
        yield _plot(
            f"time-{measure.key}",
            f"{measure.title} over time",
            f"{measure.sentence} {_BAND}{_left_out(study, looks)}",
            trace,
            measure,
            scaled,
            (f"Time since the start ({name})", ",.4~f"),
            study,
            looks,
            has_points=False,
        )


_TIMES: Final = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def _where_they_differ(series: Series) -> tuple[Series, float | None]:
    """Return series from one load before the first at which means differ; and that load, if it is not the
    first.
    """
    loads = sorted({load for points in series.values() for load, _ in points})
    means = {
        load: [each.mean for points in series.values() for at, each in points if at == load] for load in loads
    }
    apart = [at for at, load in enumerate(loads) if max(means[load]) - min(means[load]) >= _EQUAL]
    begin = max(apart[0] - 1, 0) if apart else 0
    if begin == 0:
        return series, None
    first = loads[begin]
    kept = {
        variant: [(load, each) for load, each in points if load >= first]
        for variant, points in series.items()
    }
    return {variant: points for variant, points in kept.items() if points}, first


def _left_out(study: Study, looks: Looks) -> str:
    count = len(study.variants) - len(looks.places)
    shown = len(looks.places)
    return f" Only the best {shown} of {shown + count} variants are drawn." if count else ""


def _plot(
    key: str,
    title: str,
    note: str,
    trace: int,
    metric: Metric,
    series: Series,
    axis: tuple[str, str],
    study: Study,
    looks: Looks,
    has_points: bool = True,
) -> Plot:
    variants = [variant for variant in looks.places if variant in series]
    ends = [each for points in series.values() for _, each in points]
    lows = [each.least if each.low is None else each.low for each in ends]
    highs = [each.most if each.high is None else each.high for each in ends]
    percent = 100.0 if metric.unit == "%" else None
    domain = span_of(
        [*lows, *highs], least=0.0 if min(each.least for each in ends) >= 0 else None, most=percent
    )
    rows = [
        row for variant in variants for row in _rows(study, looks, trace, variant, series[variant], domain)
    ]
    labels = _labels(looks, variants, series, domain)
    spec = frame(
        HEIGHT,
        _layers(metric, looks, variants, domain, axis, has_points),
        right=label_width([looks.labels[variant] for variant in variants]),
        description=f"{title}: one line for each of {', '.join(looks.labels[each] for each in variants)}",
    )
    return Plot(key, title, note, trace, spec, {"points": rows, "labels": labels})


def _rows(
    study: Study,
    looks: Looks,
    trace: int,
    variant: int,
    points: Sequence[tuple[float, Interval]],
    domain: tuple[float, float],
) -> Iterator[Row]:
    low, high = domain
    example = study.example(trace, variant)
    for x, each in points:
        yield {
            "x": rounded(x),
            "mean": rounded(each.mean),
            "low": rounded(max(low, each.least if each.low is None else each.low)),
            "high": rounded(min(high, each.most if each.high is None else each.high)),
            "n": each.count,
            "v": looks.labels[variant],
            "run": example.digest if example else "",
        }


def _labels(looks: Looks, variants: Sequence[int], series: Series, domain: tuple[float, float]) -> list[Row]:
    """Return the labels at the ends of lines, none over another."""
    ends = [series[variant][-1] for variant in variants]
    heights = spread([each.mean for _, each in ends], (domain[1] - domain[0]) * _LABEL_GAP / HEIGHT, *domain)
    return [
        {"x": rounded(x), "y": rounded(height), "v": looks.labels[variant]}
        for variant, (x, _), height in zip(variants, ends, heights, strict=True)
    ]


def _layers(
    metric: Metric,
    looks: Looks,
    variants: Sequence[int],
    domain: tuple[float, float],
    axis: tuple[str, str],
    has_points: bool,
) -> list[Spec]:
    title, ticks = axis
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False, "nice": False},
        "axis": {"format": ticks, "tickCount": 8},
    }
    y: Spec = {
        "type": "quantitative",
        "title": metric.axis,
        "scale": {"domain": list(domain), "zero": False, "nice": False},
        "axis": {"tickCount": 5, **({} if metric.digits else {"tickMinStep": 1, "format": ",d"})},
    }
    colour = {"field": "v", "type": "nominal", "scale": looks.colour(variants), "legend": None}
    dash = {"field": "v", "type": "nominal", "scale": looks.dash(variants), "legend": None}
    digits = number_format(metric)
    tooltip = [
        {"field": "v", "title": "policy"},
        {"field": "x", "title": title, "format": ",.4~f"},
        {"field": "mean", "title": metric.axis, "format": digits},
        {"field": "low", "title": "95 % from", "format": digits},
        {"field": "high", "title": "95 % to", "format": digits},
        {"field": "n", "title": "seeds"},
    ]
    points: Spec = {
        "data": {"name": "points"},
        "mark": {
            "type": "point",
            "filled": True,
            "size": 34 if has_points else 90,
            "opacity": 1 if has_points else 0,
            "cursor": "pointer",
        },
        "encoding": {"x": x, "y": {"field": "mean", **y}, "color": colour, "tooltip": tooltip},
    }
    return [
        {
            "data": {"name": "points"},
            "mark": {"type": "area", "opacity": 0.16, "line": False},
            "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "data": {"name": "points"},
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"x": x, "y": {"field": "mean", **y}, "color": colour, "strokeDash": dash},
        },
        points,
        {
            "data": {"name": "labels"},
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "middle",
                "dx": 8,
                "fontWeight": 600,
                "limit": LABEL_LIMIT,
            },
            "encoding": {
                "x": x,
                "y": {"field": "y", **y},
                "text": {"field": "v", "type": "nominal"},
                "color": colour,
            },
        },
    ]
