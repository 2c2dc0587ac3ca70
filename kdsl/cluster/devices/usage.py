"""The usage of a node's cards, computed from the grants of the pods on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kdsl.cluster.devices.cards import Card, DeviceGrant, Tenant
from kdsl.cluster.devices.pods import DevicePod


@dataclass(frozen=True, slots=True)
class Holding:
    """The grants of a pod by kind: see `codec.collapse`."""

    pod: DevicePod
    grants: Mapping[str, tuple[DeviceGrant, ...]]


def with_holdings(cards: Iterable[Card], holdings: Iterable[Holding]) -> tuple[Card, ...]:
    """Return the cards with the usage of the pods; grants of cards that are not there count for nothing."""
    by_id = {card.id: card for card in cards}
    for holding in holdings:
        pod = holding.pod
        for grants in holding.grants.values():
            for grant in grants:
                card = by_id.get(grant.id)
                if card is not None:
                    tenant = Tenant(pod.name, pod.namespace, pod.annotations, grant.memory, grant.cores)
                    by_id[grant.id] = card.with_usage(
                        max(grant.slots, 1), grant.memory, grant.cores, (tenant,)
                    )
    return tuple(by_id.values())
