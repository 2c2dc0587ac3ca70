"""Changes between two pods of one signature: other nodes and pods in an overlay, renumbered node classes, and
terms that come and go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kdsl.base.bounded_memo import MIN_SIGNATURES
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot import node_classes
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.state import CycleState
from kdsl.plan.memo import skips as skips_module
from kdsl.plan.memo.predicates import PredicateMemo
from kdsl.plan.memo.scores import ScoreMemo

from tests.plan.lab import compile_rules, predicate, score
from tests.plan.memo.test_joined import column_of, joined_answers, profile_of
from tests.plan.memo.totals import totals_of

ZONE = FrozenMap({"zone": "z"})


def rejected(joined: PredicateMemo, pod: PodInfo, nodes: NodeSet) -> list[bool]:
    """Return for each node whether it is rejected."""
    _, statuses = joined_answers(joined, pod, nodes)
    return [bool(status) for status in statuses]


def skipping(joined: PredicateMemo, pod: PodInfo, cache: ClusterCache) -> bool:
    """Return whether the only predicate skips a pod."""
    return bool(joined.pre_filter(CycleState(), pod, NodeSet.all(cache.snapshot())).skipping)


# ---- overlays ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    ["!node.unschedulable", "!node.unschedulable && node.podCount < 9", '"zone" in node.labels'],
)
def test_a_node_that_is_another_one_in_an_overlay_is_judged_as_it_is_there(condition: str) -> None:
    joined, cache, pod = (
        PredicateMemo([predicate(f'require {condition} else "no"')]),
        ClusterCache(),
        PodInfo("p"),
    )
    closed = NodeFacts("n1", unschedulable=True)
    cache.add_node(closed)
    nodes, state = NodeSet.all(cache.snapshot()), CycleState()
    joined.pre_filter(state, pod, nodes)
    assert rejected(joined, pod, nodes) == [True]
    (row,) = nodes.rows.tolist()
    opened = nodes.snapshot.info(row).with_facts(replace(closed, unschedulable=False, labels=ZONE))
    for node, is_rejected in ((opened, False), (opened.with_pod(PodInfo("q", node_name="n1")), False)):
        one = NodeSet(nodes.snapshot.overlay(row, node), np.array([row], np.int32))
        assert bool(column_of(joined, state, pod, one).ids[0]) is is_rejected
    # Nothing of it is kept.
    assert rejected(joined, pod, nodes) == [True]


def test_a_node_of_an_overlay_of_many_is_judged_as_it_is_there() -> None:
    joined, cache, pod = (
        PredicateMemo([predicate('require node.podCount < 1 else "no"')]),
        ClusterCache(),
        PodInfo("p"),
    )
    for name in ("n1", "n2"):
        cache.add_node(NodeFacts(name))
    nodes, state = NodeSet.all(cache.snapshot()), CycleState()
    joined.pre_filter(state, pod, nodes)
    snapshot = nodes.snapshot
    for name in ("n1", "n2"):
        row = snapshot.row_of(name)
        assert row is not None
        snapshot = snapshot.overlay(row, snapshot.info(row).with_pod(PodInfo("q", node_name=name)))
        both = NodeSet(snapshot, nodes.rows)
        expected = [snapshot.info(row).pod_count > 0 for row in nodes.rows.tolist()]
        assert [bool(each) for each in column_of(joined, state, pod, both).ids] == expected
        for at, is_rejected in enumerate(expected):
            one = NodeSet(snapshot, nodes.rows[at : at + 1])
            assert bool(column_of(joined, state, pod, one).ids[0]) is is_rejected


# ---- looks that are numbered anew --------------------------------------------------------------------------


@pytest.fixture
def few_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renumber node classes as soon as there are more than nodes could have."""
    monkeypatch.setattr(node_classes, "_SPARE", -1)


LOADS = [
    (0, 3),
    (1, 1),
    (2, 0),
    (3, 3),
    (0, 0),
    (3, 1),
    (1, 0),
    (2, 2),
    (0, 1),
    (3, 0),
    (1, 3),
    (2, 1),
    (0, 2),
] * 2
"""The numbers of pods of two nodes, one after the other."""


def load(cache: ClusterCache, counts: tuple[int, int]) -> None:
    """Give two nodes so many pods."""
    for name, count in zip(("n1", "n2"), counts, strict=True):
        for number in range(4):
            key = f"{name}-{number}"
            if number < count:
                cache.add_pod(PodInfo(key, node_name=name))
            else:
                cache.remove_pod(f"default/{key}")


