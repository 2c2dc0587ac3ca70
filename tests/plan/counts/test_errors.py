"""Failing counts: the error is that of the first node in visiting order, of its first pod, of the first of
its terms, for any reader.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.hooks.state import CycleState
from kdsl.plan.rules.predicate_plugin import PredicatePlugin

from tests.plan.lab import filtered, predicate

ZONE = "topology.kubernetes.io/zone"
ZONES = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "other": ""}
BODY = """
require topology("topology.kubernetes.io/zone").count(p, 8 / p.priority * 1152921504606846976 > 0).total() + node.podCount >= 0 else "no"
"""
DIVISION, OVERFLOW = "division by zero", "integer overflow"
"""The count of a pod of priority 0, and of one of priority 1."""


def cluster(pods: dict[str, str]) -> ClusterCache:
    """Return a cluster of four nodes in two zones, where a pod on each of some nodes cannot be counted."""
    cache = ClusterCache()
    for name, zone in ZONES.items():
        cache.add_node(NodeFacts(name, labels=FrozenMap({ZONE: zone} if zone else {})))
        cache.add_pod(good(f"good-{name}", name))
    for name, error in pods.items():
        cache.add_pod(bad(name, error))
    return cache


def good(name: str, node: str) -> PodInfo:
    return PodInfo(name, priority=8, node_name=node)


def bad(node: str, error: str) -> PodInfo:
    return good(f"bad-{node}", node).with_fields(priority=0 if error == DIVISION else 1)


def reason(plugin: PredicatePlugin, snapshot: Snapshot) -> str:
    """Return why the nodes are rejected: all for the same, or for nothing."""
    state, nodes = CycleState(), NodeSet.all(snapshot)
    assert plugin.pre_filter(state, PodInfo("p"), nodes) is None
    column = filtered(plugin, state, PodInfo("p"), nodes)
    (found,) = {" ".join(column[at].reasons) for at in range(len(nodes))}
    return found


def visiting_order(snapshot: Snapshot) -> list[str]:
    return [snapshot.names[row] for row in snapshot.order.tolist()]


def test_nodes_are_visited_zone_by_zone() -> None:
    """Not in the order of rows, which is that in which nodes came."""
    names = visiting_order(cluster({}).snapshot())
    assert names.index("b1") < names.index("a2")


@pytest.mark.parametrize(("first", "second"), [(DIVISION, OVERFLOW), (OVERFLOW, DIVISION)])
@pytest.mark.parametrize("names", [("b1", "a2"), ("a1", "b1"), ("b1", "b2"), ("a1", "a2")])
def test_the_error_is_that_of_the_first_node(names: tuple[str, str], first: str, second: str) -> None:
    pods = {names[0]: first, names[1]: second}
    for order in (names, names[::-1]):
        assert first in reason(predicate(BODY), cluster({name: pods[name] for name in order}).snapshot())
        # PodAnswers before the pods came: they are counted one after the other.
        plugin, cache = predicate(BODY), cluster({})
        assert reason(plugin, cache.snapshot()) == ""
        for name in order:
            cache.add_pod(bad(name, pods[name]))
            assert reason(plugin, cache.snapshot())
        assert first in reason(plugin, cache.snapshot())


def test_the_error_follows_pods_that_come_and_go() -> None:
    """A tally that is asked repeatedly has the current count of each node."""
    cache, plugin = cluster({}), predicate(BODY)
    assert reason(plugin, cache.snapshot()) == ""
    cache.add_pod(bad("a2", OVERFLOW))
    assert OVERFLOW in reason(plugin, cache.snapshot())
    cache.add_pod(bad("b1", DIVISION))
    assert DIVISION in reason(plugin, cache.snapshot())
    cache.remove_pod("default/bad-b1")
    assert OVERFLOW in reason(plugin, cache.snapshot())
    cache.remove_pod("default/bad-a2")
    assert reason(plugin, cache.snapshot()) == ""


def test_a_node_that_does_not_take_part_has_no_error() -> None:
    assert reason(predicate(BODY), cluster({"other": DIVISION}).snapshot()) == ""


def test_the_error_is_that_of_the_first_node_of_an_overlay() -> None:
    snapshot, plugin = cluster({"a2": OVERFLOW}).snapshot(), predicate(BODY)

    def changed(name: str, change: Callable[[NodeInfo], NodeInfo]) -> Snapshot:
        row = snapshot.row_of(name)
        assert row is not None
        return snapshot.overlay(row, change(snapshot.info(row)))

    assert DIVISION in reason(plugin, changed("b1", lambda node: node.with_pod(bad("b1", DIVISION))))
    assert OVERFLOW in reason(plugin, changed("b2", lambda node: node.with_pod(bad("b2", DIVISION))))
    assert reason(plugin, changed("a2", lambda node: node.without_pod(bad("a2", OVERFLOW)))) == ""
    assert OVERFLOW in reason(plugin, snapshot)


@pytest.mark.parametrize("errors", [(DIVISION, OVERFLOW), (OVERFLOW, DIVISION)])
def test_the_error_is_that_of_the_first_pod_of_a_node(errors: tuple[str, str]) -> None:
    plugin, cache = predicate(BODY), cluster({})
    for number, error in enumerate(errors):
        cache.add_pod(bad("a1", error).with_fields(name=f"p{number}", uid=f"p{number}"))
        assert errors[0] in reason(plugin, cache.snapshot())
    assert errors[0] in reason(predicate(BODY), cache.snapshot())


TERMS = """
require cluster.requiredAntiAffinityTerms.sum(t, 8 / (t.topologyKey.size() - 4) * 1152921504606846976 - 1152921504606846976)
  .total() + node.podCount >= 0 else "no"
