"""A sweep: all runs of an experiment, on one process or several, each once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kdsl import __version__
from kdsl.base.diagnostic import has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.lab.experiment import Experiment, Planned, TraceFiles
from kdsl.lab.results import ResultFolder, arrow, digest_of, rows_of
from kdsl.lab.rules import rules_of
from kdsl.lab.running import run
from kdsl.lab.traces import Trace, prepared, read_trace


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
    jobs = [_Job(experiment, planned, digest, folder) for planned, digest in _digests(experiment)]
    missing = [job for job in jobs if not results.has(job.digest)]
    failures: list[Failure] = []
    with watch(len(missing)) as advance:
        for failure in _done(missing, processes):
            if failure is not None:
                failures.append(failure)
            advance()
    rows: list[dict[str, Any]] = []
    for job in jobs:
        if results.has(job.digest):
            about = {
                "trace": job.planned.trace,
                "profile": job.planned.name,
                "parameters": json.dumps(dict(job.planned.values), sort_keys=True),
                "seed": job.planned.seed,
                "run": job.digest,
            }
            rows += rows_of(about, *results.read(job.digest), experiment.loads)
    return Sweep(len(jobs), len(jobs) - len(missing), tuple(failures), results.write_table(rows))


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
        trace = _trace(experiment.traces[planned.trace])
        checked = rules_of(contender.profile, planned.values, trace.typical, experiment.rules)
        ready = prepared(trace, planned.seed, experiment.preparation)
        result = run(checked.rules, checked.profile, ready, planned.seed, contender.tie_break)
        inputs = _inputs(experiment, planned, checked.digest)
        ResultFolder(job.folder).write(job.digest, inputs, result)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other runs go on
        return Failure(planned, f"{type(error).__name__}: {error}")
    return None


def _digests(experiment: Experiment) -> Iterator[tuple[Planned, str]]:
    """Yield all runs with the names of their results. Rules are checked once for each trace and choice of
    values.
    """
    digests: dict[tuple[str, str, str], str] = {}
    for planned in experiment.runs():
        key = planned.trace, planned.name, json.dumps(dict(planned.values), sort_keys=True)
        if key not in digests:
            typical = _trace(experiment.traces[planned.trace]).typical
            profile = experiment.contenders[planned.name].profile
            digests[key] = rules_of(profile, planned.values, typical, experiment.rules).digest
        yield planned, digest_of(_inputs(experiment, planned, digests[key]))


def _inputs(experiment: Experiment, planned: Planned, rules: str) -> dict[str, Any]:
    """Return all that a run depends on, as plain values."""
    contender, files = experiment.contenders[planned.name], experiment.traces[planned.trace]
    return {
        "version": __version__,
        "nodes": _digest_of_file(files.nodes),
        "pods": _digest_of_file(files.pods),
        "prepare": asdict(experiment.preparation),
        "profile": contender.profile,
        "rules": rules,
        "values": dict(planned.values),
        "tieBreak": contender.tie_break.value,
        "seed": planned.seed,
    }


@lru_cache(maxsize=64)
def _trace(files: TraceFiles) -> Trace:
    trace, diagnostics = read_trace(files.nodes, files.pods)
    if has_errors(diagnostics):
        raise InvalidInputError(diagnostics)
    return trace


@lru_cache(maxsize=256)
def _digest_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
