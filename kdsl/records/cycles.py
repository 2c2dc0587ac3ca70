"""Reads a record up to one cycle: the cluster, pod and engine state before it, and its decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kdsl.cluster.api.objects import Pod
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.read.reader import Manifest
from kdsl.records.lines import (
    Change,
    End,
    EngineLine,
    Placed,
    Put,
    RecordError,
    Removed,
    SettledLine,
    Start,
    lines_of,
)
from kdsl.records.manifests import ObjectId, manifest_id, pod_manifest


@dataclass(frozen=True, slots=True)
class RecordedCycle:
    """The inputs of one decision. `objects` are the cluster, in their order of arrival."""

    number: int
    objects: tuple[Manifest, ...]
    pod: Manifest
    engine: EngineLine
    decision: dict[str, Any]


def read_cycle(file: InputFile, number: int) -> RecordedCycle:
    """Return the cycle of this number, from 0 on; raise RecordError if there is none."""
    cluster = _Cluster()
    last = -1
    for at, line in lines_of(file):
        if at == 1 and not isinstance(line, Start):
            raise RecordError(f"`{file.name}` is no record: it does not begin with the cluster")
        if isinstance(line, Start):
            cluster.take(line)
            continue
        cluster.apply(line.changes)
        if isinstance(line, SettledLine | End):
            continue
        cluster.store_pods(line.pod, *line.engine.promised)
        last = line.cycle
        if line.cycle == number:
            objects = tuple(cluster.objects.values())
            return RecordedCycle(number, objects, line.pod, line.engine, line.decision)
    known = f"its cycles are 0 to {last}" if last >= 0 else "it holds no cycle"
    raise RecordError(f"`{file.name}` holds no cycle {number}: {known}")


class _Cluster:
    """The objects of a record, with its changes applied in order."""

    def __init__(self) -> None:
        self.objects: dict[ObjectId, Manifest] = {}
        self._pods: dict[str, Manifest] = {}

    def take(self, line: Start) -> None:
        for manifest in line.objects:
            key = manifest_id(manifest)
            self.objects[key] = manifest
            if key[0] == Pod.KIND:
                self._pods[key[1]] = manifest

    def store_pods(self, *pods: Manifest) -> None:
        """Store pods that later changes may place."""
        for manifest in pods:
            self._pods[manifest_id(manifest)[1]] = manifest

    def apply(self, changes: list[Change]) -> None:
        for change in changes:
            match change:
                case Removed():
                    self.objects.pop((change.object_kind, change.key), None)
                case Put():
                    self.objects[manifest_id(change.object)] = change.object
                case Placed():
                    if change.pod not in self._pods:
                        raise RecordError(f"pod `{change.pod}` is placed before it was tried")
                    source = self._pods[change.pod]
                    # A pod that moves becomes the last one of its node.
                    self.objects.pop((Pod.KIND, change.pod), None)
                    self.objects[Pod.KIND, change.pod] = pod_manifest(
                        source, change.node, annotations=change.annotations
                    )
