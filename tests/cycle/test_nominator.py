"""Who is promised which node, and who must leave room for whom."""

from __future__ import annotations

from itertools import pairwise

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.nominator import Nominator

from tests.cycle.world import pod


def rivals(nominator: Nominator, of: PodInfo) -> dict[str, list[str]]:
    return {node: [other.name for other in pods] for node, pods in nominator.rivals(of).items()}


def test_rivals_have_at_least_the_priority_and_are_other_pods() -> None:
    nominator = Nominator()
    for name, node, priority in (("a", "n0", 5), ("b", "n0", 3), ("c", "n0", 9), ("d", "n1", 1)):
        nominator.add(pod(name, priority=priority), node)
    assert rivals(nominator, pod("p", priority=5)) == {"n0": ["a", "c"]}
    assert rivals(nominator, pod("a", priority=5)) == {"n0": ["c"]}
    assert rivals(nominator, pod("p", priority=10)) == {}


def test_the_status_of_the_pod_is_where_it_starts() -> None:
    nominator = Nominator()
    waiting = pod("a", nominated_node_name="n1")
    assert nominator.node_of(waiting) == "n1"
    nominator.add(waiting)
    assert rivals(nominator, pod()) == {"n1": ["a"]}


def test_an_update_without_a_node_keeps_the_nomination() -> None:
    nominator = Nominator()
    nominator.add(pod("a"), "n1")
    nominator.add(pod("a", labels={}))
    assert rivals(nominator, pod()) == {"n1": ["a"]}


def test_a_new_node_replaces_the_old_one() -> None:
    nominator = Nominator()
    nominator.add(pod("a"), "n1")
    nominator.add(pod("a"), "n2")
    assert rivals(nominator, pod()) == {"n2": ["a"]}
    assert nominator.node_of(pod("a")) == "n2"


def test_clear_outlives_what_the_status_says() -> None:
    nominator = Nominator()
    waiting = pod("a", nominated_node_name="n1")
    nominator.add(waiting)
    nominator.clear(waiting)
    assert nominator.node_of(waiting) == ""
    assert rivals(nominator, pod()) == {}


def test_bound_and_deleted_pods_are_not_nominated() -> None:
    nominator = Nominator()
    nominator.add(pod("a", node_name="n0"), "n1")
    nominator.add(pod("b"), "n1")
    nominator.delete(pod("b"))
    assert rivals(nominator, pod()) == {}


def test_pods_without_uid_are_told_apart_by_key() -> None:
    nominator = Nominator()
    nominator.add(PodInfo("a"), "n0")
    nominator.add(PodInfo("b"), "n0")
    assert rivals(nominator, PodInfo("a")) == {"n0": ["b"]}


def test_the_version_that_was_nominated_leaves_the_room() -> None:
    """Another scheduler binds the pod elsewhere, without the cards that were kept for it."""
    left: list[PodInfo] = []
    nominator = Nominator(left.append)
    for name, node in (("a", "n1"), ("b", "n1"), ("c", "n2")):
        nominator.add(pod(name), node)
    nominator.delete(pod("a", node_name="n2"), placed_on="n2")
    nominator.add(pod("b", labels={"x": "y"}), "n2")
    nominator.delete(pod("c", node_name="n2"), placed_on="n2")
    assert left == [pod("a"), pod("b")]


def test_a_pod_that_changes_with_its_status_keeps_its_node_and_is_told() -> None:
    changed: list[tuple[str, str]] = []
    nominator = Nominator(changed=lambda before, after: changed.append((before.phase, after.phase)))
    versions = [
        pod("a", phase="1"),
        pod("a", phase="2", nominated_node_name="n1"),
        pod("a", phase="3", nominated_node_name="n1"),
        pod("a", phase="4", nominated_node_name="n2"),
        pod("a", phase="5"),
    ]
    nominator.add(versions[0], "n1")
    for before, after in pairwise(versions):
        nominator.renominate(before, after)
    assert changed == [("1", "2"), ("2", "3")]
    assert nominator.node_of(versions[-1]) == ""
