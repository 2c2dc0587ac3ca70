"""What of a node's cards is taken, rebuilt from what the pods on it have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kdsl.cluster.devices.cards import Card, Grant, Tenant
from kdsl.cluster.devices.pods import DevicePod


@dataclass(frozen=True, slots=True)
class Holding:
    """What a pod has of cards, by kind: see `codec.collapse`."""

    pod: DevicePod
    grants: Mapping[str, tuple[Grant, ...]]


def with_holdings(cards: Iterable[Card], holdings: Iterable[Holding]) -> tuple[Card, ...]:
    """Return the cards with what the pods have of them taken. A card that is not there takes nothing."""
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
