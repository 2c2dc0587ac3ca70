"""HAMi's orders: what is tried first, by policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.policy import Policy, Weights
from kdsl.plan.devices.ordering import arrange, card_score, node_score
from kdsl.plan.devices.requests import Request

CARDS = [
    Card("a", "K", "K", 4, 100, 100, index=0, numa=0, used=0),
    Card("b", "K", "K", 4, 100, 100, index=1, numa=1, used=2),
    Card("c", "K", "K", 4, 100, 100, index=2, numa=0, used=2),
    Card("d", "K", "K", 4, 100, 100, index=3, numa=1, used=0),
]
SCORES = {card.id: np.float32(card.used) for card in CARDS}


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
    arranged = arrange(CARDS, SCORES, Policy(device=policy, numa_bind=numa_bind))
    assert "".join(card.id for card in reversed(arranged)) == first_to_last


def test_equal_cards_keep_their_order() -> None:
    cards = [Card(name, "K", "K", 4, 100, 100) for name in "abcdefghijklmnopqrst"]
    scores = dict.fromkeys("abcdefghijklmnopqrst", np.float32(1))
    assert arrange(cards, scores, Policy()) == cards


def test_scores_are_single_precision() -> None:
    card = Card("a", "K", "K", 3, 7, 9, used=1, used_memory=1, used_cores=1)
    expected = np.float32(10) * (
        np.float32(1) / np.float32(3) + np.float32(1) / np.float32(9) + np.float32(1) / np.float32(7)
    )
    score = node_score([card])
    assert score.dtype == np.float32
    assert score == expected
    assert card_score(card, [], Weights()) == expected


def test_only_requests_of_exactly_the_type_count() -> None:
    card = Card("a", "K", "K", 4, 100, 100)
    request = Request("K", count=2, memory=50, percent=101, cores=25)
    assert card_score(card, [request], Weights()) == np.float32(10)
    assert card_score(card, [request], Weights(slot=2, core=0, memory=4)) == np.float32(25)
    model = Card("a", "K", "K Model", 4, 100, 100)
    assert card_score(model, [request], Weights()) == 0


@pytest.mark.parametrize("empty", ["slots", "memory", "cores"])
def test_cards_without_one_of_the_three_score_nothing(empty: str) -> None:
    card = replace(CARDS[1], **{empty: 0})
    assert not node_score([card])
    assert not card_score(card, [], Weights())
