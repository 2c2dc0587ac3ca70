"""The part of a node's score that depends on the chosen cards is HAMi's, in single precision."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import chain, combinations_with_replacement
from random import Random

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


def random_lists(sizes: list[list[int]]) -> Iterator[list[list[int]]]:
    """Yield the cards of three to eight containers, some of which have none."""
    random = Random("scores")
    for _ in range(200):
        yield [random.choice(sizes) if random.random() < 0.8 else [] for _ in range(random.randint(3, 8))]


def share(groups: list[int]) -> np.float32:
    return np.float32(max(map(groups.count, groups))) / np.float32(len(groups)) if groups else np.float32(0)


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
    for chosen in chain(combinations_with_replacement(sizes, 2), random_lists(sizes)):
        parts = [allotment(kind, list(map(as_groups, groups)), attribute) for groups in chosen]
        total = reduce(lambda sum, groups: np.float32(sum + share(groups)), chosen, np.float32(0))
        expected = np.float32(total * np.float32(weight))
        assert program.value(demand, at, Allocation(tuple(parts))) == expected
