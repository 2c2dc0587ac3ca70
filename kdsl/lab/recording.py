"""Records a run of an experiment: the run is done again, and its decisions are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from kdsl.app import Settings
from kdsl.base.errors import KdslError
from kdsl.base.garbage import settled_heap
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.read.reader import Manifest
from kdsl.lab.experiment import Experiment, TraceFiles, TraceSource
from kdsl.lab.explaining import planned_run
from kdsl.lab.inputs.sources import read_timed
from kdsl.lab.jobs import rules_for
from kdsl.lab.running import ALL_NODES, out_of_order, workload_of
from kdsl.lab.trace_sources import input_of
from kdsl.lab.traces import Trace
from kdsl.records.files import open_whole_record
from kdsl.records.manifests import ObjectId, pod_manifest
from kdsl.sim.openb_manifests import openb_manifests
from kdsl.sim.run import simulated_engine
from kdsl.sim.workload import Workload

Watch = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Opens the display of so many decisions; the function that it yields is called after each."""


def record(experiment: Experiment, run: str, file: Path, watch: Watch) -> int:
    """Write the run whose digest begins with `run` to a file; return the number of decisions.

    Raises KdslError if the experiment has no such run, for a run over time, for a run whose pods are not
    decided in order of arrival, and for a file that cannot be written: then no file is written.
    """
    planned = planned_run(experiment, run)
    if experiment.time is not None:
        raise KdslError(
            "this is a run over time: only runs whose pods arrive one after the other are recorded"
        )
    contender = experiment.contenders[planned.name]
    checked = rules_for(experiment, planned)
    trace = input_of(experiment, planned)
    plain = workload_of(trace)
    manifests = _manifests(experiment.traces[planned.trace], trace, plain)
    workload = replace(plain, manifests=manifests)
    settings = Settings(
        profile=checked.profile, seed=planned.seed, tie_break=contender.tie_break, percentage=ALL_NODES
    )
    with (
        watch(len(workload.pending)) as advance,
        open_whole_record(file) as write,
        settled_heap(),
        simulated_engine(checked.rules, workload, settings, write) as (engine, _, _),
    ):
        for pod, decision in zip(workload.pending, engine.decisions(workload.pending), strict=False):
            if decision.pod != pod.key:
                raise out_of_order(decision.pod, pod.key)
            if not decision.node:
                # Each pod is tried once.
                engine.leave_queue(pod)
            advance()
    return len(workload.pending)


def _manifests(source: TraceSource, trace: Trace, workload: Workload) -> Mapping[ObjectId, Manifest]:
    """Return the objects of a run as written, under the names that they have in the run.

    `workload` is that of `trace`, which was prepared from `source`.
    """
    if isinstance(source, TraceFiles):
        return openb_manifests(workload.nodes, workload.pending)
    written = read_timed(source, keeps_manifests=True).manifests
    found = {key: each for key, each in written.items() if key[0] not in (Node.KIND, Pod.KIND)}
    for node in trace.nodes:
        assert node.facts is not None
        found[Node.KIND, node.name] = _renamed(written[Node.KIND, node.facts.name], name=node.name)
    for pod, info in zip(trace.pods, workload.pending, strict=True):
        assert pod.info is not None
        original = written[Pod.KIND, pod.info.key]
        found[Pod.KIND, info.key] = _renamed(original, name=info.name, uid=info.uid)
    for placed in workload.placed:
        found[Pod.KIND, placed.key] = pod_manifest(written[Pod.KIND, placed.key], placed.node_name)
    return found


def _renamed(manifest: Manifest, **metadata: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], **metadata}}
