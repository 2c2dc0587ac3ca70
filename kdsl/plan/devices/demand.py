"""What a pod asks of a profile's devices."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from kdsl.cluster.devices.pods import DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import Quota
from kdsl.plan.devices.placing import Requests


@dataclass(frozen=True, slots=True)
class Demand:
    """A pod that asks for cards, after admission. Demands of one `likeness` get the same cards of a node.

    `traits` is what of the pod decides beside its containers, and the policy.
    """

    pod: DevicePod
    requests: Requests
    policy: Policy
    quota: Quota | None
    likeness: Hashable
    traits: Hashable

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of devices it asks for."""
        return tuple(dict.fromkeys(kind for asked in self.requests for kind in asked))
