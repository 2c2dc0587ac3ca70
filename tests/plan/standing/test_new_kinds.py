"""Of a kind of pod that is met for the first time nothing is kept: it may never come again."""

from __future__ import annotations

import pytest
from kdsl.cluster.cache import ClusterCache
from kdsl.cluster.node import NodeFacts
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.hooks.state import CycleState
from kdsl.plan.standing import answers, skips
from kdsl.plan.standing.answers import Kinds, Unkept
from kdsl.plan.standing.predicates import JoinedPredicates

from tests.plan.lab import predicate
from tests.plan.standing.test_joined import column_of


def test_a_kind_is_met_once_and_forgotten_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_MET", 2)
    kinds: Kinds[Unkept] = Kinds()
    assert [kinds.meet(each) for each in "aabab"] == [False, True, False, True, True]
    assert [kinds.meet(each) for each in "caa"] == [False, False, True]


def test_answers_are_kept_from_the_second_pod_on() -> None:
    joined, cache = JoinedPredicates([predicate('require node.podCount < 1 else "no"')]), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    nodes = NodeSet.all(cache.snapshot())
    held: list[int] = []
    for name in ("a", "b", "c"):
        state = CycleState()
        joined.pre_filter(state, PodInfo(name), nodes)
        assert column_of(joined, state, PodInfo(name), nodes).ids.tolist() == [0]
        held.append(len(joined._kinds._kinds))
    assert held == [0, 1, 1]


def test_what_ifs_of_a_new_kind_are_kept_for_its_attempt() -> None:
    joined, cache = JoinedPredicates([predicate('require node.podCount < 1 else "no"')]), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    nodes, state, pod = NodeSet.all(cache.snapshot()), CycleState(), PodInfo("a")
    joined.pre_filter(state, pod, nodes)
    (row,) = nodes.rows.tolist()
    crowded = nodes.snapshot.info(row).with_pod(PodInfo("q", node_name="n1"))
    overlay = NodeSet(nodes.snapshot.overlay(row, crowded), nodes.rows)
    for _ in range(2):
        assert column_of(joined, state, pod, overlay).ids.tolist() != [0]
        assert column_of(joined, state, pod, nodes).ids.tolist() == [0]


def test_kinds_that_may_be_skipped_are_forgotten_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skips, "MAX_MET", 2)
    known = JoinedPredicates([predicate('require node.podCount < 1 else "no"')])._skips
    assert [known._is_met(each) for each in (1, 1, 2, 1, 3, 1)] == [False, True, False, True, False, False]
