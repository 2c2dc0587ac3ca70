"""Measures over time of runs, on common times, over seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.lab.intervals import Interval, interval_of
from kdsl.lab.report.metrics import Metric
from kdsl.lab.report.study import Study

SAMPLES: Final = 121
"""The times at which runs are compared: the start, and so on to the end of the longest run."""

MEASURES: Final = (
    Metric("cost", "Cost so far", "", "price of all nodes since the start"),
    Metric("waiting", "Waiting", "s", "mean of the pods that arrived since the time before", 1),
    Metric("pending", "Pending", "pods", "pods that wait for a node", 0),
    Metric("nodes", "Nodes", "", "nodes of the cluster", 0),
    Metric("cpu", "CPU in use", "%", "used share of the CPU that there is", 1),
    Metric("cards", "Cards in use", "%", "used share of the cards that there are", 1),
    Metric("lost", "Fragmentation", "%", "free and useless to typical pods, as a share of all cards", 1),
    Metric("evictions", "Evictions so far", "pods", "pods evicted since the start", 0),
)
"""The measures over time that a report shows."""

_SHARES: Final = {
    "cpu": ("cpu_used", "cpu_total"),
    "cards": ("cards_used", "cards_total"),
    "lost": ("lost", "cards_total"),
}
_STEPS: Final = frozenset({"pending", "nodes", "evictions"})
"""A count keeps its value until the next sample; of all else values in between are on a line."""
_WAITING_EVERY: Final = 3
"""Waiting is the mean of the pods that arrived within so many steps of the common times."""

Floats = NDArray[np.float64]
Measures = Mapping[str, tuple[Floats, Floats]]
"""Times and values by the name of a measure."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A measure of a variant on a trace: a time, and the values of its seeds then."""

    trace: int
    variant: int
    measure: str
    points: tuple[tuple[float, Interval], ...]


def measures_of(series: Any, decisions: Any) -> Measures:
    """Return the measures of one run, without those that its tables lack and those that are no numbers."""
    time = _numbers(series, "time")
    found: dict[str, tuple[Floats, Floats]] = {}
    if time is None or not len(time):
        return found
    for name in ("cost", "pending", "nodes", "evictions"):
        values = _numbers(series, name)
        if values is not None:
            found[name] = time, values
    for name, (column, whole) in _SHARES.items():
        values, total = _numbers(series, column), _numbers(series, whole)
        if values is not None and total is not None:
            found[name] = time, 100 * values / np.where(total > 0, total, np.nan)
    arrived, waiting = _numbers(decisions, "arrived_at"), _numbers(decisions, "waiting")
    if arrived is not None and waiting is not None and np.isfinite(waiting).any():
        found["waiting"] = arrived, waiting
    return found


def timelines(study: Study, measures: Mapping[str, Measures]) -> Iterator[Timeline]:
    """Yield the measures of all variants, the runs of a trace at common times.

    After its end a run keeps its last value. A measure that is 0 all the time is left out.
    """
    for trace in range(len(study.traces)):
        ends = [
            float(times[-1])
            for run in study.runs
            if run.trace == trace
            for times, _ in measures.get(run.digest, {}).values()
            if len(times)
        ]
        grid = np.linspace(0, max(ends, default=0), SAMPLES)
        if not ends or grid[-1] <= 0:
            continue
        for variant in range(len(study.variants)):
            found = [measures[run.digest] for run in study.group(trace, variant) if run.digest in measures]
            for measure in MEASURES:
                rows = [_on(grid, measure.key, each[measure.key]) for each in found if measure.key in each]
                points = tuple(_over_seeds(grid, np.array(rows))) if rows else ()
                if any(each.most or each.least for _, each in points):
                    yield Timeline(trace, variant, measure.key, points)


def _over_seeds(grid: Floats, rows: Floats) -> Iterator[tuple[float, Interval]]:
    for at, time in enumerate(grid.tolist()):
        over_seeds = interval_of(rows[:, at].tolist())
        if over_seeds is not None:
            yield time, over_seeds


def _on(grid: Floats, measure: str, samples: tuple[Floats, Floats]) -> Floats:
    """Return a measure at the times of a grid, NaN where there is none."""
    times, values = samples
    if measure == "waiting":
        known = np.isfinite(times) & np.isfinite(values)
        coarse = np.arange(0, len(grid), _WAITING_EVERY)
        place = np.searchsorted(grid[coarse], times[known], side="left")
        at = coarse[np.minimum(place, len(coarse) - 1)]
        sums = np.bincount(at, values[known], len(grid))
        counts = np.bincount(at, minlength=len(grid))
        means: Floats = np.divide(sums, counts, out=np.full(len(grid), np.nan), where=counts > 0)
        return means
    if measure not in _STEPS:
        between: Floats = np.interp(grid, times, values)
        return between
    at = np.searchsorted(times, grid, side="right") - 1
    return np.where(at >= 0, values[np.maximum(at, 0)], np.nan)


def _numbers(table: Any, name: str) -> Floats | None:
    """Return a column as numbers, NaN for none; None if there is no such column of numbers."""
    if name not in table.column_names:
        return None
    try:
        return np.array(table.column(name).to_pylist(), dtype=np.float64)
    except (TypeError, ValueError):
        return None
