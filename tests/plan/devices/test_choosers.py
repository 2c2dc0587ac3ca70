from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kdsl.check.devices.forms import CHOOSERS as FORMS
from kdsl.cluster.devices.cards import Card
from kdsl.eval.values import EvalError
from kdsl.plan.devices.choice import CardCandidate, CardCharge, CardChoice, CardRefusal
from kdsl.plan.devices.choosers import CHOOSERS, GREEDY, listed

CHARGE = CardCharge(0, 0, 1, "K")


def choose(
    count: int, unfit: str = "", rejected: Mapping[str, int] | None = None, **fields: Any
) -> str | CardRefusal:
    """Choose of the cards `a` to `d`; return the names of the chosen ones."""
    cards = [Card(name, "K", "K", 4, 100, 100) for name in "abcd"]
    candidates = [CardCandidate(card, place, CHARGE) for place, card in enumerate(cards)]
    fitting = [one for one in candidates if one.card.id not in unfit]
    choice = CardChoice(count, fitting, cards, fields.get, rejected or {}, [CHARGE] * 4)
    chosen = listed(choice)
    return chosen if isinstance(chosen, CardRefusal) else "".join(one.card.id for one in chosen)


def test_every_chooser_is_declared_and_written() -> None:
    assert set(FORMS) == set(CHOOSERS)
    assert set(CHOOSERS) >= GREEDY


def test_the_first_cards_of_the_first_list() -> None:
    assert choose(2, choices=[[3, 1, 0], [2]]) == "db"
    assert choose(2, choices=[[3]]) == "d"
    assert choose(1, choices=[[]]) == ""


def test_a_list_may_have_cards_that_do_not_fit() -> None:
    assert choose(2, "a", choices=[[0, 1]]) == "ab"


@pytest.mark.parametrize("numbers", [[0, 0], [4, 0], [0, -1]])
def test_numbers_of_no_cards(numbers: list[int]) -> None:
    with pytest.raises(EvalError, match="different numbers below 4"):
        choose(2, choices=[numbers])


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({}, CardRefusal(3)),
        ({"counted": 2, "total": 4}, CardRefusal(2, 4)),
        ({"counted": 1, "reported": []}, CardRefusal(counts={"": 1})),
        ({"counted": 1, "reported": ["Told", "Unseen"]}, CardRefusal(counts={"Told": 2})),
        ({"reported": ["Unseen"]}, CardRefusal(counts={"": 3})),
    ],
)
def test_refusals(fields: dict[str, Any], expected: CardRefusal) -> None:
    rejected = {"Told": 2, "Other": 1}
    assert choose(2, "a", rejected, choices=[], **fields) == expected
    assert choose(4, "a", rejected, choices=[[0, 1, 2, 3]], **fields) == expected
