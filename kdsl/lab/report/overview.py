"""The plot of all traces: how variants compare on each."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.lab.report.charts import HEAD, value_axis
from kdsl.lab.report.metrics import Metric
from kdsl.lab.report.plots import Looks, Plot, Row, Spec, frame, number_format, rounded
from kdsl.lab.report.study import Study, shortened


def all_traces(study: Study, looks: Looks) -> Plot | None:
    """Return the plot of the first metric on every trace; None if there is only one."""
    if len(study.traces) < 2:
        return None
    metric = study.metrics[0]
    rows: list[Row] = []
    variants = list(looks.places)
    for trace, name in enumerate(study.traces):
        for variant in variants:
            each = study.over_seeds(trace, variant, metric.key)
            example = study.example(trace, variant)
            if each is not None and example is not None:
                low = each.least if each.low is None else each.low
                high = each.most if each.high is None else each.high
                rows.append(
                    {
                        "trace": shortened(name),
                        "v": looks.labels[variant],
                        "mean": rounded(each.mean),
                        "low": rounded(low),
                        "high": rounded(high),
                        "n": each.count,
                        "run": example.digest,
                    }
                )
    at_load = f" at a load of {study.load} %" if study.load is not None else ""
    return Plot(
        "traces",
        f"{metric.title}{at_load} on every trace",
        f"{metric.sentence} Means over seeds with their 95 % confidence intervals.",
        0,
        frame(46 * len(study.traces) + HEAD + 30, _dots(metric, looks, variants), description=metric.title),
        {"traces": rows},
        is_wide=True,
    )


def _dots(metric: Metric, looks: Looks, variants: Sequence[int]) -> list[Spec]:
    legend = {"orient": "top", "title": None, "symbolType": "circle", "symbolSize": 90, "offset": 10}
    colour = {"field": "v", "type": "nominal", "scale": looks.colour(variants), "legend": legend}
    y: Spec = {
        "field": "trace",
        "type": "nominal",
        "title": None,
        "sort": None,
        "axis": {
            "labelLimit": 190,
            "labelColor": "var(--ink)",
            "labelFontWeight": 600,
            "grid": True,
            "tickBand": "extent",
        },
        "scale": {"paddingInner": 0.3, "paddingOuter": 0.15},
    }
    offset = {"field": "v", "type": "nominal", "sort": [looks.labels[variant] for variant in variants]}
    x = value_axis("mean", metric)
    return [
        {
            "data": {"name": "traces"},
            "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.7},
            "encoding": {
                "y": y,
                "yOffset": offset,
                "x": {**x, "field": "low"},
                "x2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "data": {"name": "traces"},
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "cursor": "pointer"},
            "encoding": {
                "y": y,
                "yOffset": offset,
                "x": x,
                "color": colour,
                "tooltip": [
                    {"field": "trace", "title": "trace"},
                    {"field": "v", "title": "policy"},
                    {"field": "mean", "title": metric.axis, "format": number_format(metric)},
                    {"field": "low", "title": "95 % from", "format": number_format(metric)},
                    {"field": "high", "title": "95 % to", "format": number_format(metric)},
                    {"field": "n", "title": "seeds"},
                ],
            },
        },
    ]
