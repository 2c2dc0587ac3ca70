"""The facts that decided a rejection: the claim, its volume or class, and what the node lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kdsl.cluster.storage.claims import PodClaim, class_of

from kdsl_plugins.volume_binding.needs import NO_STORAGE, Wanted

if TYPE_CHECKING:
    from kdsl.cluster.api.storage_objects import TopologyTerm
    from kdsl.cluster.objects.node import NodeInfo


def facts_of(rejected: Mapping[str, PodClaim | Wanted], node: NodeInfo) -> dict[str, list[str]]:
    """Return by reason what decided the rejection of a node; `rejected` has the claims behind the reasons."""
    return {
        reason: [_of_bound(claim) if isinstance(claim, PodClaim) else _of_wanted(reason, claim, node)]
        for reason, claim in rejected.items()
    }


def unbound_facts(claim: PodClaim) -> str:
    """Return why a claim without a volume is not bound with its pod."""
    if claim.storage_class is None:
        named = claim.storage_class_name
        return f"claim {claim.name}: {f'no storage class {named}' if named else 'it has no storage class'}"
    if claim.volume_name:
        return f"claim {claim.name} names volume {claim.volume_name} and is not bound to it yet"
    return f"claim {claim.name} of class {claim.storage_class_name} is bound before its pod, and is not yet"


def _of_bound(claim: PodClaim) -> str:
    if claim.volume is None:
        return f"claim {claim.name} is bound to volume {claim.volume_name}, which does not exist"
    selector = claim.volume.node_affinity
    where = "" if selector is None else selector.text
    places = f"nodes with {where}" if where else "no node: its node affinity has no valid term"
    return f"volume {claim.volume_name} of claim {claim.name} is on {places}"


def _of_wanted(reason: str, wanted: Wanted, node: NodeInfo) -> str:
    name, class_name = wanted.claim.metadata.name, class_of(wanted.claim)
    size = wanted.candidates.requested.written
    if wanted.selected not in (None, node.name):
        return f"claim {name} was assigned to node {wanted.selected}"
    if reason == NO_STORAGE:
        return f"claim {name} needs {size}: class {class_name} reports less free storage for the node"
    held = next(iter(wanted.candidates.reserved), None)
    if held is not None:
        missing = f"volume {held.name} is reserved for it and not accessible from the node"
    else:
        missing = f"no free volume of class {class_name} fits it on the node"
    if not wanted.provisioner.can_provision:
        return f"claim {name} needs {size}: {missing}, and the class makes none"
    allowed = " or ".join(map(_topology, wanted.provisioner.topologies))
    return f"claim {name} needs {size}: {missing}, and the class makes some on nodes with {allowed} only"


def _topology(term: TopologyTerm) -> str:
    each = (f"{one.key} in ({','.join(one.values)})" for one in term.match_label_expressions)
    return " and ".join(each) or "no label"
