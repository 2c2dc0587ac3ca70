"""Defaults for fields that pods leave out: `pod_defaults.yaml`, read once and checked."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from kdsl.base.yaml_text import read_data_file
from kdsl.cluster.api.data_files import typed
from kdsl.cluster.api.objects import ResourceList, quantity
from kdsl.cluster.api.workload_objects import ReplicaSet, ReplicationController, StatefulSet

_FILE: Final = Path(__file__).with_suffix(".yaml")
_WITH_SELECTOR: Final = frozenset(
    {
        ("v1", ReplicationController.KIND),
        ("apps/v1", ReplicaSet.KIND),
        ("apps/v1", StatefulSet.KIND),
    }
)
"""The kinds whose objects are read for the pods that they select."""

Policy = Literal["Honor", "Ignore"]


class OwnerKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A kind of object that makes pods."""

    api_version: str
    kind: str


class SpreadDefaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The fields of a spread constraint that may be left out, and the owners of pods that are alike."""

    min_domains: Annotated[int, msgspec.Meta(ge=1)]
    node_affinity_policy: Policy
    node_taints_policy: Policy
    owners: frozenset[OwnerKind]


class PodDefaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The whole file."""

    scored_requests: ResourceList
    spread: SpreadDefaults


def read_pod_defaults(document: object) -> PodDefaults:
    """Check a document; raise ValueError with the error."""
    read = typed(document, PodDefaults, "the defaults of pods")
    for name, amount in read.scored_requests.items():
        try:
            quantity(amount)
        except ValueError as error:
            raise ValueError(f"the defaults of pods: scoredRequests.{name}: {error}") from None
    for owner in read.spread.owners:
        if (owner.api_version, owner.kind) not in _WITH_SELECTOR:
            raise ValueError(
                f"the defaults of pods: {owner.kind} {owner.api_version} has no selector that is read"
            )
    return read


@cache
def pod_defaults() -> PodDefaults:
    """Return the shipped defaults."""
    return read_pod_defaults(read_data_file(_FILE))
