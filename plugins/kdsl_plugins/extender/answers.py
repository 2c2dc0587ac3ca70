"""The parts of extenders' answers that kdsl reads: `k8s.io/kube-scheduler/extender/v1`.

Keys are read in any case, as Go does: services of different ages write them differently. Null is absent.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, get_origin

import msgspec
from msgspec import Struct

T = TypeVar("T")


class Named(Struct):
    name: str


class Node(Struct):
    metadata: Named


class NodeList(Struct):
    items: list[Node] | None = None


class Filtered(Struct):
    """The nodes that are left, as objects or names, and the reasons for the others."""

    nodes: NodeList | None = None
    nodenames: list[str] | None = None
    failednodes: dict[str, str] | None = None
    failedandunresolvablenodes: dict[str, str] | None = None
    error: str | None = None


Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class HostPriority(Struct):
    host: str
    score: Int64 = 0


class MetaPod(Struct):
    uid: str


class MetaVictims(Struct):
    pods: list[MetaPod] | None = None
    numpdbviolations: Int64 | None = None


class Preempted(Struct):
    """The candidates that are left, with their victims."""

    nodenametometavictims: dict[str, MetaVictims | None] | None = None


class Bound(Struct):
    error: str | None = None


def read(answer: Any, into: type[T]) -> T:
    """Read plain JSON values; raises msgspec.ValidationError where they do not fit. Null is an empty list."""
    if answer is None and get_origin(into) is list:
        return into()
    return msgspec.convert(_folded(answer), into)


def _folded(value: Any) -> Any:
    """Return a value with all object keys in lower case, except inside nodes: the case of their keys is
    fixed.
    """
    if isinstance(value, dict):
        folded = {key.lower(): each for key, each in value.items()}
        if len(folded) < len(value):
            raise msgspec.ValidationError("a key stands twice, with capitals and without")
        return {key: each if key == "nodes" else _folded(each) for key, each in folded.items()}
    return [_folded(each) for each in value] if isinstance(value, list) else value
