"""What happened to one object of the cluster, as the watches tell the scheduling thread."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo


class PodCondition(Struct, frozen=True, rename="camel"):
    """One of the conditions of a pod, by its `type`. Times are as the server wrote them."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class LivePod(Struct, frozen=True):
    """A pod of the API server: what rules read of it, and what is needed to write to it."""

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
    """How an object changed. PUT: it is there, new or not. DROP: it is gone."""

    PUT = "put"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one object, in the order of its resource.

    `resource` is the plural name in the API (`pods`), `key` is `namespace/name`, or the name of an object
    without namespace. `object` is what it is now; for DROP the last that was known of it, None where nothing
    was. A drop `is_stale` where it was missed and found out by a later list: the object may have changed
    before it went. An object that was deleted and made anew under its name unseen arrives as a DROP of the
    old uid and a PUT of the new one. `raw` is the text that the server sent, kept where plugins read
    manifests, else empty.
    """

    verb: Verb
    resource: str
    key: str
    uid: str
    version: str
    object: LiveObject | None
    is_stale: bool = False
    raw: bytes = b""