@pytest.mark.usefixtures("few_numbers")
def test_predicates_are_right_after_node_classes_were_renumbered() -> None:
    joined, cache = (
        PredicateMemo([predicate('require node.podCount < 2 else "${node.podCount}"')]),
        ClusterCache(),
    )
    for name in ("n1", "n2"):
        cache.add_node(NodeFacts(name))
    generations = set()
    for counts in LOADS:
        load(cache, counts)
        nodes = NodeSet.all(cache.snapshot())
        _, statuses = joined_answers(joined, PodInfo("p"), nodes)
        expected = [(str(count),) if count >= 2 else () for count in counts]
        assert [status[2] if status else () for status in statuses] == expected
        generations.add(nodes.snapshot.live.node_classes.generation)
    assert len(generations) > 3


@pytest.mark.usefixtures("few_numbers")
def test_scores_are_right_after_node_classes_were_renumbered() -> None:
    joined, cache = ScoreMemo([score("value node.podCount * 10")]), ClusterCache()
    for name in ("n1", "n2"):
        cache.add_node(NodeFacts(name))
    for counts in LOADS:
        load(cache, counts)
        totals = totals_of(joined, PodInfo("p"), NodeSet.all(cache.snapshot()))
        assert totals == [20 * count for count in counts]


@pytest.mark.usefixtures("few_numbers")
def test_facts_are_right_after_node_classes_were_renumbered() -> None:
    joined, cache = (
        PredicateMemo([predicate('require node.allocatable["cpu"] > quantity("2") else "no"')]),
        ClusterCache(),
    )
    for cpu in (1, 3, 2, 4, 1, 2, 3, 5, 4, 1, 3, 2) * 2:
        cache.add_node(NodeFacts("n1", allocatable=Resources({"cpu": cpu * 1000})))
        assert rejected(joined, PodInfo("p"), NodeSet.all(cache.snapshot())) == [cpu <= 2]


def test_rows_get_other_nodes() -> None:
    """A new node has the row of a removed one; answers that depend on labels are kept by row."""
    joined, cache = PredicateMemo([predicate('require "zone" in node.labels else "no"')]), ClusterCache()
    for number in range(6):
        cache.remove_node(f"n{number - 1}")
        labels = ZONE if number % 3 else FrozenMap({})
        cache.add_node(NodeFacts(f"n{number}", labels=labels))
        nodes = NodeSet.all(cache.snapshot())
        assert rejected(joined, PodInfo("p"), nodes) == [number % 3 == 0]
        assert nodes.rows.tolist() in ([0], [1])


# ---- rules that skip a kind of pod -------------------------------------------------------------------------

TERM = PodAffinityTerm("zone", 0, LabelSelector.of_labels({"app": "web"}), frozenset({"default"}), None)
WEB, DATABASE = FrozenMap({"app": "web"}), FrozenMap({"app": "database"})
REPELLED = """
applies when cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).total() > 0
require cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).here(node) == 0 else "repelled"
"""


def test_a_rule_about_terms_applies_as_soon_as_a_pod_has_one() -> None:
    joined, cache = PredicateMemo([predicate(REPELLED)]), ClusterCache()
    cache.add_node(NodeFacts("n1", labels=ZONE))
    web, database = PodInfo("p", labels=WEB), PodInfo("p", labels=DATABASE)
    for _ in range(2):
        assert skipping(joined, web, cache)
        assert skipping(joined, database, cache)
        cache.add_pod(PodInfo("q", node_name="n1", required_anti_affinity=(TERM,)))
        assert not skipping(joined, web, cache)
        assert skipping(joined, database, cache)
        assert rejected(joined, web, NodeSet.all(cache.snapshot())) == [True]
        cache.remove_pod("default/q")


def test_a_rule_about_terms_applies_as_soon_as_the_node_of_a_pod_has_the_label() -> None:
    joined, cache = PredicateMemo([predicate(REPELLED)]), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    cache.add_pod(PodInfo("q", node_name="n1", required_anti_affinity=(TERM,)))
    web = PodInfo("p", labels=WEB)
    for _ in range(2):
        assert skipping(joined, web, cache)
        cache.update_node(NodeFacts("n1", labels=ZONE))
        assert not skipping(joined, web, cache)
        cache.update_node(NodeFacts("n1"))


