"""Explains one decision of a run: the run is done again up to the pod, and its rules are asked why."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kdsl.app import Settings
from kdsl.base.diagnostic import did_you_mean
from kdsl.base.errors import KdslError
from kdsl.explain.explanation import Explanation
from kdsl.lab.experiment import Experiment, Planned
from kdsl.lab.jobs import rules_for
from kdsl.lab.results import digest_of
from kdsl.lab.running import ALL_NODES, workload_of
from kdsl.lab.sweep import inputs_of
from kdsl.lab.trace_sources import input_of
from kdsl.sim.run import explain

_SHORT: Final = 12
"""So many characters of a digest are shown."""
_MOST: Final = 20
"""So many runs are listed."""


def explained(experiment: Experiment, run: str, pod: str) -> Explanation:
    """Explain the decision about a pod in the run whose digest begins with `run`.

    Raises KdslError if the experiment has no such run, the run no such pod, and for a run over time.
    """
    planned = planned_run(experiment, run)
    if experiment.time is not None:
        raise KdslError(
            "this is a run over time: only runs whose pods arrive one after the other are explained; the"
            " reasons why its pods wait are in the column `reason` of its file, and in `kdsl lab report`"
        )
    contender = experiment.contenders[planned.name]
    checked = rules_for(experiment, planned)
    trace = input_of(experiment, planned)
    names = [each.name for each in trace.pods]
    if pod not in names:
        raise KdslError("; ".join((f"the run has no pod `{pod}`", *did_you_mean(pod, names))))
    workload = workload_of(replace(trace, pods=trace.pods[: names.index(pod) + 1]))
    settings = Settings(
        profile=checked.profile, seed=planned.seed, tie_break=contender.tie_break, percentage=ALL_NODES
    )
    return explain(checked.rules, workload, settings, workload.pending[-1])


def planned_run(experiment: Experiment, run: str) -> Planned:
    """Return the run whose digest begins with `run`; raise KdslError if it is not exactly one."""
    runs = {digest_of(inputs): planned for planned, inputs in inputs_of(experiment)}
    found = {digest: planned for digest, planned in runs.items() if digest.startswith(run)}
    if len(found) == 1:
        return next(iter(found.values()))
    title = f"{len(found)} runs of the experiment begin with `{run}`"
    if not found:
        title = f"the experiment has no run `{run}`: maybe its tables or rules, or kdsl, changed since it ran"
    listed = found or runs
    lines = [f"  {digest[:_SHORT]}  {planned}" for digest, planned in listed.items()][:_MOST]
    if len(listed) > _MOST:
        lines.append(f"  … and {len(listed) - _MOST} more")
    raise KdslError("\n".join((title, *lines)))
