from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.eval.values import EvalError
from kdsl.plan.devices.inventories import Inventories

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


def test_a_node_without_the_keys_of_an_inventory_has_no_cards() -> None:
    inventories = Inventories({"K": small(), "L": small(rows="json.decode('[]')")})
    register = '[{"id": "a", "memory": 7}]'
    facts = [
        NodeFacts(name="bare", annotations=FrozenMap({"other": "x"})),
        NodeFacts(name="has", annotations=FrozenMap({"register": register})),
        NodeFacts(name="none", annotations=FrozenMap({"register": "[]"})),
    ]
    assert [len(inventories.inventory(each).cards) for each in facts] == [0, 1, 0]


@pytest.mark.parametrize(
    "rows",
    [
        "node.annotations.map(key, json.decode(key))",
        """json.decode(node.annotations[?"register"].orValue('[{"id": "a", "memory": 7}]'))""",
        """json.decode(node.name == "x" ? '[{"id": "a", "memory": 7}]' : "[]")""",
        'json.decode(node.annotations[?"register" + node.name].orValue("[]"))',
        'json.decode(node.annotations[?"register"].orValue("no JSON"))',
    ],
)
def test_other_inventories_are_always_read(rows: str) -> None:
    written = 'json.decode(node.annotations[?"register"].orValue("[]"))'
    assert small(rows=rows).inventory.needed is None
    assert small(rows=written).inventory.needed == {"annotations": {"register"}}


def test_an_update_matters_where_rules_read_it() -> None:
    before = NodeFacts(name="n", annotations=FrozenMap({"register": "[]", "beat": "1"}))
    later = NodeFacts(name="n", annotations=FrozenMap({"register": "[]", "beat": "2"}))
    other = NodeFacts(name="n", annotations=FrozenMap({"beat": "1"}))
    labelled = NodeFacts(name="n", annotations=before.annotations, labels=FrozenMap({"zone": "a"}))
    inputs = Inventories({"K": small()}).inputs
    assert inputs.are_equal(before, later)
    assert not any(inputs.are_equal(before, each) for each in (other, labelled))
    for name in ("labels", "device_capacity"):
        first, second = (
            NodeFacts(name="n", **{name: FrozenMap(entries)})
            for entries in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
        )
        assert inputs.are_equal(first, first) and not inputs.are_equal(first, second)
    anything = Inventories(
        {"K": small(), "L": small(rows="node.annotations.map(key, json.decode(key))")}
    ).inputs
    assert not anything.are_equal(before, later)
