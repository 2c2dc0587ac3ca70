"""Runs over time in a sweep: from a trace of an experiment to Parquet files.

A run has two files: `runs/DIGEST.parquet` with a row for each pod and `series/DIGEST.parquet` with a row for
each sample.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.errors import InvalidInputError, gathered
from kdsl.base.times import SECOND
from kdsl.check.model.rule_set import RuleSet
from kdsl.cycle.decision import TieBreak
from kdsl.lab.inputs.sources import OtherTrace
from kdsl.lab.results import INPUTS, ResultFolder, arrow
from kdsl.lab.running import workload_of
from kdsl.lab.time.distributions import Constant, Empirical, Exponential, Lognormal, Pareto, Weibull
from kdsl.lab.time.generating import FitTo, Generation, generated
from kdsl.lab.time.meter import Sample
from kdsl.lab.time.openb import PodTimes, read_times, timed_trace
from kdsl.lab.time.pod_log import PodLog
from kdsl.lab.time.run import TimedRun, run_over_time
from kdsl.lab.time.spec import TimeSpec
from kdsl.lab.timed import TimedWorkload
from kdsl.lab.trace_sources import reading_of, trace_of
from kdsl.lab.traces import Trace

if TYPE_CHECKING:
    from kdsl.lab.experiment import Planned, TraceFiles, TraceSource

_SUMMARY: Final = b"kdsl.summary"
_TEXTS: Final = ("trace", "profile", "parameters", "run")
_COUNTS: Final = ("seed", "pods", "started", "pending", "evictions", "nodes_max")
_ABOUT: Final = ("trace", "profile", "parameters", "seed", "run")
_COLUMNS: Final = (
    *(*_ABOUT, "pods", "started", "pending", "evictions"),
    *("waiting_mean", "waiting_p50", "waiting_p90", "waiting_p99", "allocation_mean", "fragmentation_mean"),
    *("nodes_mean", "nodes_max", "cost", "end"),
)
_WHOLE: Final = ("pending", "nodes", "evictions")
"""The columns of samples that are whole numbers."""


def check(time: TimeSpec, source: TraceSource) -> None:
    """Raise InvalidInputError with all mistakes if the trace or `time` cannot be run, whatever is chosen."""
    found: list[Diagnostic] = []
    if isinstance(source, OtherTrace):
        facts = reading_of(source).workload.nodes
    else:
        facts = workload_of(trace_of(source)).nodes
        if _needs_times(source):
            with gathered(found):
                _times(source.pods)
    nodes = {node.name: node for node in facts}
    for sizes in time.sizes():
        with gathered(found):
            time.plan(sizes, nodes)
    if found:
        raise InvalidInputError(found)


def run_job(
    time: TimeSpec,
    source: TraceSource,
    planned: Planned,
    trace: Trace,
    rules: RuleSet,
    profile: str,
    tie_break: TieBreak,
) -> TimedRun:
    """Run one run of an experiment over time."""
    workload = workload_over_time(source, trace, planned.seed)
    plan = time.plan(planned.sizes, {node.name: node for node in workload.nodes})
    workload = _faster(workload, time.speed(planned.sizes))
    if not time.keeps_nodes:
        workload = replace(workload, nodes=())
    return run_over_time(rules, profile, workload, plan, planned.seed, tie_break, trace.typical)


def workload_over_time(source: TraceSource, trace: Trace, seed: int) -> TimedWorkload:
    """Return a trace over time, as recorded or generated."""
    if isinstance(source, OtherTrace):
        return reading_of(source).workload
    times = _times(source.pods) if _needs_times(source) else {}
    if source.generation is None:
        return timed_trace(trace, times)
    return generated(trace, times, source.generation, seed)


def _needs_times(source: TraceFiles) -> bool:
    how = source.generation
    return how is None or isinstance(how.arrivals, FitTo) or isinstance(how.durations, FitTo)


@lru_cache(maxsize=64)
def _times(pods: Path) -> Mapping[str, PodTimes]:
    times, diagnostics = read_times(pods)
    if has_errors(diagnostics):
        raise InvalidInputError(diagnostics)
    return times


def _faster(workload: TimedWorkload, speed: float) -> TimedWorkload:
    """Let everything come so many times as fast. Durations stay, as does the patience of owners."""
    if speed == 1:
        return workload
    arrivals = [
        replace(
            each,
            at=each.at / speed,
            deleted=None if each.deleted is None else each.deleted - each.at + each.at / speed,
        )
        for each in workload.arrivals
    ]
    changes = [replace(each, at=each.at / speed) for each in workload.node_changes]
    return replace(workload, arrivals=arrivals, node_changes=changes)


def plain(generation: Generation | None) -> Any:
    """Return how a trace is generated as plain values."""
    if generation is None:
        return None
    found = asdict(generation)
    for key in ("arrivals", "durations"):
        each: Constant | Empirical | Exponential | Lognormal | Weibull | Pareto | FitTo = getattr(
            generation, key
        )
        found[key] = [type(each).__name__, found[key]]
    return found


# ---- results -----------------------------------------------------------------------------------------------


def write(folder: ResultFolder, digest: str, inputs: Mapping[str, Any], run: TimedRun) -> None:
    """Write the pods and samples of a run."""
    pa = arrow()
    series = {
        each.name: pa.array(
            [getattr(sample, each.name) for sample in run.samples],
            pa.int64() if each.name in _WHOLE else pa.float64(),
        )
        for each in fields(Sample)
    }
    folder.put(folder.series_of(digest), pa.table(series))
    pods = [pod for pod in run.pods if pod.arrived is not None or pod.started is not None]
    table = pa.table(
        {
            "pod": pa.array([pod.pod.name for pod in pods], pa.string()),
            "node": pa.array([pod.node for pod in pods], pa.string()),
            "cards": pa.array([list(pod.cards) for pod in pods], pa.list_(pa.int32())),
            "reason": pa.array([pod.reason for pod in pods], pa.string()),
            "arrived_at": pa.array([_seconds(pod.arrived) for pod in pods], pa.float64()),
            "started_at": pa.array([_seconds(pod.started) for pod in pods], pa.float64()),
            "ended_at": pa.array([_seconds(pod.ended) for pod in pods], pa.float64()),
            "waiting": pa.array([waiting(pod) for pod in pods], pa.float64()),
            "evictions": pa.array([pod.evictions for pod in pods], pa.int64()),
        }
    )
    about = {
        INPUTS: json.dumps({**inputs}, sort_keys=True).encode(),
        _SUMMARY: json.dumps(summary(run), sort_keys=True).encode(),
    }
    # Last: a run is there when this file is.
    folder.put(folder.file_of(digest), table.replace_schema_metadata(about))


def read_row(folder: ResultFolder, digest: str) -> dict[str, Any]:
    """Return the figures of a run in the table of all runs.

    Raises OSError, ArrowException, KeyError, TypeError, ValueError or RecursionError if its file is not one
    that `write` wrote.
    """
    with folder.opened(folder.file_of(digest)) as file:
        about = arrow().parquet.read_schema(file).metadata
    found = json.loads(about[_SUMMARY])
    figures = {name: found[name] for name in _COLUMNS[len(_ABOUT) :]}
    for name, value in figures.items():
        is_number = type(value) is int or (type(value) is float and isfinite(value) and name not in _COUNTS)
        if not is_number and (value is not None or name in _COUNTS):
            raise ValueError(f"`{name}` of run {digest} is {value}")
    return figures


def write_table(folder: ResultFolder, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write the table of all runs; return its path."""
    pa = arrow()
    types = {**dict.fromkeys(_TEXTS, pa.string()), **dict.fromkeys(_COUNTS, pa.int64())}
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in _COLUMNS])
    path = folder.path / "results.parquet"
    folder.put(path, pa.Table.from_pylist(list(rows), schema))
    return path


