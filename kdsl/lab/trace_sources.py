"""Traces of experiments by their source: reading each once, and the digests of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.cluster.read.codes import InputCode
from kdsl.lab.experiment import Experiment, Planned, TraceFiles, TraceSource
from kdsl.lab.inputs.plain import left_out, plain_trace
from kdsl.lab.inputs.reading import Reading
from kdsl.lab.inputs.sources import OtherTrace, read_timed
from kdsl.lab.orders import OrderFiles, ordered
from kdsl.lab.traces import Trace, prepared, read_trace


@lru_cache(maxsize=64)
def trace_of(source: TraceSource) -> Trace:
    """Read a trace. Raises InvalidInputError if its files have mistakes."""
    if isinstance(source, OtherTrace):
        reading = reading_of(source)
        trace, diagnostics = plain_trace(reading.workload), reading.diagnostics
    else:
        trace, diagnostics = read_trace(source.nodes, source.pods)
    if has_errors(diagnostics):
        raise InvalidInputError(diagnostics)
    return replace(trace, warnings=diagnostics)


def input_of(experiment: Experiment, planned: Planned) -> Trace:
    """Return the pods and nodes of a run without time, in their order.

    Raises InvalidInputError if the trace or an order file has mistakes.
    """
    source = experiment.traces[planned.trace]
    if experiment.orders is not None:
        return _ordered(source, experiment.orders, planned.trace, planned.seed)
    return prepared(trace_of(source), planned.seed, experiment.preparation)


@lru_cache(maxsize=16)
def _ordered(source: TraceSource, orders: OrderFiles, trace: str, seed: int) -> Trace:
    found, diagnostics = ordered(trace_of(source), *orders.of(trace, seed))
    if has_errors(diagnostics):
        raise InvalidInputError(diagnostics)
    return found


@lru_cache(maxsize=16)
def reading_of(source: OtherTrace) -> Reading:
    """Read a trace of another form. Raises InvalidInputError if its files have mistakes."""
    reading = read_timed(source)
    if has_errors(reading.diagnostics):
        raise InvalidInputError(reading.diagnostics)
    return reading


def check_cards(source: TraceSource) -> None:
    """Raise InvalidInputError if no node of a trace has cards: a run without time measures nothing else."""
    if not trace_of(source).parts:
        title = (
            "no node of this trace has cards (`nvidia.com/gpu-milli`), and a run without time measures cards"
        )
        where = source.path if isinstance(source, OtherTrace) else source.nodes
        raise InvalidInputError([Diagnostic(InputCode.INCOMPLETE, title, where=str(where))])


def check_pods(source: TraceSource) -> None:
    """Raise InvalidInputError if a trace has no pods: its runs would be empty."""
    trace = trace_of(source)
    if not trace.pods and not trace.placed:
        where = source.path if isinstance(source, OtherTrace) else source.pods
        title = "this trace has no pods: there is nothing to measure"
        raise InvalidInputError([Diagnostic(InputCode.INCOMPLETE, title, where=str(where))])


def check_orders(experiment: Experiment) -> None:
    """Raise InvalidInputError with the mistakes of all order files of an experiment."""
    found: list[Diagnostic] = []
    for name, source in experiment.traces.items() if experiment.orders is not None else ():
        for seed in experiment.seeds:
            try:
                _ordered(source, experiment.orders, name, seed)
            except InvalidInputError as error:
                found += error.diagnostics
    if found:
        raise InvalidInputError(tuple(dict.fromkeys(found)))


def trace_warnings(sources: Iterable[TraceSource], is_timed: bool) -> tuple[Diagnostic, ...]:
    """Return the warnings about traces, for runs over time or without. Raises InvalidInputError for
    mistakes.
    """
    found: list[Diagnostic] = []
    for source in sources:
        found += trace_of(source).warnings
        if isinstance(source, OtherTrace) and not is_timed:
            found += left_out(reading_of(source).workload)
    return tuple(dict.fromkeys(found))


def source_digests(source: TraceSource) -> dict[str, Any]:
    """Return the digests of all files of a trace, as plain values. That of `nodes` identifies its nodes."""
    if isinstance(source, TraceFiles):
        return {"nodes": _digest_of_file(source.nodes), "pods": _digest_of_file(source.pods)}
    files = [[path.name, _digest_of_file(path)] for path in _files(source)]
    together = hashlib.sha256(json.dumps([source.form.value, files]).encode()).hexdigest()
    return {"nodes": together, source.form.value: files}


def order_digests(experiment: Experiment, planned: Planned) -> dict[str, Any]:
    """Return the digests of the order files of a run, as plain values; {} if there are none."""
    if experiment.orders is None:
        return {}
    pods, nodes = experiment.orders.of(planned.trace, planned.seed)
    return {"order": {"pods": _digest_of_file(pods), "nodes": _digest_of_file(nodes)}}


@lru_cache(maxsize=64)
def _files(source: OtherTrace) -> tuple[Path, ...]:
    return source.files


@lru_cache(maxsize=256)
def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
