"""Other inputs, made from those that were read: `--what-if`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.errors import InvalidInputError
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.problems import InputCode
from kdsl.explain.changes import PODS, Change, ChangeError, parse_change
from kdsl.sim.workload import Workload


def read_changes(texts: Sequence[str], workload: Workload) -> tuple[Change, ...]:
    """Read changes to a workload; raises InvalidInputError with all that is wrong with them."""
    nodes = [node.name for node in workload.nodes]
    placed = [pod.key for pod in workload.placed]
    found: list[Change] = []
    problems: list[Diagnostic] = []
    for text in texts:
        try:
            change = parse_change(text, nodes)
            if change.on == PODS and change.value not in placed:
                raise ChangeError(f"no pod `{change.value}` is placed", *did_you_mean(change.value, placed))
            found.append(change)
        except ChangeError as error:
            title = f"`{text}` is no change: {error.reason}"
            problems.append(Diagnostic(InputCode.VALUE, title, where="--what-if", help=error.help))
    if problems:
        raise InvalidInputError(problems)
    return tuple(found)


def changed(workload: Workload, pod: PodInfo, changes: Iterable[Change]) -> tuple[Workload, PodInfo]:
    """Return the workload, and `pod` of it, as they would be had the input said so from the start."""
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
