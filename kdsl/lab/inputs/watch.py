"""Watch logs: a line of JSON for each event, with its time.

Two forms are read: `{"time", "type": "ADDED", "object"}`, which jq makes of `kubectl get --watch
--output-watch-events`, and `{"time", "event": "Add", "resource"}`, that of kube-scheduler-simulator's
recorder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean
from kdsl.base.undecodable import json_mistake
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.documents import Document
from kdsl.cluster.read.files import read_file
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.reader import read_all
from kdsl.lab.inputs.reading import Reading
from kdsl.lab.inputs.recording import Recording, time_of
from kdsl.lab.timed import TimedWorkload

_EVENTS: Final = {
    "ADDED": "seen", "MODIFIED": "seen", "DELETED": "gone", "BOOKMARK": "",
    "Add": "seen", "Update": "seen", "Delete": "gone",
}  # fmt: skip
_SHOWN: Final = 5
"""So many broken lines are reported one by one."""
_HELP: Final = "docs/traces.md has the command that writes one"


@dataclass(frozen=True, slots=True)
class _Event:
    """An event at line `where`; `what` is `seen` or `gone`."""

    where: str
    time: int
    what: str
    thing: dict[str, Any]


def read_watch(path: Path, *, keeps_manifests: bool = False) -> Reading:
    """Read a watch log. Events are taken in order of time; the first one is the start."""
    found: list[Diagnostic] = []
    file = read_file(path, found)
    events = [] if file is None else list(_events(file.name, file.data, found))
    if not events:
        if file is not None and not found:
            Problems(found, file.name).add(InputCode.INCOMPLETE, (), "this log has no events", _HELP)
        return Reading(TimedWorkload((), ()), tuple(found))
    # Several watches may write one log, a little out of order.
    events.sort(key=lambda event: event.time)
    recording = Recording(events[0].time)
    warned: set[tuple[str, str]] = set()
    for event in events:
        if event.what == "gone":
            _lose(recording, event)
            continue
        read = read_all([Document(event.where, event.thing)], keeps_sources=True)
        for diagnostic in read.diagnostics:
            key = diagnostic.code, diagnostic.title
            if diagnostic.severity is Severity.ERROR or key not in warned:
                found.append(diagnostic)
            warned.add(key)
        for thing, source in zip(read.objects, read.sources, strict=True):
            recording.see(thing, source, event.time)
    workload, manifests = recording.workload(found)
    return Reading(workload, tuple(found), manifests if keeps_manifests else {})


def _lose(recording: Recording, event: _Event) -> None:
    metadata = event.thing.get("metadata")
    name, namespace = (
        (metadata.get(key) for key in ("name", "namespace")) if isinstance(metadata, dict) else ("", "")
    )
    match event.thing.get("kind"):
        case "Pod":
            recording.lose_pod(str(namespace or "default"), str(name), event.time)
        case "Node":
            recording.lose_node(str(name), event.time)
        case _:
            # Other objects of the cluster are there from the start to the end.
            return


def _events(name: str, data: bytes, found: list[Diagnostic]) -> Iterator[_Event]:
    broken: list[Diagnostic] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if line.strip():
            event = _event(f"{name}#{number}", line, broken)
            if event is not None:
                yield event
    found += broken[:_SHOWN]
    if len(broken) > _SHOWN:
        title = f"{len(broken) - _SHOWN:,} more lines of this file are no events"
        Problems(found, name).add(InputCode.NOT_AN_OBJECT, (), title, _HELP)


def _event(where: str, line: bytes, found: list[Diagnostic]) -> _Event | None:
    """Return the event of a line; None for a bookmark, and where the line is broken."""
    problems = Problems(found, where)
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        problems.add(
            InputCode.SYNTAX, (), f"this is not JSON: {json_mistake(line, error)}", "an event is one line"
        )
        return None
    if not isinstance(value, dict):
        problems.add(InputCode.NOT_AN_OBJECT, (), "this is no event: it must be an object", _HELP)
        return None
    type_, thing, time = (
        value.get("type", value.get("event")),
        value.get("object", value.get("resource")),
        time_of(value.get("time")),
    )
    if not isinstance(type_, str) or type_ not in _EVENTS:
        title = "this is no event: its `type` is ADDED, MODIFIED or DELETED"
        problems.add(InputCode.VALUE, ("type",), title, *did_you_mean(str(type_), _EVENTS), _HELP)
        return None
    if not _EVENTS[type_]:
        return None
    if time is None:
        title = "the event has no `time`: one such as `2026-11-01T00:00:00Z`"
        problems.add(InputCode.MISSING, ("time",), title, _HELP)
        return None
    if not isinstance(thing, dict):
        problems.add(InputCode.NOT_AN_OBJECT, ("object",), "the event has no object")
        return None
    return _Event(where, time, _EVENTS[type_], thing)
