"""A change of one object of the cluster, as the watches send it to the scheduling thread."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo


class PodCondition(Struct, frozen=True, rename="camel"):
    """A condition of a pod, by its `type`. Times are kept as the server wrote them."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class LivePod(Struct, frozen=True):
    """A pod of the API server: the fields that rules read, and those needed to write to it."""

    info: PodInfo
    version: str
    """Its resourceVersion: compared for equality only."""
    generation: int = 0
    conditions: tuple[PodCondition, ...] = ()


class LiveNode(Struct, frozen=True):
    """A node of the API server, its annotations included."""

    facts: NodeFacts
    uid: str
    version: str


LiveObject: TypeAlias = LivePod | LiveNode | CatalogObject


class Verb(StrEnum):
    """The kind of change. PUT: the object exists, new or not. DROP: it is gone."""

    PUT = "put"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A change of one object, in the order of its resource.

    `resource` is the plural name in the API (`pods`), `key` is `namespace/name`, or the name of an object
    without namespace. `object` is its present state; for DROP the last known state, None without one. A drop
    `is_stale` if its event was missed and a later list revealed it: the object may have changed before it was
    deleted. If an object was deleted and created again between two events, a DROP of the old uid and a PUT of
    the new one arrive. `raw` is the JSON of the server, kept if plugins read manifests, else empty.
    """

    verb: Verb
    resource: str
    key: str
    uid: str
    version: str
    object: LiveObject | None
    is_stale: bool = False
    raw: bytes = b""


def is_older(version: str, other: str) -> bool:
    """Return whether a resource version is older than another; False where one of them is no number."""
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)