def test_a_rule_about_terms_applies_once_one_of_many_matches() -> None:
    joined, cache = PredicateMemo([predicate(REPELLED)]), ClusterCache()
    cache.add_node(NodeFacts("n1", labels=ZONE))
    other = replace(TERM, selector=LabelSelector.of_labels({"app": "cache"}))
    cache.add_pod(PodInfo("r", node_name="n1", required_anti_affinity=(other,)))
    web = PodInfo("p", labels=WEB)
    for _ in range(2):
        assert skipping(joined, web, cache)
        cache.add_pod(PodInfo("q", node_name="n1", required_anti_affinity=(TERM,)))
        assert not skipping(joined, web, cache)
        cache.remove_pod("default/q")
    assert skipping(joined, web, cache)


@pytest.mark.parametrize(
    "condition",
    [
        "cluster.pods.size() > 1",
        "cluster.pods.exists(p, p.name == 'q')",
        "cluster.nodes.exists(n, n.podCount > 1)",
        'topology("zone").count(p, p.name == "q").total() > 0',
        'topology("zone").count(p, p.name == "q").least(1) > 0',
    ],
)
def test_a_rule_about_other_pods_applies_as_soon_as_they_are_there(condition: str) -> None:
    joined = PredicateMemo([predicate(f'applies when {condition}\nrequire node.podCount < 0 else "no"')])
    cache = ClusterCache()
    cache.add_node(NodeFacts("n1", labels=ZONE))
    cache.add_pod(PodInfo("r", node_name="n1"))
    for _ in range(2):
        assert skipping(joined, PodInfo("p"), cache)
        cache.add_pod(PodInfo("q", node_name="n1"))
        assert not skipping(joined, PodInfo("p"), cache)
        assert rejected(joined, PodInfo("p"), NodeSet.all(cache.snapshot())) == [True]
        cache.remove_pod("default/q")


def test_a_rule_about_the_number_of_nodes_applies_as_soon_as_there_are_enough() -> None:
    body = 'applies when cluster.nodeCount > 1\nrequire node.podCount + cluster.pods.size() < 0 else "no"'
    joined, cache = PredicateMemo([predicate(body)]), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    for _ in range(2):
        assert skipping(joined, PodInfo("p"), cache)
        cache.add_node(NodeFacts("n2"))
        assert not skipping(joined, PodInfo("p"), cache)
        cache.remove_node("n2")


def test_answers_are_not_shared_between_clusters() -> None:
    joined, one, other = PredicateMemo([predicate(REPELLED)]), ClusterCache(), ClusterCache()
    for cache in (one, other):
        cache.add_node(NodeFacts("n1", labels=ZONE))
    other.add_pod(PodInfo("q", node_name="n1", required_anti_affinity=(TERM,)))
    for _ in range(2):
        assert skipping(joined, PodInfo("p", labels=WEB), one)
        assert not skipping(joined, PodInfo("p", labels=WEB), other)


@pytest.mark.parametrize("unknown", ["pod.name != 'p'", "pod.uid != '1'"])
def test_a_rule_that_reads_a_unique_field_is_not_known_to_skip(unknown: str) -> None:
    """The pods share all signatures: the other rule skips both, this one only the first."""
    bodies = [
        f'applies when {unknown} && cluster.pods.size() >= 0\nrequire node.podCount < 0 else "named"',
        f"{REPELLED.strip()}",
        'applies when pod.priority > 5 && cluster.pods.size() >= 0\nrequire node.podCount < 0 else "urgent"',
    ]
    joined, cache = PredicateMemo(compile_rules(profile_of(bodies)).predicates), ClusterCache()
    cache.add_node(NodeFacts("n1", labels=ZONE))
    for pod, skips in ((PodInfo("p", uid="1"), True), (PodInfo("q", uid="2"), False)) * 2:
        nodes = NodeSet.all(cache.snapshot())
        found, (status,) = joined_answers(joined, pod, nodes)
        assert {name for name, _ in found} == ({"P0", "P1", "P2"} if skips else {"P1", "P2"})
        assert bool(status) is not skips
    urgent = PodInfo("u", uid="1", priority=6)
    assert {name for name, _ in joined_answers(joined, urgent, NodeSet.all(cache.snapshot()))[0]} == (
        {"P1"} if "name" in unknown else {"P0", "P1"}
    )


def test_known_skips_of_the_live_cluster_do_not_hold_for_an_overlay() -> None:
    joined, cache = PredicateMemo([predicate(REPELLED)]), ClusterCache()
    cache.add_node(NodeFacts("n1", labels=ZONE))
    web, nodes = PodInfo("p", labels=WEB), NodeSet.all(cache.snapshot())
    assert skipping(joined, web, cache)
    (row,) = nodes.rows.tolist()
    changed = nodes.snapshot.info(row).with_pod(PodInfo("q", node_name="n1", required_anti_affinity=(TERM,)))
    overlay = NodeSet(nodes.snapshot.overlay(row, changed), nodes.rows)
    assert not joined.pre_filter(CycleState(), web, overlay).skipping
    assert rejected(joined, web, overlay) == [True]
    assert skipping(joined, web, cache)


