"""The order in which cards are tried, of many cards at once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.scalar.meter import Steps
from kdsl.eval.values import OutOfSteps
from kdsl.plan.columns.distinct_objects import DistinctObjects
from kdsl.plan.devices.attempt import NodeCards
from kdsl.plan.devices.demand import Demand, DeviceRequest

from tests.plan.devices.devices import node, pod, small

LOOP = "pod.annotations.map(key, key).size()"


@pytest.mark.parametrize(
    "keys",
    [
        "device.numa desc, fullness desc",
        "-fullness, device.used desc, device.index",
        "device.healthy desc, [double(device.used), -double(device.index)]",
        "[-double(device.numa), fullness] desc, device.index",
        "policy.device == 'x' ? 0.0 : fullness, device.usedMemory / 100 desc",
        "1, fullness",
    ],
)
def test_many_cards_are_put_in_order_at_once(keys: str) -> None:
    random, order = Random(keys), small(order=keys).order
    cards = [
        Card(
            f"c{number}",
            "K",
            random.choice(["K", "K Model"]),
            random.choice([0, 4]),
            random.choice([1_000, 2_000]),
            100,
            index=random.randrange(8),
            numa=random.randrange(2),
            healthy=random.random() < 0.8,
            used=random.randrange(3),
            used_memory=100 * random.randrange(5),
        )
        for number in range(200)
    ]
    request = DeviceRequest("K", 1, 300, 101, 10)
    demand, at = Demand(pod(), ({"K": request},), Policy()), NodeCards(node("[]"), ())
    sort_keys = order.sort_keys(cards, demand, at, request, (request,))
    different = DistinctObjects[Card]()
    numbers = different.number([card.shape for card in cards], cards)
    arrays = order.columns(different.variable(numbers), LiveSnapshot(), demand, at, request)
    assert arrays is not None
    at_once = [cards[place] for place in np.lexsort(arrays[::-1]).tolist()]
    assert at_once == order.ordered(cards, sort_keys)


@pytest.mark.parametrize(
    "key",
    [
        "device.index == 1 ? double('NaN') : 0.0",
        "1 / (device.index - 1)",
        f"device.index == 1 ? {LOOP} : 0",
        f"fullness > 0.5 && {LOOP} > 0 ? 1 : 0",
        f"[1].filter(one, one > device.index).map(one, {LOOP}).size()",
    ],
)
def test_cards_without_an_order(key: str) -> None:
    """Columns have no answer if one card has no number, perhaps since a loop takes too many steps."""
    order = small(order=key, steps=Steps(pod=100)).order
    cards = [Card(f"c{number}", "K", "K", 4, 100, 100, index=number, used=number) for number in range(3)]
    request = DeviceRequest("K", 1)
    asking = replace(pod(), annotations=dict.fromkeys(map(str, range(200)), ""))
    demand, at = Demand(asking, ({"K": request},), Policy()), NodeCards(node("[]"), ())
    different = DistinctObjects[Card]()
    numbers = different.number([card.shape for card in cards], cards)
    found: object = None
    with suppress(OutOfSteps):
        found = order.columns(different.variable(numbers), LiveSnapshot(), demand, at, request)
    assert found is None
