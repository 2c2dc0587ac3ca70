"""A sweep: all runs of an experiment, on one process or several, each once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from kdsl import __version__
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError, gathered
from kdsl.cluster.read.codes import InputCode
from kdsl.config.codes import ConfigCode
from kdsl.lab.executors import Executor, InProcess
from kdsl.lab.experiment import Experiment, Planned, TraceFiles
from kdsl.lab.folder_lock import locked
from kdsl.lab.jobs import Failure, Job, rules_for
from kdsl.lab.results import ResultFolder, arrow, digest_of, rows_of
from kdsl.lab.rules import text_of
from kdsl.lab.time import job as timed
from kdsl.lab.trace_sources import (
    check_cards,
    check_orders,
    check_pods,
    order_digests,
    source_digests,
    trace_of,
)
from kdsl.lang.codes import LangCode


@dataclass(frozen=True, slots=True)
class Sweep:
    """The end of a sweep: how many runs there are, how many were there before, those that failed, and the
    table.
    """

    runs: int
    known: int
    failures: tuple[Failure, ...]
    table: Path


IN_PROCESS: Final = InProcess()
_OF_FILES: Final = (InputCode.UNREADABLE, LangCode.UNREADABLE, ConfigCode.UNREADABLE)

Watch = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Opens the display of a number of runs; yields a function to call after each."""


def unwatched(runs: int) -> AbstractContextManager[Callable[[], None]]:
    """Display nothing."""
    return nullcontext(lambda: None)


def sweep(
    experiment: Experiment, folder: Path, executor: Executor = IN_PROCESS, watch: Watch = unwatched
) -> Sweep:
    """Make the runs that a folder does not have yet, and write the table of all runs.

    A run that fails does not end the sweep; its traceback is in `failures/DIGEST.txt` until it succeeds. A
    result that cannot be read is made again. Raises InvalidInputError if the rules, parameters or traces of
    the experiment have mistakes, or if another process writes to the folder: nothing runs then.
    """
    arrow()
    results = ResultFolder(folder)
    texts: dict[tuple[str, str], str] = {}
    jobs = [
        Job(experiment, planned, digest_of(inputs), inputs, folder)
        for planned, inputs in inputs_of(experiment, texts)
    ]
    with locked(folder):
        return _swept(experiment, results, jobs, texts, executor, watch)


def _swept(
    experiment: Experiment,
    results: ResultFolder,
    jobs: Sequence[Job],
    texts: Mapping[tuple[str, str], str],
    executor: Executor,
    watch: Watch,
) -> Sweep:
    """Make the runs of `jobs` that are not there, and write the table; the lock of the folder is held."""
    _write_what_reports_show(experiment, results, texts)
    rows = {job.digest: found for job in jobs if (found := _rows(results, job)) is not None}
    missing = [job for job in jobs if job.digest not in rows]
    failures: list[Failure] = []
    # Closing ends the processes of an executor, whatever is raised here.
    with watch(len(missing)) as advance, closing(executor.run(missing)) as ended:
        for failure in ended:
            if failure is not None:
                failures.append(failure)
                results.write_failure(failure.digest, failure.details or failure.reason)
            advance()
    for job in missing:
        rows[job.digest] = _rows(results, job) or []
    results.remove_failures(digest for digest, found in rows.items() if found)
    table = [row for job in jobs for row in rows[job.digest]]
    write = timed.write_table if experiment.time is not None else ResultFolder.write_table
    return Sweep(len(jobs), len(jobs) - len(missing), tuple(failures), write(results, table))


def _rows(results: ResultFolder, job: Job) -> list[dict[str, Any]] | None:
    """Return the rows of a run in the table of all runs; None if it is not there or cannot be read."""
    is_timed = job.experiment.time is not None
    if not results.has(job.digest, is_timed):
        return None
    about = {
        "trace": job.planned.trace,
        "profile": job.planned.name,
        "parameters": json.dumps(dict(job.planned.parameters), sort_keys=True),
        "seed": job.planned.seed,
        "run": job.digest,
    }
    try:
        if is_timed:
            return [{**about, **timed.read_row(results, job.digest)}]
        return rows_of(about, *results.read(job.digest), job.experiment.loads)
    except (arrow().ArrowException, OSError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _write_what_reports_show(
    experiment: Experiment, results: ResultFolder, texts: Mapping[tuple[str, str], str]
) -> None:
    for (rules, profile), text in texts.items():
        results.write_rules(rules, profile, text)
    for source in experiment.traces.values():
        results.write_nodes(source_digests(source)["nodes"], trace_of(source).nodes)


def inputs_of(
    experiment: Experiment, texts: dict[tuple[str, str], str] | None = None
) -> Iterator[tuple[Planned, dict[str, Any]]]:
    """Yield all runs with all that they depend on, as plain values. Rules are checked once for each trace and
    choice of values; their texts, by digest and profile, are added to `texts`.

    Raises InvalidInputError with the mistakes of all traces and rules.
    """
    found: list[Diagnostic] = []
    for source in experiment.traces.values():
        with gathered(found):
            check_pods(source)
            if experiment.time is None:
                check_cards(source)
            else:
                timed.check(experiment.time, source)
    if experiment.time is None and not found:
        with gathered(found):
            check_orders(experiment)
    digests: dict[tuple[str, str, str], str] = {}
    runs = {_rules_key(planned): planned for planned in experiment.runs()}
    for key, planned in runs.items():
        with gathered(found):
            checked = rules_for(experiment, planned)
            digests[key] = checked.digest
            if texts is not None:
                texts[checked.digest, experiment.contenders[planned.name].profile] = text_of(checked)
    if found:
        raise InvalidInputError([_placed(each, experiment) for each in found])
    for planned in experiment.runs():
        yield planned, _inputs(experiment, planned, digests[_rules_key(planned)])


def _placed(problem: Diagnostic, experiment: Experiment) -> Diagnostic:
    """Return a mistake of a whole file with the place where the experiment names it."""
    span = experiment.places.get(problem.where) if problem.span is None else None
    if span is None or problem.code not in _OF_FILES:
        return problem
    return replace(problem, span=span, where="")


def _rules_key(planned: Planned) -> tuple[str, str, str]:
    return planned.trace, planned.name, json.dumps(dict(planned.values), sort_keys=True)


def _inputs(experiment: Experiment, planned: Planned, rules: str) -> dict[str, Any]:
    """Return all that a run depends on, as plain values."""
    contender, source = experiment.contenders[planned.name], experiment.traces[planned.trace]
    how: dict[str, Any]
    if experiment.time is None:
        how = {"prepare": asdict(experiment.preparation), **order_digests(experiment, planned)}
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
