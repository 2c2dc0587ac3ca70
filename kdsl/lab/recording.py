"""Records a run of an experiment: the run is done again, and its decisions are written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from kdsl.app import Settings
from kdsl.base.errors import KdslError
from kdsl.base.heap import settled_heap
from kdsl.lab.experiment import Experiment
from kdsl.lab.explaining import planned_run
from kdsl.lab.rules import rules_of
from kdsl.lab.running import ALL_NODES, workload_of
from kdsl.lab.trace_sources import input_of, trace_of
from kdsl.sim.openb_manifests import openb_manifests
from kdsl.sim.run import simulated_engine
from kdsl.trace.writing import open_trace

Watch = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Opens the display of so many decisions; the function that it yields is called after each."""


def record(experiment: Experiment, run: str, file: Path, watch: Watch) -> int:
    """Write the run whose digest begins with `run` to a file; return the number of decisions.

    Raises KdslError if the experiment has no such run, for a run over time, and for a file that cannot be
    written.
    """
    planned = planned_run(experiment, run)
    if experiment.time is not None:
        raise KdslError(
            "this is a run over time: only runs whose pods arrive one after the other are recorded"
        )
    contender = experiment.contenders[planned.name]
    source = trace_of(experiment.traces[planned.trace])
    checked = rules_of(contender.profile, planned.values, source.typical, experiment.rules, source.supply)
    plain = workload_of(input_of(experiment, planned))
    workload = replace(plain, manifests=openb_manifests(plain.nodes, plain.pending))
    settings = Settings(
        profile=checked.profile, seed=planned.seed, tie_break=contender.tie_break, percentage=ALL_NODES
    )
    with (
        watch(len(workload.pending)) as advance,
        open_trace(file) as write,
        settled_heap(),
        simulated_engine(checked.rules, workload, settings, write) as (engine, _, _),
    ):
        for pod, decision in zip(workload.pending, engine.decisions(workload.pending), strict=False):
            if not decision.node:
                # Each pod is tried once.
                engine.leave_queue(pod)
            advance()
    return len(workload.pending)
