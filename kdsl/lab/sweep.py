"""A sweep: all runs of an experiment, on one process or several, each once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kdsl import __version__
from kdsl.lab.experiment import Experiment, Planned, TraceFiles
from kdsl.lab.results import ResultFolder, arrow, digest_of, rows_of
from kdsl.lab.rules import rules_of, text_of
from kdsl.lab.running import run
from kdsl.lab.time import job as timed
from kdsl.lab.trace_sources import check_cards, source_digests, trace_of
from kdsl.lab.traces import prepared


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that ended with an error."""

    planned: Planned
    reason: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """The end of a sweep: how many runs there are, how many were there before, those that failed, and the
    table.
    """

    runs: int
    known: int
    failures: tuple[Failure, ...]
    table: Path


@dataclass(frozen=True, slots=True)
class _Job:
    """A run to do: `digest` is the name of its result."""

    experiment: Experiment
    planned: Planned
    digest: str
    folder: Path


Watch = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Opens the display of a number of runs; yields a function to call after each."""


def unwatched(runs: int) -> AbstractContextManager[Callable[[], None]]:
    """Display nothing."""
    return nullcontext(lambda: None)


def sweep(experiment: Experiment, folder: Path, processes: int = 1, watch: Watch = unwatched) -> Sweep:
    """Make the runs that a folder does not have yet, and write the table of all runs.

    A run that fails does not end the sweep. Raises InvalidInputError if the rules, parameters or traces of
    the experiment have mistakes: nothing runs then.
    """
    arrow()
    results = ResultFolder(folder)
    texts: dict[tuple[str, str], str] = {}
    jobs = [_Job(experiment, planned, digest, folder) for planned, digest in digests_of(experiment, texts)]
    _write_what_reports_show(experiment, results, texts)
    is_timed = experiment.time is not None
    missing = [job for job in jobs if not results.has(job.digest, is_timed)]
    failures: list[Failure] = []
    with watch(len(missing)) as advance:
        for failure in _done(missing, processes):
            if failure is not None:
                failures.append(failure)
            advance()
    rows: list[dict[str, Any]] = []
    for job in jobs:
        if results.has(job.digest, is_timed):
            about = {
                "trace": job.planned.trace,
                "profile": job.planned.name,
                "parameters": json.dumps(dict(job.planned.parameters), sort_keys=True),
                "seed": job.planned.seed,
                "run": job.digest,
            }
            if is_timed:
                rows.append({**about, **timed.read_row(results, job.digest)})
            else:
                rows += rows_of(about, *results.read(job.digest), experiment.loads)
    table = timed.write_table(results, rows) if is_timed else results.write_table(rows)
    return Sweep(len(jobs), len(jobs) - len(missing), tuple(failures), table)


def _write_what_reports_show(
    experiment: Experiment, results: ResultFolder, texts: Mapping[tuple[str, str], str]
) -> None:
    for (rules, profile), text in texts.items():
        results.write_rules(rules, profile, text)
    for source in experiment.traces.values():
        results.write_nodes(source_digests(source)["nodes"], trace_of(source).nodes)


def _done(jobs: Sequence[_Job], processes: int) -> Iterator[Failure | None]:
    """Do jobs, and yield for each, as it ends, its failure."""
    if processes <= 1 or len(jobs) <= 1:
        yield from map(_do, jobs)
        return
    with get_context("spawn").Pool(min(processes, len(jobs))) as pool:
        yield from pool.imap_unordered(_do, jobs)


def _do(job: _Job) -> Failure | None:
    experiment, planned = job.experiment, job.planned
    contender = experiment.contenders[planned.name]
    try:
        trace = trace_of(experiment.traces[planned.trace])
        checked = rules_of(contender.profile, planned.values, trace.typical, experiment.rules, trace.supply)
        inputs = _inputs(experiment, planned, checked.digest)
        if experiment.time is not None:
            source = experiment.traces[planned.trace]
            over_time = timed.run_job(
                experiment.time, source, planned, trace, checked.rules, checked.profile, contender.tie_break
            )
            timed.write(ResultFolder(job.folder), job.digest, inputs, over_time)
            return None
        ready = prepared(trace, planned.seed, experiment.preparation)
        result = run(checked.rules, checked.profile, ready, planned.seed, contender.tie_break)
        ResultFolder(job.folder).write(job.digest, inputs, result)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other runs go on
        return Failure(planned, f"{type(error).__name__}: {error}")
    return None


def digests_of(
    experiment: Experiment, texts: dict[tuple[str, str], str] | None = None
) -> Iterator[tuple[Planned, str]]:
    """Yield all runs with the names of their results. Rules are checked once for each trace and choice of
    values; their texts, by digest and profile, are added to `texts`.
    """
    digests: dict[tuple[str, str, str], str] = {}
    if experiment.time is not None:
        timed.check(experiment.time, experiment.traces.values())
    else:
        for each in experiment.traces.values():
            check_cards(each)
    for planned in experiment.runs():
        key = planned.trace, planned.name, json.dumps(dict(planned.values), sort_keys=True)
        if key not in digests:
            trace = trace_of(experiment.traces[planned.trace])
            profile = experiment.contenders[planned.name].profile
            checked = rules_of(profile, planned.values, trace.typical, experiment.rules, trace.supply)
            digests[key] = checked.digest
            if texts is not None:
                texts[checked.digest, profile] = text_of(checked)
        yield planned, digest_of(_inputs(experiment, planned, digests[key]))


def _inputs(experiment: Experiment, planned: Planned, rules: str) -> dict[str, Any]:
    """Return all that a run depends on, as plain values."""
    contender, source = experiment.contenders[planned.name], experiment.traces[planned.trace]
    how: dict[str, Any]
    if experiment.time is None:
        how = {"prepare": asdict(experiment.preparation)}
    else:
        generation = source.generation if isinstance(source, TraceFiles) else None
        how = {"time": experiment.time.fixed(planned.sizes), "generate": timed.plain(generation)}
    return {
        "version": __version__,
        **source_digests(source),
        **how,
        "profile": contender.profile,
        "rules": rules,
        "values": dict(planned.values),
        "tieBreak": contender.tie_break.value,
        "seed": planned.seed,
    }
