"""Writes reports: the page, pictures of its plots, and its tables as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.errors import KdslError
from kdsl.base.whole_file import whole_file
from kdsl.lab.report import charts, lines
from kdsl.lab.report.cards import heat_maps
from kdsl.lab.report.contents import Contents
from kdsl.lab.report.evidence import Evidence, evidence_of
from kdsl.lab.report.metrics import PARETO, Metric
from kdsl.lab.report.overview import all_traces
from kdsl.lab.report.page import page_of
from kdsl.lab.report.plots import Looks, Plot, looks_of
from kdsl.lab.report.study import Study, study_of
from kdsl.lab.stored import Results

Advance = Callable[[], object]


def contents_of(
    results: Results,
    pareto: tuple[str, str] | None = None,
    load: int | None = None,
    explain: str | None = None,
    advance: Advance = lambda: None,
) -> Contents:
    """Read a folder of results and describe its report. `pareto` are the metrics of the Pareto front.

    `advance` is called after each run that was read. Raises InvalidInputError if the table of results is of
    no use, KdslError if it has no such metric; runs that cannot be read are left out and among the problems.
    """
    study = study_of(results, load)
    chosen = _chosen(study, pareto)
    evidence = evidence_of(results, study, advance)
    looks = looks_of(study)
    plots = tuple(_plots(study, evidence, looks, chosen))
    return Contents(study, evidence, looks, plots, None if study.is_timed else explain)


def write_page(contents: Contents, path: Path) -> tuple[Diagnostic, ...]:
    """Write the page; return the files that could not be read."""
    text = page_of(contents)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return contents.evidence.problems


def _chosen(study: Study, pareto: tuple[str, str] | None) -> tuple[Metric, Metric] | None:
    names = [metric.key for metric in study.metrics]
    for name in pareto or ():
        if name not in names:
            hint = "; ".join((f"these results have no metric `{name}`", *did_you_mean(name, names)))
            raise KdslError(f"{hint}; they have {', '.join(names)}")
    across, up = pareto or PARETO[study.is_timed]
    if across not in names or up not in names:
        return None
    return study.metric(across), study.metric(up)


def _plots(
    study: Study, evidence: Evidence, looks: Looks, pareto: tuple[Metric, Metric] | None
) -> Iterator[Plot]:
    every = all_traces(study, looks)
    if every is not None:
        yield every
    for trace in range(len(study.traces)):
        yield from lines.by_load(study, looks, trace)
        yield from lines.over_time(study, evidence, looks, trace)
        found = charts.pareto(study, looks, trace, pareto) if pareto else None
        if found is not None:
            yield found
        waiting = charts.reasons(study, evidence, looks, trace)
        if waiting is not None:
            yield waiting
        yield from charts.seeds(study, looks, trace)
        yield from heat_maps(study, evidence, looks, trace)
