from __future__ import annotations

from kdsl.cluster.devices.cards import Card, DeviceGrant, Tenant
from kdsl.cluster.devices.pods import DevicePod
from kdsl.cluster.devices.usage import Holding, with_holdings


def test_pods_take_of_the_cards_they_have() -> None:
    cards = [Card("a", "K", "K", 4, 100, 100), Card("b", "K", "K", 4, 100, 100)]
    pod = DevicePod("p", annotations={"x": "y"})
    grants = {
        "K": (DeviceGrant("a", "K", 30, 10, slots=2), DeviceGrant("gone", "K", 1, 1)),
        "L": (DeviceGrant("b", "L", 5, 0, slots=0),),
    }
    first, second = with_holdings(cards, [Holding(pod, grants)])
    assert (first.used, first.used_memory, first.used_cores) == (2, 30, 10)
    assert first.tenants == (Tenant("p", "default", {"x": "y"}, 30, 10),)
    assert (second.used, second.used_memory, second.used_cores) == (1, 5, 0)
