"""The tables of a report as CSV: runs, figures over seeds, figures by load or over time, reasons."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from kdsl.base.visible import visible
from kdsl.base.whole_file import whole_file
from kdsl.lab.intervals import Interval
from kdsl.lab.report.contents import Contents
from kdsl.lab.report.study import Study

Cell = str | int | float | None
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The first characters of texts that spreadsheets take for formulas, in two widths."""
_INTERVAL = ("seeds", "mean", "low95", "high95", "least", "most")


def write_csv(contents: Contents, folder: Path) -> list[Path]:
    """Write the tables; return the files. Numbers have all their digits, an empty cell is no number.

    A text that a spreadsheet would take for a formula has an apostrophe in front.
    """
    study = contents.study
    names = [metric.key for metric in study.metrics]
    about = ("trace", "profile", "parameters")
    tables: dict[str, tuple[Sequence[str], Iterable[Sequence[Cell]]]] = {
        "runs": ((*about, "seed", *names, "run"), _runs(study, names)),
        "figures": ((*about, "metric", "load", *_INTERVAL), _figures(study)),
        "reasons": ((*about, "seed", "run", "reason", "pods"), _reasons(contents)),
    }
    if study.is_timed:
        tables["time"] = ((*about, "measure", "time", *_INTERVAL), _over_time(contents))
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for name, (heads, rows) in tables.items():
        path = folder / f"{name}.csv"
        with whole_file(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(heads)
            writer.writerows(map(_harmless, rows))
        found.append(path)
    return found


def _harmless(row: Sequence[Cell]) -> list[Cell]:
    """Return a row whose texts no spreadsheet takes for formulas: those get an apostrophe in front. Control
    characters are escaped: some readers end a row at each of them.
    """
    return [
        cell
        if not isinstance(cell, str)
        else f"'{visible(cell)}"
        if cell.startswith(_FORMULAS)
        else visible(cell)
        for cell in row
    ]


def _about(study: Study, trace: int, variant: int) -> tuple[str, str, str]:
    each = study.variants[variant]
    return study.traces[trace], each.profile, each.parameters


def _interval(each: Interval) -> tuple[Cell, ...]:
    return each.count, each.mean, each.low, each.high, each.least, each.most


def _runs(study: Study, names: Sequence[str]) -> Iterator[Sequence[Cell]]:
    for run in study.runs:
        values = (run.values.get(name) for name in names)
        yield *_about(study, run.trace, run.variant), run.seed, *values, run.digest


def _figures(study: Study) -> Iterator[Sequence[Cell]]:
    """Yield the metrics over seeds: at every load where they are measured at loads."""
    for point in study.points:
        about = _about(study, point.trace, point.variant)
        yield *about, point.metric, point.load, *_interval(point.over_seeds)
    at_loads = {point.metric for point in study.points}
    for trace in range(len(study.traces)):
        for variant in range(len(study.variants)):
            for metric in study.metrics:
                each = study.over_seeds(trace, variant, metric.key)
                if metric.key not in at_loads and each is not None:
                    yield *_about(study, trace, variant), metric.key, None, *_interval(each)


def _reasons(contents: Contents) -> Iterator[Sequence[Cell]]:
    for run in contents.study.runs:
        counts: Counter[str] = contents.evidence.reasons.get(run.digest, Counter())
        for reason, pods in counts.most_common():
            about = _about(contents.study, run.trace, run.variant)
            yield *about, run.seed, run.digest, reason, pods


def _over_time(contents: Contents) -> Iterator[Sequence[Cell]]:
    for line in contents.evidence.timelines:
        about = _about(contents.study, line.trace, line.variant)
        for time, each in line.points:
            yield *about, line.measure, time, *_interval(each)
