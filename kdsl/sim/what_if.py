"""Changed inputs of `--what-if`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.objects.pod import PodInfo
from kdsl.explain.changes import PODS, WhatIfChange
from kdsl.explain.supposed import parse_changes, without_effect
from kdsl.sim.workload import Workload


def read_changes(texts: Sequence[str], workload: Workload) -> tuple[WhatIfChange, ...]:
    """Read changes to a workload; raise InvalidInputError with all errors."""
    return parse_changes(texts, [node.name for node in workload.nodes], [pod.key for pod in workload.placed])


def changed(workload: Workload, pod: PodInfo, changes: Iterable[WhatIfChange]) -> tuple[Workload, PodInfo]:
    """Return the workload, and `pod` of it, with changes applied as if the input contained them."""
    other = pod
    nodes, gone = list(workload.nodes), set()
    for change in changes:
        other = change.to_pod(other)
        nodes = [change.to_node(node) for node in nodes]
        if change.on == PODS:
            gone.add(change.value)
    return replace(
        workload,
        nodes=nodes,
        placed=[each for each in workload.placed if each.key not in gone],
        pending=[other if each.key == pod.key else each for each in workload.pending],
    ), other


def idle_changes(workload: Workload, pod: PodInfo, changes: Iterable[WhatIfChange]) -> Iterator[Diagnostic]:
    """Yield a warning for each change that leaves everything as it is after the changes before it."""
    for change in changes:
        after, other = changed(workload, pod, (change,))
        if change.on != PODS and other == pod and after.nodes == workload.nodes:
            yield without_effect(change)
        workload, pod = after, other
