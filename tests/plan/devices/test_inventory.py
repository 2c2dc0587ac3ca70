from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.cluster.objects.node import NodeFacts
from kdsl.plan.devices.device_error import DeviceError
from kdsl.plan.devices.inventories import Inventories

from tests.plan.devices.devices import card, node, small


def test_cards() -> None:
    register = '[{"id": "a", "memory": 7}, {"id": "b", "memory": 9, "numa": 1}]'
    expected = (card("a", memory=7), card("b", memory=9, numa=1))
    assert small().inventory.cards(node(register)) == expected


@pytest.mark.parametrize(
    "register, message, place",
    [
        ("[", "invalid JSON", "11:24"),
        ("null", "the inventory must be a list, not null", "11:24"),
        ('{"id": "a"}', "the inventory must be a list, not map", "11:24"),
        ('[{"id": 3, "memory": 1}]', "entry 1: `id` must be a text, not int", "12:14"),
        ('[{"id": "a", "memory": 1.5}]', "entry 1: `memory` must be a whole number, not double", "14:18"),
        ('[{"id": "a", "memory": 4294967296}]', "entry 1: `memory` is beyond 32 bits", "14:18"),
        ('[{"id": "b", "memory": 1}, {"id": "a"}]', "entry 2: no such key: memory", "14:18"),
        ('[{"id": "a", "memory": 1}, {"id": "a", "memory": 1}]', "card `a` is registered 2 times", "11:24"),
    ],
)
def test_unreadable(register: str, message: str, place: str) -> None:
    with pytest.raises(DeviceError) as caught:
        small().inventory.cards(node(register))
    assert caught.value.message == f"annotation register: {message}"
    assert caught.value.site == f"small.kdsl:{place}"


def test_the_key_of_an_entry_is_told_where_it_is_not_the_name_of_the_field() -> None:
    device = small(more="set healthy = row[?'ok'].orValue(true)")
    with pytest.raises(DeviceError) as caught:
        device.inventory.cards(node('[{"id": "a", "memory": 1, "ok": 7}]'))
    assert caught.value.message.endswith("entry 1: `healthy` must be true or false, not int (from `ok`)")


@pytest.mark.parametrize(
    "near, message",
    [
        ("{", "annotation near: invalid JSON"),
        ('["a"]', "annotation near: `attributes` must be a map, not string"),
    ],
)
def test_the_annotation_that_failed_is_told(near: str, message: str) -> None:
    more = 'let near = json.decode(node.annotations[?"near"].orValue("[]"))\n    set attributes = near[0]'
    device = small(more=more)
    both = DeviceNode("n", annotations={"register": '[{"id": "a", "memory": 1}]', "near": near, "other": "x"})
    with pytest.raises(DeviceError) as caught:
        device.inventory.cards(both)
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
    assert small(rows=written).inventory.needed == {"register"}


def test_an_update_matters_where_rules_read_it() -> None:
    before = NodeFacts(name="n", annotations=FrozenMap({"register": "[]", "beat": "1"}))
    later = NodeFacts(name="n", annotations=FrozenMap({"register": "[]", "beat": "2"}))
    other = NodeFacts(name="n", annotations=FrozenMap({"beat": "1"}))
    labelled = NodeFacts(name="n", annotations=before.annotations, labels=FrozenMap({"zone": "a"}))
    inputs = Inventories({"K": small()})
    assert inputs.reads_same(before, later)
    assert not any(inputs.reads_same(before, each) for each in (other, labelled))
    for name in ("labels", "device_capacity"):
        first, second = (
            NodeFacts(name="n", **{name: FrozenMap(entries)})
            for entries in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
        )
        assert inputs.reads_same(first, first) and not inputs.reads_same(first, second)
    anything = Inventories({"K": small(), "L": small(rows="node.annotations.map(key, json.decode(key))")})
    assert not anything.reads_same(before, later)
