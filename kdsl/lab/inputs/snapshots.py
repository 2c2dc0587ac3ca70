"""A folder of Kubernetes objects at several times: a file for each, named by it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.errors import reason_of
from kdsl.base.file_policy import FoundFile, files_below
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.files import SUFFIXES
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.reader import read_objects
from kdsl.lab.inputs.reading import Reading
from kdsl.lab.inputs.recording import Recording, time_of
from kdsl.lab.timed import TimedWorkload

_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d)[:-]?(\d\d)[:-]?(\d\d)(\.\d{1,6})?(Z|[+-]\d\d:?\d\d)", re.ASCII
)
_HELP: Final = (
    "name it by the time of the snapshot: `2026-11-01T00:00:00Z.json`, or `2026-11-01T00-00-00Z.json`"
)


def snapshot_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder of snapshots, in the order of their names."""
    refused: list[OSError] = []
    return tuple(file.path for file in files_below(folder, _is_input, refused))


def read_snapshots(folder: Path, *, keeps_manifests: bool = False) -> Reading:
    """Read the snapshots of a folder in order of time; an object that a snapshot lacks is gone then."""
    found: list[Diagnostic] = []
    files = _in_order(folder, found)
    if not files:
        return Reading(TimedWorkload((), ()), tuple(found))
    recording = Recording(files[0][0])
    warned: set[tuple[str, str]] = set()
    for time, path in files:
        _take(recording, path, time, found, warned)
    workload, manifests = recording.workload(found)
    return Reading(workload, tuple(found), manifests if keeps_manifests else {})


def _take(
    recording: Recording, path: Path, time: int, found: list[Diagnostic], warned: set[tuple[str, str]]
) -> None:
    read = read_objects([path], keeps_sources=True)
    for diagnostic in read.diagnostics:
        # Each snapshot has the same fields that no rule reads: they are named once.
        key = diagnostic.code, diagnostic.title
        if diagnostic.severity is Severity.ERROR or key not in warned:
            found.append(diagnostic)
        warned.add(key)
    if not read.objects:
        title = "this snapshot has no objects: without it nothing would seem to be deleted"
        Problems(found, str(path)).add(InputCode.INCOMPLETE, (), title)
        return
    pods = {(pod.metadata.namespace, pod.metadata.name) for pod in read.pods}
    nodes = {node.metadata.name for node in read.nodes}
    for namespace, name in recording.pods:
        if (namespace, name) not in pods:
            recording.lose_pod(namespace, name, time)
    for name in recording.nodes:
        if name not in nodes:
            recording.lose_node(name, time)
    # Nodes come first: pods may be on them.
    ordered = sorted(
        zip(read.objects, read.sources, strict=True),
        key=lambda each: isinstance(each[0], Pod) - isinstance(each[0], Node),
    )
    for thing, source in ordered:
        recording.see(thing, source, time)


def _is_input(name: str) -> bool:
    return name.endswith(SUFFIXES)


def _in_order(folder: Path, found: list[Diagnostic]) -> Sequence[tuple[int, Path]]:
    """Return the files of a folder with their times, in order of time."""
    refused: list[OSError] = []
    files = files_below(folder, _is_input, refused)
    for error in refused:
        title = f"cannot read this file: {reason_of(error)}"
        Problems(found, str(error.filename)).add(InputCode.UNREADABLE, (), title)
    if not files and not refused:
        title = "this folder has no YAML or JSON files"
        Problems(found, str(folder)).add(InputCode.UNREADABLE, (), title)
    times: dict[int, FoundFile] = {}
    for file in files:
        time = _time_of(file.path)
        problems = Problems(found, str(file.path))
        if time is None:
            problems.add(InputCode.TRACE, (), "the name of this file is not a time", _HELP)
        elif time in times:
            title = f"`{times[time].path.name}` is a snapshot of the same time"
            problems.add(InputCode.TRACE, (), title)
        else:
            times[time] = file
    return [(time, file.path) for time, file in sorted(times.items(), key=lambda each: each[0])]


def _time_of(path: Path) -> int | None:
    stem = next(
        path.name.removesuffix(suffix)
        for suffix in sorted(SUFFIXES, key=len, reverse=True)
        if path.name.endswith(suffix)
    )
    match = _TIME.fullmatch(stem)
    if match is None:
        return None
    day, hour, minute, second, fraction, zone = match.groups()
    return time_of(f"{day}T{hour}:{minute}:{second}{fraction or ''}{zone}")
