"""Answers for a signature that was never seen are not kept: it may never come again."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest
from kdsl.base.bounded_memo import Memo
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.joined import UNKNOWN_SHARE
from kdsl.hooks.state import CycleState
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.memo import signature_memo
from kdsl.plan.memo.predicates import PredicateMemo
from kdsl.plan.memo.signature_memo import SignatureMemo
from kdsl.plan.reads.dependencies import Epoch
from msgspec import Struct

from tests.plan.lab import predicate
from tests.plan.memo.test_joined import column_of


class _Entry(Struct):
    epoch: Epoch
    nbytes = 0


class _NothingKept(Memo[_Entry]):
    def find(self, signature: Hashable) -> _Entry | None:
        return None


def test_a_signature_is_new_once_and_forgotten_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signature_memo, "MAX_SEEN", 2)
    cache = ClusterCache()
    cache.add_node(NodeFacts("n1"))
    nodes, memo = NodeSet.all(cache.snapshot()), SignatureMemo[_Entry](frozenset({"pod.namespace"}))
    memo._memo = _NothingKept()

    def is_new(namespace: str) -> bool:
        made: list[bool] = []

        def make(pod: PodInfo, nodes: NodeSet, epoch: Epoch, is_new: bool) -> _Entry:
            made.append(is_new)
            return _Entry(epoch)

        memo.of(PodInfo("p", namespace), nodes, make)
        return made == [True]

    assert [is_new(each) for each in "aabab"] == [True, False, True, False, False]
    assert [is_new(each) for each in "caa"] == [True, True, False]
    memo.clear()
    assert is_new("a")


def test_answers_are_kept_from_the_second_pod_on() -> None:
    joined, cache = PredicateMemo([predicate('require node.podCount < 1 else "no"')]), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    nodes = NodeSet.all(cache.snapshot())
    held: list[int] = []
    for name in ("a", "b", "c"):
        state = CycleState()
        joined.pre_filter(state, PodInfo(name), nodes)
        assert column_of(joined, state, PodInfo(name), nodes).ids.tolist() == [0]
        held.append(len(joined._memo._memo._entries))
    assert held == [0, 1, 1]


def test_frames_are_kept_from_the_second_attempt_of_a_signature_on() -> None:
    rule = predicate('require cluster.pods.size() < pod.priority else "no"').parts[0]
    rule.keep_frames()
    frames, view = rule.frames, ClusterView(ClusterCache().snapshot())
    held: list[int] = []
    for priority in (1, 2, 1, 1, 2):
        frames.begin(PodInfo("p", priority=priority), view)
        held.append(len(frames._kept))
    assert held == [0, 0, 1, 1, 2]


def test_what_ifs_of_a_new_signature_have_answers_of_their_own() -> None:
    joined, cache = PredicateMemo([predicate('require node.podCount < 1 else "no"')]), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    nodes, state, pod = NodeSet.all(cache.snapshot()), CycleState(), PodInfo("a")
    joined.pre_filter(state, pod, nodes)
    (row,) = nodes.rows.tolist()
    crowded = nodes.snapshot.info(row).with_pod(PodInfo("q", node_name="n1"))
    overlay = NodeSet(nodes.snapshot.overlay(row, crowded), nodes.rows)
    for _ in range(2):
        assert column_of(joined, state, pod, overlay).ids.tolist() != [0]
        assert column_of(joined, state, pod, nodes).ids.tolist() == [0]


def test_the_share_of_nodes_that_pass_falls_at_once_and_rises_slowly() -> None:
    joined, cache = PredicateMemo([predicate('require node.unschedulable else "open"')]), ClusterCache()
    for number in range(900):
        cache.add_node(NodeFacts(f"n{number}", unschedulable=number % 3 == 0))
    nodes = NodeSet.all(cache.snapshot())
    passing = nodes.take(np.arange(0, 900, 3))
    shares: list[float] = []
    for name, judged in (("a", nodes), ("b", nodes), ("c", passing), ("d", passing)):
        state = CycleState()
        shares.append(joined.pre_filter(state, PodInfo(name), nodes).share)
        # Few nodes say little.
        joined.filter(state, PodInfo(name), nodes.take(np.arange(10)))
        joined.filter(state, PodInfo(name), judged)
    # A new signature, one whose answers are not known yet, and two after nodes were judged.
    assert shares == pytest.approx([UNKNOWN_SHARE, UNKNOWN_SHARE, 1 / 3, 1 / 3 + (1 - 1 / 3) / 16])


def test_the_share_that_is_learned_stays_positive() -> None:
    joined, cache = PredicateMemo([predicate('require node.unschedulable else "open"')]), ClusterCache()
    for number in range(300):
        cache.add_node(NodeFacts(f"n{number}"))
    nodes = NodeSet.all(cache.snapshot())
    for _ in range(100):
        state = CycleState()
        share = joined.pre_filter(state, PodInfo("a"), nodes).share
        joined.filter(state, PodInfo("a"), nodes)
    assert share == pytest.approx(1 / 300)
