"""Reads a trace up to one cycle: the cluster, pod and engine state before it, and its decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kdsl.cluster.api.objects import Pod
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.read.reader import Manifest
from kdsl.trace.lines import (
    Change,
    End,
    EngineLine,
    Line,
    Placed,
    Put,
    Removed,
    Settled,
    Start,
    read_line,
)
from kdsl.trace.manifests import ObjectId, manifest_id, pod_manifest

MAX_LINE: Final = 2**28
"""The largest size of a line in bytes; the first line holds the whole cluster."""


class TraceError(Exception):
    """A trace that is unreadable or lacks the requested cycle; the text is the reason."""


class LineError(TraceError):
    """A line that cannot be read: its number, from 1 on, and the reason without file and number.

    `is_cut` is true for the last line of a file that was cut off.
    """

    def __init__(self, file: str, line: int, reason: str, *, is_cut: bool = False) -> None:
        super().__init__(f"`{file}`, line {line}, is not one of a trace: {reason}")
        self.line, self.reason, self.is_cut = line, reason, is_cut


@dataclass(frozen=True, slots=True)
class RecordedCycle:
    """The inputs of one decision. `objects` are the cluster, in their order of arrival."""

    number: int
    objects: tuple[Manifest, ...]
    pod: Manifest
    engine: EngineLine
    decision: dict[str, Any]


def read_cycle(file: InputFile, number: int) -> RecordedCycle:
    """Return the cycle of this number, from 0 on; raise TraceError if there is none."""
    cluster = _Cluster()
    last = -1
    for at, line in lines_of(file):
        if at == 1 and not isinstance(line, Start):
            raise TraceError(f"`{file.name}` is no trace: it does not begin with the cluster")
        if isinstance(line, Start):
            cluster.take(line)
            continue
        cluster.apply(line.changes)
        if isinstance(line, Settled | End):
            continue
        cluster.store_pods(line.pod, *line.engine.promised)
        last = line.cycle
        if line.cycle == number:
            objects = tuple(cluster.objects.values())
            return RecordedCycle(number, objects, line.pod, line.engine, line.decision)
    known = f"its cycles are 0 to {last}" if last >= 0 else "it holds no cycle"
    raise TraceError(f"`{file.name}` holds no cycle {number}: {known}")


def lines_of(file: InputFile) -> Iterator[tuple[int, Line]]:
    """Yield the lines of a trace with their numbers, from 1 on; raise LineError at an unreadable one."""
    data, at, start = file.data, 0, 0
    while start < len(data):
        at += 1
        end = data.find(b"\n", start, start + MAX_LINE + 1)
        if end < 0:
            end = len(data)
            if end - start > MAX_LINE:
                raise LineError(file.name, at, f"it is longer than {MAX_LINE:,} bytes")
        try:
            yield at, read_line(data[start:end])
        except (ValueError, RecursionError) as error:
            is_cut = end == len(data) and at > 1
            reason = "the file ends within it: it was cut off" if is_cut else str(error)
            raise LineError(file.name, at, reason, is_cut=is_cut) from error
        start = end + 1


class _Cluster:
    """The objects of a trace, with its changes applied in order."""

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
                        raise TraceError(f"pod `{change.pod}` is placed before it was tried")
                    source = self._pods[change.pod]
                    # A pod that moves becomes the last one of its node.
                    self.objects.pop((Pod.KIND, change.pod), None)
                    self.objects[Pod.KIND, change.pod] = pod_manifest(
                        source, change.node, annotations=change.annotations
                    )
