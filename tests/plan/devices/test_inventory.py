from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.cluster.objects.node import NodeFacts
from kdsl.eval.values import EvalError
from kdsl.plan.devices.inventory import InventoryProgram
from kdsl.plan.devices.stock import Stock

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


def test_kinds_of_which_a_node_has_nothing_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program = small()
    stock, read = Stock({"K": program}), list[str]()
    asked = InventoryProgram.read

    def noted(self: InventoryProgram, node: DeviceNode) -> object:
        read.append(node.name)
        return asked(self, node)

    monkeypatch.setattr(InventoryProgram, "read", noted)
    register = '[{"id": "a", "memory": 7}]'
    facts = [
        NodeFacts(name="bare", annotations=FrozenMap({"other": "x"})),
        NodeFacts(name="bare2"),
        NodeFacts(name="has", annotations=FrozenMap({"register": register})),
        NodeFacts(name="bare3"),
    ]
    assert [len(stock.inventory(each).cards) for each in facts] == [0, 0, 1, 0]
    assert read == ["bare", "has"]