"""
KEYS = {"": "twelve.chars", DIVISION: "four", OVERFLOW: "fifth"}
"""The key of a term that counts 0, and those of terms that fail."""


def term_cluster() -> ClusterCache:
    """Return the same nodes, each in a domain of every key, with a pod whose term counts 0."""
    cache = ClusterCache()
    for name, zone in ZONES.items():
        labels = {ZONE: zone} if zone else {}
        cache.add_node(NodeFacts(name, labels=FrozenMap(labels | dict.fromkeys(KEYS.values(), name))))
        cache.add_pod(with_terms(name, ""))
    return cache


def with_terms(node: str, *errors: str) -> PodInfo:
    terms = [
        PodAffinityTerm(KEYS[error], 0, LabelSelector(()), frozenset({"default"}), None) for error in errors
    ]
    name = "-".join(("pod", node, *(KEYS[error] for error in errors)))
    return PodInfo(name, node_name=node, required_anti_affinity=tuple(terms))


@pytest.mark.parametrize(("first", "second"), [(DIVISION, OVERFLOW), (OVERFLOW, DIVISION)])
@pytest.mark.parametrize("names", [("b1", "a2"), ("a1", "b1"), ("b1", "b2"), ("a1", "a2"), ("a1", "a1")])
def test_the_error_of_a_term_is_that_of_the_first_node_and_its_first_pod(
    names: tuple[str, str], first: str, second: str
) -> None:
    pods = [with_terms(names[0], first), with_terms(names[1], second)]
    # The pods of one node are in the order in which they came.
    for order in (pods, pods[::-1]) if names[0] != names[1] else (pods,):
        known, cache = predicate(TERMS), term_cluster()
        assert reason(known, cache.snapshot()) == ""
        for pod in order:
            cache.add_pod(pod)
            assert reason(known, cache.snapshot())
        # A tally from before the pods came, and a new one.
        assert first in reason(known, cache.snapshot())
        assert first in reason(predicate(TERMS), cache.snapshot())
        cache.remove_pod(pods[0].key)
        assert second in reason(known, cache.snapshot())
        cache.remove_pod(pods[1].key)
        assert reason(known, cache.snapshot()) == ""


@pytest.mark.parametrize("errors", [(DIVISION, OVERFLOW), (OVERFLOW, DIVISION), ("", OVERFLOW, DIVISION)])
def test_the_error_of_a_term_is_that_of_the_first_term_of_its_pod(errors: tuple[str, ...]) -> None:
    first = next(filter(None, errors))
    cache = term_cluster()
    before = cache.snapshot()
    plugin, pod = predicate(TERMS), with_terms("a2", *errors)
    row = before.row_of("a2")
    assert row is not None
    assert first in reason(plugin, before.overlay(row, before.info(row).with_pod(pod)))
    assert reason(plugin, before) == ""
    cache.add_pod(pod)
    assert first in reason(plugin, cache.snapshot())


def test_the_error_of_a_term_is_that_of_the_first_node_of_an_overlay() -> None:
    cache, plugin = term_cluster(), predicate(TERMS)
    late = with_terms("a2", OVERFLOW)
    cache.add_pod(late)
    snapshot = cache.snapshot()

    def changed(name: str, change: Callable[[NodeInfo], NodeInfo]) -> Snapshot:
        row = snapshot.row_of(name)
        assert row is not None
        return snapshot.overlay(row, change(snapshot.info(row)))

    for name, wanted in (("b1", DIVISION), ("b2", OVERFLOW)):
        pod = with_terms(name, DIVISION)
        assert wanted in reason(plugin, changed(name, lambda node, pod=pod: node.with_pod(pod)))
    assert reason(plugin, changed("a2", lambda node: node.without_pod(late))) == ""
    assert OVERFLOW in reason(plugin, snapshot)


WEB: dict[str, str] = {"app": "web"}
LARGE = 10**18


def term(app: str, weight: int = 0) -> PodAffinityTerm:
    selector = LabelSelector.of_labels({"app": app})
    return PodAffinityTerm(ZONE, weight, selector, frozenset({"default"}), None)


def asked(plugin: PredicatePlugin, pod: PodInfo, cache: ClusterCache) -> set[str]:
    """Return the reasons of all nodes for a pod."""
    state, nodes = CycleState(), NodeSet.all(cache.snapshot())
    plugin.pre_filter(state, pod, nodes)
    column = filtered(plugin, state, pod, nodes)
    return {" ".join(column[at].reasons) for at in range(len(nodes))}


def test_a_first_count_is_out_of_range_where_later_ones_are() -> None:
    cache = ClusterCache()
    for name in "ab":
        cache.add_node(NodeFacts(name, labels=FrozenMap({ZONE: name})))
    for number in range(5):
        cache.add_pod(PodInfo(f"p{number}", node_name="a", priority=1, labels=FrozenMap(WEB)))
    plugin = predicate(
        f"for t in pod.requiredAffinity {{ require topology(t.topologyKey)"
        f'.sum(p, t.matches(p) ? p.priority * {LARGE} : 0).here(node) < 0 else "counted" }}'
    )
    pod = PodInfo("asks", required_affinity=(term("web"),))
    for name in "cd":
        (found,) = asked(plugin, pod, cache)
        assert OVERFLOW in found
        cache.add_node(NodeFacts(name, labels=FrozenMap({ZONE: name})))
    for number in range(4):
        cache.remove_pod(f"default/p{number}")
    assert asked(plugin, pod, cache) == {"counted"}


def test_pods_that_share_a_count_of_terms_do_not_share_an_error_of_the_past() -> None:
    cache = ClusterCache()
    cache.add_node(NodeFacts("a", labels=FrozenMap({ZONE: "a"})))
    plugin = predicate(
        f"require cluster.preferredAffinityTerms.sum(t, t.matches(pod) ? t.weight * {LARGE} : 0).here(node) < 0"
        ' else "counted"'
    )
    one, other = (PodInfo(f"{job}", labels=FrozenMap(WEB | {"job-name": job})) for job in "12")
    cache.add_pod(PodInfo("large", node_name="a", preferred_affinity=(term("web", 3),)))
    assert asked(plugin, one, cache) == {"counted"}
    cache.remove_pod("default/large")
    cache.add_pod(PodInfo("small", node_name="a", preferred_affinity=(term("web", 1),)))
    assert asked(plugin, one, cache) == {"counted"}
    for number in range(4):
        cache.add_pod(PodInfo(f"other{number}", node_name="a", preferred_affinity=(term("database", 1),)))
    assert asked(plugin, one, cache) == asked(plugin, other, cache) == {"counted"}
    for number in range(4, 9):
        cache.add_pod(PodInfo(f"other{number}", node_name="a", preferred_affinity=(term("database", 1),)))
    for pod in (one, other):
        (found,) = asked(plugin, pod, cache)
        assert OVERFLOW in found