def summary(run: TimedRun) -> dict[str, Any]:
    """Return the figures of a run. Pods that were there from the start count in none but `evictions`."""
    pods = [pod for pod in run.pods if pod.arrived is not None]
    waits = sorted(wait for pod in pods if (wait := waiting(pod)) is not None)
    return {
        "pods": len(pods),
        "started": len(waits),
        "pending": sum(pod.waiting_since is not None for pod in pods),
        "evictions": sum(pod.evictions for pod in run.pods),
        "waiting_mean": sum(waits) / len(waits) if waits else None,
        **{f"waiting_p{share}": percentile(waits, share) for share in (50, 90, 99)},
        "allocation_mean": run.allocation_mean,
        "fragmentation_mean": run.fragmentation_mean,
        "nodes_mean": run.nodes_mean,
        "nodes_max": run.nodes_max,
        "cost": run.cost,
        "end": run.end,
    }


def waiting(pod: PodLog) -> float | None:
    """Return how many seconds a pod waited until it had its last node, None if it never had one."""
    return None if pod.started is None or pod.arrived is None else pod.waited / SECOND


def percentile(ordered: Sequence[float], share: int) -> float | None:
    """Return the least of ordered values that `share` percent of them do not exceed, None of no values."""
    return ordered[max(0, -(-share * len(ordered) // 100) - 1)] if ordered else None


def _seconds(time: int | None) -> float | None:
    return None if time is None else time / SECOND
