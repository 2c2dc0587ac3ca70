"""The lines of a record: JSON documents, described by the `Trace` of `kdsl/report/schemas`.

The first line is the cluster at the start, each other line a decision with the changes before it. The last
line has the changes after the last decision; a file without it was cut off, or its run has not ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from kdsl.base.undecodable import json_mistake
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.read.reader import Manifest
from kdsl.report.decisions import API_VERSION


class Placed(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="change", tag="place"):
    """The pod `namespace/name` is on a node from now on, with annotations if they have changed."""

    pod: str
    node: str
    annotations: dict[str, str] | None = None


class Removed(Struct, frozen=True, rename="camel", tag_field="change", tag="remove"):
    """An object was removed; `key` is its `namespace/name`, or its name if it has no namespace."""

    object_kind: str
    key: str


class Put(Struct, frozen=True, rename="camel", tag_field="change", tag="put"):
    """An object was added or changed: a node, a pod that another scheduler placed, or any other kind."""

    object: Manifest


Change: TypeAlias = Placed | Removed | Put


class EngineLine(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The engine state that a decision depends on. `promised` are the nominated pods, as manifests.

    `time` is that of the scheduler's clock, in nanoseconds since the Unix epoch, 0 in a simulation.
    """

    start_index: int
    attempts: int
    percentage: int
    tie_break: str
    seed: int
    promised: list[Manifest]
    time: int = 0


class Start(Struct, frozen=True, rename="camel", tag_field="kind", tag="TraceStart"):
    """The cluster: nodes, the pods on them and all other objects, in their order of arrival."""

    api_version: str
    rules: str
    objects: list[Manifest]


class Cycle(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="kind", tag="TraceCycle"):
    """One decision. `changes` are those since the previous line, `pod` is its state at the attempt.

    `dropped` counts the decisions before it that have no line, because they came faster than lines are
    written: their changes are here, and their numbers are missing.
    """

    api_version: str
    cycle: int
    changes: list[Change]
    pod: Manifest
    engine: EngineLine
    decision: dict[str, Any]
    dropped: int = 0


class SettledLine(Struct, frozen=True, rename="camel", tag_field="kind", tag="TraceSettled"):
    """The result for a pod that a Permit plugin had held, or whose binding took time."""

    api_version: str
    changes: list[Change]
    decision: dict[str, Any]


class End(Struct, frozen=True, rename="camel", tag_field="kind", tag="TraceEnd"):
    """The last line: the changes since the last decision, and the number of all decisions of the run."""

    api_version: str
    changes: list[Change]
    cycles: int


Line: TypeAlias = Start | Cycle | SettledLine | End

MAX_LINE: Final = 2**28
"""The largest size of a line in bytes; the first line holds the whole cluster."""

_DECODER: Final[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(Line)


class RecordError(Exception):
    """A record that is unreadable or lacks the requested cycle; the text is the reason."""


class LineError(RecordError):
    """A line that cannot be read: its number, from 1 on, and the reason without file and number.

    `is_cut` is true for the last line of a file that was cut off.
    """

    def __init__(self, file: str, line: int, reason: str, *, is_cut: bool = False) -> None:
        super().__init__(f"`{file}`, line {line}, is not one of a record: {reason}")
        self.line, self.reason, self.is_cut = line, reason, is_cut


def write_line(line: Line) -> str:
    """Write a line, without its end."""
    return msgspec.json.encode(line).decode()


def _read_line(data: bytes) -> Line:
    """Read a line; raise ValueError for a malformed one."""
    line = _DECODER.decode(data)
    if line.api_version != API_VERSION:
        raise ValueError(f"its apiVersion is `{line.api_version}`, not `{API_VERSION}`")
    return line


def lines_of(file: InputFile) -> Iterator[tuple[int, Line]]:
    """Yield the lines of a record with their numbers, from 1 on; raise LineError at an unreadable one."""
    data, at, start = file.data, 0, 0
    while start < len(data):
        at += 1
        end = data.find(b"\n", start, start + MAX_LINE + 1)
        if end < 0:
            end = len(data)
            if end - start > MAX_LINE:
                raise LineError(file.name, at, f"it is longer than {MAX_LINE:,} bytes")
        try:
            yield at, _read_line(data[start:end])
        except (ValueError, RecursionError) as error:
            is_cut = end == len(data) and at > 1
            if is_cut:
                reason = "the file ends within it: it was cut off"
            elif isinstance(error, msgspec.ValidationError):
                reason = str(error)
            else:
                reason = json_mistake(data[start:end], error)
            raise LineError(file.name, at, reason, is_cut=is_cut) from error
        start = end + 1
