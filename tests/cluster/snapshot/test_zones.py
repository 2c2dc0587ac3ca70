"""Visiting order: zones take turns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kdsl.cluster.snapshot.zones import ZoneOrder, zone_of

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def order(nodes: list[tuple[str, str]]) -> ZoneOrder:
    zones = ZoneOrder()
    for name, zone in nodes:
        zones.put(name, {ZONE: zone} if zone else {})
    return zones


def test_zones_take_turns_in_the_order_they_were_seen() -> None:
    zones = order([("a", "2"), ("b", "2"), ("c", "1"), ("d", ""), ("e", "2"), ("f", "1")])
    assert list(zones.names()) == ["a", "c", "d", "b", "f", "e"]


def test_a_zone_without_nodes_loses_its_place() -> None:
    zones = order([("a", "1"), ("b", "2"), ("c", "2")])
    zones.remove("a")
    zones.remove("nobody")
    zones.put("a", {ZONE: "1"})
    assert list(zones.names()) == ["b", "a", "c"]


def test_a_node_that_moves_goes_to_the_end_of_its_new_zone() -> None:
    zones = order([("a", "1"), ("b", "1"), ("c", "2")])
    zones.put("b", {ZONE: "1", "other": "x"})
    assert list(zones.names()) == ["a", "c", "b"]
    zones.put("a", {ZONE: "2"})
    assert list(zones.names()) == ["b", "c", "a"]


def test_beta_labels_win_and_regions_tell_zones_apart() -> None:
    assert zone_of({OLD_ZONE: "old", ZONE: "new"}) == ("", "old")
    assert zone_of({REGION: "r", ZONE: "z"}) != zone_of({REGION: "s", ZONE: "z"})
    assert zone_of({}) == zone_of({ZONE: ""})


@given(st.lists(st.tuples(st.integers(0, 30).map(str), st.sampled_from(["", "1", "2", "3"])), max_size=60))
def test_every_node_is_visited_once(nodes: list[tuple[str, str]]) -> None:
    visited = list(order(nodes).names())
    assert sorted(visited) == sorted(dict(nodes))
