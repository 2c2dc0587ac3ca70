"""The claims of devices of one pod, and why they cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.snapshot.catalog import key_of

if TYPE_CHECKING:
    from kdsl.cluster.objects.device_claims import DeviceClaim
    from kdsl.cluster.objects.pod import PodInfo

Find = Callable[[str], ResourceClaim | None]


class ClaimProblemError(Exception):
    """The pod must wait for a change of its claims. `fact` is what the text lacks for a reader."""

    def __init__(self, text: str, fact: str = "") -> None:
        super().__init__(text)
        self.fact = fact


def claims_of(pod: PodInfo) -> tuple[str, ...]:
    """Return the keys of the pod's claims, each once."""
    return tuple(dict.fromkeys(f"{pod.namespace}/{each.claim}" for each in pod.resource_claims if each.claim))


def problem_of(pod: PodInfo, find: Find) -> str:
    """Return why the pod cannot use its claims; empty where all exist and are the pod's."""
    for each in pod.resource_claims:
        problem = _problem(pod, each, find)
        if problem:
            return problem
    return ""


def _problem(pod: PodInfo, reference: DeviceClaim, find: Find) -> str:
    if reference.claim is None:
        return f'pod "{pod.key}": ResourceClaim not created yet'
    if not reference.claim:
        return ""
    claim = find(f"{pod.namespace}/{reference.claim}")
    if claim is None:
        return f'resourceclaim "{reference.claim}" not found'
    meta = claim.metadata
    if meta.deletion_timestamp is not None:
        return f'resourceclaim "{reference.claim}" is being deleted'
    if reference.is_generated and not any(
        owner.controller and owner.uid == pod.uid for owner in meta.owner_references
    ):
        return f"ResourceClaim {key_of(claim)} was not created for pod {pod.key} (pod is not owner)"
    return ""
