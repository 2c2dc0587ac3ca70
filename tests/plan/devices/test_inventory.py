from __future__ import annotations

import pytest
from kdsl.plan.values import EvalError

from tests.plan.devices.devices import card, node, small


def test_cards() -> None:
    register = '[{"id": "a", "memory": 7}, {"id": "b", "memory": 9, "numa": 1}]'
    expected = (card("a", memory=7), card("b", memory=9, numa=1))
    assert small().inventory.cards(node(register)) == expected


@pytest.mark.parametrize(
    "register, message",
    [
        ("[", "invalid JSON"),
        ('{"id": "a"}', "the inventory must be a list, not map"),
        ('[{"id": 3, "memory": 1}]', "`id` must be a text, not int"),
        ('[{"id": "a", "memory": 1.5}]', "`memory` must be a whole number, not double"),
        ('[{"id": "a", "memory": 4294967296}]', "`memory` is beyond 32 bits"),
        ('[{"id": "a"}]', "no such key: memory"),
    ],
)
def test_unreadable(register: str, message: str) -> None:
    with pytest.raises(EvalError) as caught:
        small().inventory.cards(node(register))
    assert caught.value.message == message
