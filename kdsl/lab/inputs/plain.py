"""Workloads over time as the input of runs without time: pods arrive one after the other, and none ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kdsl.base.diagnostic import Diagnostic, Severity, has_errors
from kdsl.base.errors import KdslError
from kdsl.base.garbage import growing_heap
from kdsl.base.resources import CPU, MEMORY
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.selectors import Operator
from kdsl.cluster.read.codes import InputCode
from kdsl.lab.inputs.reading import Reading
from kdsl.lab.inputs.sources import OtherTrace, TraceForm, read_timed
from kdsl.lab.timed import TimedWorkload
from kdsl.lab.traces import CARD, Trace, TraceNode, TracePod, typical_pods
from kdsl.sim.gaps import gaps
from kdsl.sim.openb import GPU_MILLI, MODEL_LABEL
from kdsl.sim.workload import Workload

_MIB = 2**20


Read = Callable[..., tuple[Workload, tuple[Diagnostic, ...]]]


def reader_of(form: str) -> Read:
    """Return the reader of a form of traces, with the arguments of those of `kdsl.sim.workload`."""

    def read(
        cluster: Sequence[str], pods: Sequence[str], *, keeps_manifests: bool = False
    ) -> tuple[Workload, tuple[Diagnostic, ...]]:
        if len(cluster) != 1 or pods:
            raise KdslError(f"--format {form} takes one --cluster, which has the pods, too")
        with growing_heap():
            reading = read_timed(
                OtherTrace(TraceForm(form), Path(cluster[0])), keeps_manifests=keeps_manifests
            )
            workload, found = without_time(reading)
        return workload, found if has_errors(found) else (*found, *gaps(workload))

    return read


def without_time(reading: Reading) -> tuple[Workload, tuple[Diagnostic, ...]]:
    """Return a workload with the nodes of the start and all pods in order of arrival.

    A warning counts the changes of nodes that are left out.
    """
    timed = reading.workload
    pending = [arrival.pod for arrival in timed.arrivals]
    workload = Workload(timed.nodes, timed.placed, pending, timed.catalog, reading.manifests)
    return workload, (*reading.diagnostics, *left_out(timed))


def left_out(timed: TimedWorkload) -> tuple[Diagnostic, ...]:
    """Return the warning about the parts that a run without time leaves out."""
    if not timed.node_changes:
        return ()
    count = len(timed.node_changes)
    changes = "1 change of a node is" if count == 1 else f"{count:,} changes of nodes are"
    title = f"{changes} left out: a run without time has the nodes of the start"
    return (Diagnostic(InputCode.INCOMPLETE, title, severity=Severity.WARNING),)


def plain_trace(timed: TimedWorkload) -> Trace:
    """Return a trace whose pods and nodes keep their full specs; cards are `nvidia.com/gpu-milli`.

    Names of pods are `namespace/name`.
    """
    pods = tuple(_pod(arrival.pod) for arrival in timed.arrivals)
    nodes = tuple(map(_node, timed.nodes))
    return Trace(nodes, pods, typical_pods(pods), tuple(timed.placed), tuple(timed.catalog))


def _pod(info: PodInfo) -> TracePod:
    parts = info.requests.amount(GPU_MILLI)
    cards = -(-parts // CARD)
    share = 0 if not parts else parts if parts < CARD else CARD
    memory = -(-info.requests.amount(MEMORY) // _MIB)
    models = "|".join(_models(info)) if parts else ""
    return TracePod(info.key, info.requests.amount(CPU), memory, cards, share, models, info)


def _models(info: PodInfo) -> list[str]:
    """Return the models that the required node affinity of a pod allows; none for any."""
    affinity = info.required_node_affinity
    if affinity is None or len(affinity.terms) != 1:
        return []
    found = [
        one for one in affinity.terms[0].labels if one.key == MODEL_LABEL and one.operator is Operator.IN
    ]
    return sorted(found[0].values) if len(found) == 1 else []


def _node(facts: NodeFacts) -> TraceNode:
    allocatable = facts.allocatable
    cards = allocatable.amount(GPU_MILLI) // CARD
    model = facts.labels.get(MODEL_LABEL, "")
    return TraceNode(
        facts.name, allocatable.amount(CPU), allocatable.amount(MEMORY) // _MIB, cards, model, facts
    )
