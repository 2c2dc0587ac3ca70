"""The parts that plots share: the type of a plot, its frame in Vega-Lite, the looks of variants."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kdsl.lab.report.metrics import Metric
from kdsl.lab.report.study import Study
from kdsl.lab.report.theme import SERIES, dash_of, series_colour

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
VERSION: Final = "6.4"
"""The version of Vega-Lite that plots are written in."""
PICTURE_WIDTH: Final = 760
MOST_ROWS: Final = 24
"""The variants of a plot that has a row for each."""
LABEL_LIMIT: Final = 140
"""The width of labels beside lines and points, in pixels; longer ones end in an ellipsis."""
_LETTER: Final = 6.9
"""The mean width of a letter of labels, in pixels."""

Row = Mapping[str, Any]
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of one trace.

    `key` names its kind, `title` and `note` stand above it. The datasets are apart from `spec`, in Vega-Lite,
    which names them.
    """

    key: str
    title: str
    note: str
    trace: int
    spec: Spec
    data: Mapping[str, Sequence[Row]]
    is_wide: bool = False

    def whole(self, config: Mapping[str, Any]) -> Spec:
        """Return one document in Vega-Lite, with its data, for a picture."""
        datasets = {name: list(rows) for name, rows in self.data.items()}
        return {**self.spec, "width": PICTURE_WIDTH, "datasets": datasets, "config": dict(config)}


@dataclass(frozen=True, slots=True)
class Looks:
    """The looks of variants in all plots. `places` are those with a colour of their own."""

    places: Mapping[int, int]
    labels: Sequence[str] = field(default=())

    def has(self, variant: int) -> bool:
        return variant in self.places

    def colour(self, variants: Sequence[int]) -> Spec:
        """Return the scale of colours by the label of a variant."""
        colours = [series_colour(self.places.get(variant)) for variant in variants]
        return {"domain": [self.labels[variant] for variant in variants], "range": colours}

    def dash(self, variants: Sequence[int]) -> Spec:
        """Return the scale of dashes by the label of a variant."""
        dashes = [dash_of(self.places.get(variant)) or [1, 0] for variant in variants]
        return {"domain": [self.labels[variant] for variant in variants], "range": dashes}


def looks_of(study: Study) -> Looks:
    """Give the first variants a colour; if there are more, those that are best in the first metric."""
    metric = study.metrics[0]
    sign = -1 if metric.is_more_better else 1
    order = range(len(study.variants))
    if len(study.variants) > SERIES:

        def rank(variant: int) -> float:
            means = [study.over_seeds(trace, variant, metric.key) for trace in range(len(study.traces))]
            known = [each.mean for each in means if each is not None]
            return sign * sum(known) / len(known) if known else math.inf

        order = sorted(sorted(order, key=rank)[:SERIES])  # type: ignore[assignment]
    labels = [variant.label for variant in study.variants]
    return Looks({variant: place for place, variant in enumerate(order)}, labels)


def frame(height: int, layers: Sequence[Spec], *, right: int = 12, description: str = "") -> Spec:
    """Return the frame of a plot: as wide as its place in the page, with so many pixels for labels at the
    right.
    """
    return {
        "$schema": SCHEMA,
        "description": description,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 4, "top": 6, "bottom": 4, "right": right},
        "layer": list(layers),
    }


def label_width(labels: Sequence[str]) -> int:
    """Return about how wide the longest label is, in pixels, at most their limit."""
    return min(math.ceil(_LETTER * max(map(len, labels), default=0)), LABEL_LIMIT) + 16


def span_of(
    values: Sequence[float], *, least: float | None = None, most: float | None = None
) -> tuple[float, float]:
    """Return round limits of an axis for values, not beyond `least` and `most`."""
    low, high = min(values), max(values)
    if high == low:
        low, high = low - (abs(low) or 1) / 10, high + (abs(high) or 1) / 10
    step = 10 ** math.floor(math.log10((high - low) / 2))
    if (high - low) / step > 10:
        step *= 5
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return (low if least is None else max(low, least)), (high if most is None else min(high, most))


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return heights moved apart by at least `gap`, within limits where there is room, in the same order."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    found = list(heights)
    ceiling = -math.inf
    for at in order:
        found[at] = ceiling = max(found[at], ceiling + gap, low)
    floor = math.inf
    for at in reversed(order):
        found[at] = floor = min(found[at], floor - gap, high)
    return found


def number_format(metric: Metric) -> str:
    return f",.{metric.digits}f"


def rounded(value: float | None) -> float | None:
    """Return a value with the digits that a plot can show."""
    return None if value is None else float(f"{value:.6g}")
