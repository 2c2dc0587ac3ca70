"""Results arranged for a report: variants of policies, their runs, and figures over seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from kdsl.base.visible import visible
from kdsl.lab.intervals import Interval, interval_of
from kdsl.lab.report.metrics import OF_LOADS, OVER_TIME, Metric
from kdsl.lab.stored import Results, refused

LARGEST: Final = 1e100
"""The largest number that counts as a figure."""
LONGEST_LABEL: Final = 40
USUAL_LOAD: Final = 100
"""The load at which policies are compared, in percent, if it was measured."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A profile with one choice of its parameters. `label` is unique and short."""

    label: str
    profile: str
    parameters: str


@dataclass(frozen=True, slots=True)
class StudyRun:
    """A run with its figures by the names of metrics; `trace` and `variant` are places in the study's
    lists.
    """

    digest: str
    trace: int
    variant: int
    seed: int
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """A figure over seeds at a load."""

    trace: int
    variant: int
    load: int
    metric: str
    over_seeds: Interval


@dataclass(frozen=True, slots=True)
class Study:
    """The results of an experiment. `load` is that of the figures, None of runs over time."""

    name: str
    is_timed: bool
    traces: tuple[str, ...]
    variants: tuple[Variant, ...]
    metrics: tuple[Metric, ...]
    runs: tuple[StudyRun, ...]
    points: tuple[StudyPoint, ...]
    load: int | None
    groups: Mapping[tuple[int, int], tuple[StudyRun, ...]]
    """The runs by trace and variant."""

    def metric(self, key: str) -> Metric:
        return next(metric for metric in self.metrics if metric.key == key)

    def group(self, trace: int, variant: int) -> tuple[StudyRun, ...]:
        """Return the runs of a variant on a trace, one for each seed."""
        return self.groups.get((trace, variant), ())

    def of_variant(self, variant: int) -> Iterator[StudyRun]:
        """Yield the runs of a variant, trace by trace."""
        for trace in range(len(self.traces)):
            yield from self.group(trace, variant)

    def over_seeds(self, trace: int, variant: int, metric: str) -> Interval | None:
        return interval_of(run.values.get(metric) for run in self.group(trace, variant))

    def difference(self, trace: int, variant: int, baseline: int, metric: str) -> Interval | None:
        """Return how much more a variant has than another, each seed against the same seed."""
        other = {run.seed: run.values.get(metric) for run in self.group(trace, baseline)}
        pairs = ((run.values.get(metric), other.get(run.seed)) for run in self.group(trace, variant))
        return interval_of(a - b for a, b in pairs if a is not None and b is not None)

    def example(self, trace: int, variant: int) -> StudyRun | None:
        """Return the run that is nearest to the mean of its seeds in the first metric."""
        group, key = self.group(trace, variant), self.metrics[0].key
        middle = self.over_seeds(trace, variant, key)
        if not group or middle is None:
            return group[0] if group else None

        def distance(run: StudyRun) -> float:
            value = run.values.get(key)
            return math.inf if value is None else abs(value - middle.mean)

        return min(group, key=distance)


def study_of(results: Results, load: int | None = None) -> Study:
    """Arrange results. `load` is that of the figures, by default 100 % or the highest that was measured.

    Raises InvalidInputError if there are no runs or figures, or the load was not measured.
    """
    table = results.table()
    rows = table.to_pylist()
    if not rows:
        raise refused(results.path, f"`{results.path}` holds no runs")
    metrics = tuple(
        metric
        for metric in (OVER_TIME if results.is_timed else OF_LOADS)
        if any(number_of(row.get(metric.key)) is not None for row in rows)
    )
    if not metrics:
        raise refused(results.path, f"`{results.path}` holds no figures that a report shows")
    load = None if results.is_timed else _load(results, rows, metrics[0].key, load)
    traces = list(dict.fromkeys(row["trace"] for row in rows))
    keys = list(dict.fromkeys((row["profile"], row["parameters"]) for row in rows))
    variants = _variants(keys)
    places = {key: at for at, key in enumerate(keys)}
    at_trace = {name: at for at, name in enumerate(traces)}

    def group(row: Mapping[str, Any]) -> tuple[int, int]:
        return at_trace[row["trace"]], places[row["profile"], row["parameters"]]

    runs = tuple(
        StudyRun(row["run"], *group(row), row["seed"], _values(row, metrics))
        for row in rows
        if results.is_timed or row["load"] == load
    )
    points = () if results.is_timed else tuple(_points(rows, metrics, group))
    groups: dict[tuple[int, int], list[StudyRun]] = {}
    for run in runs:
        groups.setdefault((run.trace, run.variant), []).append(run)
    return Study(
        results.path.resolve().name,
        results.is_timed,
        tuple(traces),
        variants,
        metrics,
        runs,
        points,
        load,
        {group: tuple(members) for group, members in groups.items()},
    )


def number_of(value: object) -> float | None:
    """Return a value as a number; None if it is none, not finite, or so large that squares of it are not."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LARGEST:
        return None
    return float(value)


def shortened(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return a text without control characters, cut to a length."""
    plain = visible(text)
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def _load(results: Results, rows: Iterable[Mapping[str, Any]], metric: str, wanted: int | None) -> int:
    measured = sorted({row["load"] for row in rows if number_of(row.get(metric)) is not None})
    if wanted is None:
        return USUAL_LOAD if USUAL_LOAD in measured else measured[-1]
    if wanted not in measured:
        title = f"no run was measured at a load of {wanted} %"
        raise refused(results.path, title, f"measured loads: {', '.join(map(str, measured))}")
    return wanted


def _values(row: Mapping[str, Any], metrics: Sequence[Metric]) -> dict[str, float | None]:
    return {metric.key: number_of(row.get(metric.key)) for metric in metrics}


def _points(rows: Iterable[Mapping[str, Any]], metrics: Sequence[Metric], group: Any) -> Iterable[StudyPoint]:
    found: dict[tuple[int, int, int, str], list[float | None]] = {}
    for row in rows:
        for metric in metrics:
            if metric.key != "pending":
                key = *group(row), row["load"], metric.key
                found.setdefault(key, []).append(number_of(row.get(metric.key)))
    for (trace, variant, load, name), values in found.items():
        over_seeds = interval_of(values)
        if over_seeds is not None:
            yield StudyPoint(trace, variant, load, name, over_seeds)


def _variants(keys: Sequence[tuple[str, str]]) -> tuple[Variant, ...]:
    """Return variants with labels: the profile, and the parameters in which its variants differ."""
    parameters = {key: _parameters(key[1]) for key in keys}
    labels: set[str] = set()
    found = []
    for profile, text in keys:
        siblings = [parameters[key] for key in keys if key[0] == profile]
        own = parameters[profile, text]
        names = [name for name in own if any(each.get(name) != own[name] for each in siblings)]
        choice = ", ".join(f"{name.rpartition('.')[2]} {own[name]}" for name in names)
        label = shortened(f"{profile} · {choice}" if choice else profile)
        label = next(each for each in _numbered(label) if each not in labels)
        labels.add(label)
        found.append(Variant(label, profile, text))
    return tuple(found)


def _numbered(label: str) -> Iterable[str]:
    yield label
    yield from (f"{label} ({number})" for number in count(2))


def _parameters(text: str) -> dict[str, Any]:
    """Return the parameters of a run; a text that is none stands for itself."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return {"parameters": text}
    return values if isinstance(values, dict) else {"parameters": text}
