"""The part of a node's score that depends on the chosen cards is HAMi's, in single precision."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from kdsl.cluster.devices.cards import Card, DeviceGrant
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.plan.devices.attempt import NodeCards
from kdsl.plan.devices.demand import Allocation, Allotment, Demand, DeviceRequest

from tests.conformance import hami

CONTAINER = DeviceContainer("c")


def allotment(kind: str, groups: list[int], attribute: str) -> Allotment:
    """Return the cards of a container, by the group of each."""
    return Allotment(
        CONTAINER,
        DeviceRequest(kind, len(groups)),
        tuple(
            DeviceGrant(f"c{at}", kind, 1, 1, attributes={attribute: group, "DeviceStrategy": "die"})
            for at, group in enumerate(groups)
        ),
    )


def share(groups: list[int]) -> np.float32:
    return np.float32(max(map(groups.count, groups))) / np.float32(len(groups))


@pytest.mark.parametrize(
    ("kind", "attribute", "weight"), [("Ascend910B3", "NetworkID", 10), ("Vastai", "AIC", 1)]
)
def test_shares_of_the_largest_groups(kind: str, attribute: str, weight: int) -> None:
    program = hami.programs()[kind]
    demand = Demand(DevicePod("p", containers=(CONTAINER,)), ({},), Policy())
    at = NodeCards(DeviceNode("n"), (Card("c", kind, kind, 1, 1, 1),))
    sizes = [
        list(range(largest)) + [0] * (size - largest)
        for size in range(1, 13)
        for largest in range(1, size + 1)
    ]
    as_groups = (lambda group: f"b{group}") if attribute == "AIC" else int
    for one, other in combinations_with_replacement(sizes, 2):
        parts = [allotment(kind, list(map(as_groups, groups)), attribute) for groups in (one, other)]
        expected = np.float32(np.float32(share(one) + share(other)) * np.float32(weight))
        assert program.value(demand, at, Allocation(tuple(parts))) == expected
