"""The allocation of a claim, as it is written into its status: devices, configuration and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from kdsl.cluster.api.device_objects import (
    AllocatedConfiguration,
    AllocatedDevice,
    AllocatedDevices,
    Allocation,
    ResourceClaim,
)
from kdsl.cluster.api.objects import NodeSelectorRequirement, NodeSelectorSpec, NodeSelectorTerm

from kdsl_plugins.dynamic_resources.errors import AllocationError
from kdsl_plugins.dynamic_resources.requests import Request
from kdsl_plugins.dynamic_resources.search import Chosen

_FROM_CLASS: Final = "FromClass"
_FROM_CLAIM: Final = "FromClaim"


def allocation_of(claim: ResourceClaim, chosen: Sequence[Chosen], node: str) -> Allocation:
    """Return the allocation of a claim on a node."""
    results = [_result(claim, at, each) for at, each in enumerate(chosen)]
    requests = list(dict.fromkeys(each.request for each in chosen))
    config = [*_class_configuration(requests), *_claim_configuration(claim, requests)]
    return Allocation(AllocatedDevices(results, config), _node_selector(claim, chosen, node))


def _result(claim: ResourceClaim, at: int, chosen: Chosen) -> AllocatedDevice:
    request, device = chosen.request, chosen.device
    driver, pool, name = device.id
    share = chosen.share
    return AllocatedDevice(
        request=request.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=request.has_admin_access,
        tolerations=request.spec.tolerations,
        binding_conditions=device.device.binding_conditions,
        binding_failure_conditions=device.device.binding_failure_conditions,
        share_id="" if share is None else _share_id(claim, at, device.id),
        consumed_capacity={key: str(amount) for key, amount in (share or {}).items()},
    )


def _share_id(claim: ResourceClaim, at: int, device: tuple[str, str, str]) -> str:
    """Return the id of a share: upstream draws it, here equal inputs give equal ids."""
    meta = claim.metadata
    owner = meta.uid or f"{meta.namespace}/{meta.name}"
    return str(uuid5(NAMESPACE_OID, "/".join((owner, *device, str(at)))))


def _class_configuration(requests: Iterable[Request]) -> list[AllocatedConfiguration]:
    """Return the configuration of each class once, for all of its requests."""
    named: dict[str, list[str]] = {}
    classes = {}
    for request in requests:
        name = request.device_class.metadata.name
        classes[name] = request.device_class
        named.setdefault(name, []).append(request.full_name)
    return [
        AllocatedConfiguration(_FROM_CLASS, named[name], config.opaque)
        for name, device_class in classes.items()
        for config in device_class.spec.config
    ]


def _claim_configuration(claim: ResourceClaim, requests: Sequence[Request]) -> list[AllocatedConfiguration]:
    """Return the configurations of a claim that are for all requests, or for one that got devices.

    As upstream, one that names several of them is there for each.
    """
    return [
        AllocatedConfiguration(_FROM_CLAIM, config.requests, config.opaque)
        for config in claim.spec.devices.config
        for _ in range(_mentions(config.requests, requests))
    ]


def _mentions(names: Sequence[str], requests: Sequence[Request]) -> int:
    if not names:
        return 1
    return sum(
        (request.parent or request.name) in names or request.full_name in names for request in requests
    )


def _node_selector(claim: ResourceClaim, chosen: Iterable[Chosen], node: str) -> NodeSelectorSpec | None:
    """Return the nodes where all of the devices can be used; None for all nodes."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for each in chosen:
        spec, device = each.device.slice.spec, each.device.device
        place = device if spec.per_device_node_selection else spec
        if place.node_name or device.binds_to_node:
            here = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
            return NodeSelectorSpec([NodeSelectorTerm(match_fields=[here])])
        terms = [] if place.node_selector is None else place.node_selector.node_selector_terms
        if len(terms) > 1:
            text = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise AllocationError(f"create NodeSelector for claim {claim.metadata.name}: {text}")
        for term in terms:
            _add_new(term.match_fields, fields)
            _add_new(term.match_expressions, labels)
    if not fields and not labels:
        return None
    return NodeSelectorSpec([NodeSelectorTerm(match_expressions=labels, match_fields=fields)])


def _add_new(requirements: Iterable[NodeSelectorRequirement], to: list[NodeSelectorRequirement]) -> None:
    for one in requirements:
        if not any(
            one.key == other.key and one.operator == other.operator and set(one.values) == set(other.values)
            for other in to
        ):
            to.append(one)
