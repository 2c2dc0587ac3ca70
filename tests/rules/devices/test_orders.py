"""`devices/orders.kdsl`: the cards that are tried first, by policy."""

from __future__ import annotations

import pytest
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.policy import Policy

from tests.rules.devices.trial import given

CARDS = [
    Card("a", "K", "K", 4, 100, 100, index=0, numa=0, used=0),
    Card("b", "K", "K", 4, 100, 100, index=1, numa=1, used=2),
    Card("c", "K", "K", 4, 100, 100, index=2, numa=0, used=2),
    Card("d", "K", "K", 4, 100, 100, index=3, numa=1, used=0),
]
BODY = """
  order by orders.byPolicy(policy, fullness, device.numa, device.used, device.index)
  choose first
"""


@pytest.mark.parametrize(
    "policy, numa_bind, first_to_last",
    [
        ("binpack", False, "bcda"),
        ("spread", False, "dabc"),
        ("topology-aware", False, "dabc"),
        ("", False, "dabc"),
        ("mutex", False, "dabc"),
        ("mutex", True, "dabc"),
        ("binpack", True, "cabd"),
        ("spread", True, "dbac"),
        ("numa", False, "dbca"),
        ("numa,binpack", False, "bdca"),
        ("binpack,numa", False, "bcda"),
        ("spread, numa", False, "dabc"),
        ("binpack,numa", True, "bdca"),
        ("some,thing", False, "dacb"),
    ],
)
def test_order(policy: str, numa_bind: bool, first_to_last: str) -> None:
    assert given(BODY, CARDS, 4, Policy(device=policy, numa_bind=numa_bind)) == first_to_last


@pytest.mark.parametrize("policy", ["spread", "binpack", "mutex", "some,thing"])
def test_of_equal_cards_the_last_is_first(policy: str) -> None:
    cards = [Card(name, "K", "K", 4, 100, 100) for name in "abcdefghij"]
    assert given(BODY, cards, 10, Policy(device=policy)) == "jihgfedcba"


def test_without_an_order_the_last_card_is_first() -> None:
    assert given("choose first", CARDS, 4, Policy(device="binpack")) == "dcba"
