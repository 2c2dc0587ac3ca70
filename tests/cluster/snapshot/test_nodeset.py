"""Sets of nodes, by the labels that decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot


def zones(snapshot: Snapshot, count: int = 6) -> tuple[list[str], list[str]]:
    """Return the zones of the nodes that stand for all, and the zone of the one that stands for each node."""
    nodes = NodeSet(snapshot, snapshot.order[:count])
    firsts, places = nodes.by_labels({"zone": None})
    found = [node.labels["zone"] for node in firsts.nodes()]
    return found, [found[place] for place in places.tolist()]


def test_one_node_of_each_combination_of_labels_stands_for_the_others() -> None:
    cache = ClusterCache()
    for number in range(6):
        cache.add_node(NodeFacts(f"n{number}", labels=FrozenMap({"zone": "xyz"[number % 3]})))
    live = cache.snapshot()
    each = list("xyzxyz")
    assert zones(live) == (["x", "y", "z"], each)
    # Values that do not decide count as one.
    firsts, places = NodeSet.all(live).by_labels({"zone": {"z", "none"}})
    assert (len(firsts), places.tolist()) == (2, [0, 0, 1, 0, 0, 1])
    row = int(live.order[0])
    node = live.info(row)
    with_other_pods = live.overlay(row, node.with_pod(PodInfo("p")))
    assert zones(with_other_pods) == (["x", "y", "z"], each)
    assert zones(with_other_pods, 1) == (["x"], ["x"])
    moved = node.with_facts(replace(node.facts, labels=FrozenMap({"zone": "y"})))
    assert zones(live.overlay(row, moved)) == (["y", *each[1:]], ["y", *each[1:]])


def test_the_first_node_of_each_number_comes_in_the_order_of_the_nodes() -> None:
    cache = ClusterCache()
    for number in range(5):
        cache.add_node(NodeFacts(f"n{number}"))
    nodes = NodeSet.all(cache.snapshot())
    firsts, places = nodes.by_numbers(np.array([7, -2, 7, 3, -2]))
    assert firsts.rows.tolist() == nodes.rows[[0, 1, 3]].tolist()
    assert places.tolist() == [0, 1, 0, 2, 1]