CROWDED = """
  let web = cluster.topology("zone").count(p, p.labels[?"app"] == pod.labels[?"app"])
  require web.here(node) < 2 else "crowded"
"""


@pytest.mark.parametrize("is_what_if_first", [True, False])
def test_counts_of_a_what_if_are_its_own(is_what_if_first: bool) -> None:
    joined, cache = PredicateMemo([predicate(CROWDED)]), ClusterCache()
    cache.add_node(NodeFacts("n1", labels=ZONE))
    cache.add_pod(PodInfo("a", labels=WEB, node_name="n1"))

    def with_pods(more: int) -> NodeSet:
        nodes = NodeSet.all(cache.snapshot())
        (row,) = nodes.rows.tolist()
        node = nodes.snapshot.info(row)
        for number in range(more):
            node = node.with_pod(PodInfo(f"what-if-{number}", labels=WEB, node_name="n1"))
        return NodeSet(nodes.snapshot.overlay(row, node), nodes.rows) if more else nodes

    for _ in range(4):
        for more in (1, 0, 2, 0) if is_what_if_first else (0, 1, 0, 2):
            assert rejected(joined, PodInfo("p", labels=WEB), with_pods(more)) == [more > 0]
    cache.add_pod(PodInfo("b", labels=WEB, node_name="n1"))
    assert rejected(joined, PodInfo("p", labels=WEB), with_pods(0)) == [True]
    cache.remove_pod("default/a")
    cache.remove_pod("default/b")
    assert rejected(joined, PodInfo("p", labels=WEB), with_pods(1)) == [False]


def test_known_skips_of_few_signatures_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skips_module, "MAX_SKIP_BYTES", 1)
    joined, cache = PredicateMemo([predicate(REPELLED)]), ClusterCache()
    cache.add_node(NodeFacts("n1", labels=ZONE))
    for number in range(10):
        assert skipping(joined, PodInfo("p", labels=FrozenMap({"app": f"{number}"})), cache)
        assert len(joined._skips._memo._memo._entries) <= MIN_SIGNATURES


def test_a_rule_that_skips_a_signature_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = skips_module.Skips._record

    def watched(skips: skips_module.Skips, pod: PodInfo, entry: Any) -> None:
        asked.append(pod.name)
        ask(skips, pod, entry)

    monkeypatch.setattr(skips_module.Skips, "_record", watched)
    joined, cache = PredicateMemo([predicate(REPELLED)]), ClusterCache()
    cache.add_node(NodeFacts("n1", labels=ZONE))
    for name in ("a", "b", "c"):
        assert skipping(joined, PodInfo(name, labels=WEB), cache)
        cache.add_pod(PodInfo(name, labels=WEB, node_name="n1"))
    assert asked == ["a"]
    nodes = NodeSet.all(cache.snapshot())
    (row,) = nodes.rows.tolist()
    overlay = nodes.snapshot.overlay(row, nodes.snapshot.info(row))
    joined.pre_filter(CycleState(), PodInfo("d", labels=WEB), NodeSet(overlay, nodes.rows))
    assert asked == ["a"]


# ---- counts ------------------------------------------------------------------------------------------------


def test_lists_of_lists_of_counts_are_updated_when_a_pod_comes() -> None:
    counts = 'pod.labels.map(k, pod.images.map(i, topology("zone").count(p, k in p.labels && i in p.images)))'
    condition = "counts.all(each, each.all(count, count.here(node) == 0))"
    joined = PredicateMemo([predicate(f'let counts = {counts}\nrequire {condition} else "taken"')])
    cache, pod = ClusterCache(), PodInfo("p", labels=FrozenMap({"a": "", "b": ""}), images=("i", "j"))
    for name, zone in (("n1", "z"), ("n2", "y")):
        cache.add_node(NodeFacts(name, labels=FrozenMap({"zone": zone})))
    assert rejected(joined, pod, NodeSet.all(cache.snapshot())) == [False, False]
    cache.add_pod(pod.with_fields(name="other", node_name="n2"))
    expected = [name == "n2" for name in NodeSet.all(cache.snapshot()).names()]
    assert rejected(joined, pod, NodeSet.all(cache.snapshot())) == expected
