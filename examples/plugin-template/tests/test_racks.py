"""The plugin without a scheduler: functions are functions, hooks are methods."""

import pytest
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.hooks import Code
from kdsl_racks.functions import distance, rack_of
from kdsl_racks.plugin import Racks


def node(rack: str) -> NodeInfo:
    return NodeInfo.of(NodeFacts("n", labels={"example.com/rack": rack} if rack else {}))


@pytest.mark.parametrize(
    ("one", "other", "levels"),
    [("a.b.c", "a.b.c", 0), ("a.b.c", "a.b.d", 1), ("a.b.c", "a.x.c", 2), ("a", "b", 1)],
)
def test_distance(one: str, other: str, levels: int) -> None:
    assert distance(one, other) == distance(other, one) == levels


def test_racks_of_different_depth_have_no_distance() -> None:
    with pytest.raises(ValueError, match="not named alike"):
        distance("a.b", "a")


def test_the_rack_of_a_node() -> None:
    assert [rack_of(node("a.b")), rack_of(node(""))] == ["a.b", ""]


def test_closed_racks_take_no_pods() -> None:
    racks = Racks({"closed": ["a.b"]}, None)
    assert racks.filter_node(node("a.c")) is None
    assert racks.filter_node(node("a.b")).code is Code.UNRESOLVABLE
