"""How full cards and nodes are: HAMi's figures."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from kdsl.cluster.devices.cards import INT32_MAX, Card
from kdsl.cluster.devices.policy import Weights
from kdsl.plan.devices.demand import DeviceRequest
from kdsl.plan.devices.fullness import card_score, card_scores, node_score
from msgspec.structs import replace


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
    request = DeviceRequest("K", count=2, memory=50, percent=101, cores=25)
    assert card_score(card, [request], Weights()) == np.float32(10)
    assert card_score(card, [request], Weights(slot=2, core=0, memory=4)) == np.float32(25)
    model = Card("a", "K", "K Model", 4, 100, 100)
    assert card_score(model, [request], Weights()) == 0


@pytest.mark.parametrize("empty", ["slots", "memory", "cores"])
def test_cards_without_one_of_the_three_score_nothing(empty: str) -> None:
    card = replace(Card("b", "K", "K", 4, 100, 100, used=2), **{empty: 0})
    assert not node_score([card])
    assert not card_score(card, [], Weights())


@pytest.mark.parametrize("percent", [0, 33, 101, -7])
def test_many_cards_have_the_scores_of_single_ones(percent: int) -> None:
    random = Random(f"scores {percent}")
    request = DeviceRequest("K", memory=random.randrange(900), percent=percent, cores=random.randrange(90))
    weights = Weights(slot=random.randrange(5), core=1, memory=3)
    cards = [
        Card(
            f"c{number}",
            "K",
            random.choice(["K", "K Model"]),
            random.choice([0, 3, 10]),
            random.choice([0, 7, 81_559, INT32_MAX]),
            random.choice([0, 9, 100]),
            used=random.randrange(9),
            used_memory=random.randrange(90_000),
            used_cores=random.randrange(120),
        )
        for number in range(300)
    ]
    found = card_scores(
        lambda name: np.array([getattr(card, name) for card in cards]),
        np.array([card.type == "K" for card in cards]),
        request,
        weights,
    )
    assert found.tolist() == [float(card_score(card, [request], weights)) for card in cards]
