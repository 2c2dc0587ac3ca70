"""The facts that decided a rejection: the claim, its request or its devices, and what the node lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdsl.cluster.snapshot.catalog import key_of

from kdsl_plugins.dynamic_resources.attempt import LEFT_OVER, NO_DEVICES, NO_RESOURCE, NOT_HERE, Attempt
from kdsl_plugins.dynamic_resources.shortages import pool_fact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kdsl.cluster.api.device_objects import ResourceClaim
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.selectors import NodeSelector


def facts_of(attempt: Attempt, node: NodeInfo) -> dict[str, list[str]]:
    """Return by reason what decided the rejection of a node."""
    status = attempt.judged(node)
    if status is None:
        return {}
    (reason,) = status.reasons
    if status is LEFT_OVER:
        assert attempt.left_over is not None
        return {
            reason: [f"claim {attempt.left_over.metadata.name} of an earlier attempt is to be deleted first"]
        }
    if status is NO_RESOURCE:
        names = attempt.lacking(node)
        return {reason: [f"the node offers no {name}, nor does a device class" for name in names]}
    if status is NOT_HERE:
        unavailable = attempt.unavailable_on(node)
        return {
            reason: [_elsewhere(one, attempt.places) for one in attempt.claims if key_of(one) in unavailable]
        }
    shortages = attempt.shortages(node)
    if status is NO_DEVICES:
        return {reason: shortages.facts()}
    return {reason: [pool_fact(pool) for pool in shortages.pools if pool.is_invalid]}


def _elsewhere(claim: ResourceClaim, places: Mapping[str, NodeSelector]) -> str:
    """Return where the devices of an allocated claim can be used."""
    name, selector = claim.metadata.name, places.get(key_of(claim))
    if selector is None:
        return f"claim {name} has devices that did not get ready"
    if not selector.text:
        return f"claim {name} has devices that no node can use: its node selector matches none"
    return f"claim {name} has devices on nodes with {selector.text}"
