"""The lines of a trace: JSON documents, described by the `Trace` of `kdsl/report/schemas`.

The first line is the cluster at the start, each other line a decision with the changes before it. The last
line has the changes after the last decision; a file without it was cut off, or its run has not ended.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

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


class Settled(Struct, frozen=True, rename="camel", tag_field="kind", tag="TraceSettled"):
    """The result for a pod that a Permit plugin had held, or whose binding took time."""

    api_version: str
    changes: list[Change]
    decision: dict[str, Any]


class End(Struct, frozen=True, rename="camel", tag_field="kind", tag="TraceEnd"):
    """The last line: the changes since the last decision, and the number of all decisions of the run."""

    api_version: str
    changes: list[Change]
    cycles: int


Line: TypeAlias = Start | Cycle | Settled | End

_DECODER: Final[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(Line)


def write_line(line: Line) -> str:
    """Write a line, without its end."""
    return msgspec.json.encode(line).decode()


def read_line(data: bytes) -> Line:
    """Read a line; raise ValueError for a malformed one."""
    line = _DECODER.decode(data)
    if line.api_version != API_VERSION:
        raise ValueError(f"its apiVersion is `{line.api_version}`, not `{API_VERSION}`")
    return line
