"""Shared answers: they are those of a fresh computation, whatever changes, and they are shared."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.resources import Resources
from kdsl.cluster.cache import ClusterCache
from kdsl.cluster.frozen_map import FrozenMap
from kdsl.cluster.node import NodeFacts
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.hooks.state import CycleState
from kdsl.plan import memo as memo_module
from kdsl.plan.hookimpls import PredicatePlugin, ScorePlugin
from kdsl.plan.memo import Dependencies, Memo
from numpy.typing import NDArray

from tests.plan.lab import node, predicate, score

INT64 = np.dtype(np.int64)
STATIC = frozenset({"node.static", "pod.priority"})
USAGE = STATIC | {"node.usage"}


def placed(name: str, node_name: str, cpu: int = 100) -> PodInfo:
    return PodInfo(
        name, node_name=node_name, usage=Resources({"cpu": cpu}), scored_usage=Resources({"cpu": cpu})
    )


def small_cluster() -> ClusterCache:
    cache = ClusterCache()
    for name in ("a", "b", "c"):
        cache.add_node(node(name))
    return cache


class Asked:
    """Counts which rows were computed; the answer is the number of calls so far."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __call__(self, nodes: NodeSet) -> NDArray[np.int64]:
        self.calls.append(nodes.rows.tolist())
        return np.full(len(nodes), len(self.calls), dtype=np.int64)


def memo_of(reads: frozenset[str]) -> Memo[np.int64]:
    dependencies = Dependencies.of(reads)
    assert dependencies is not None
    return Memo(dependencies, INT64)


@pytest.mark.parametrize("reads", [{"queue"}, {"pod.uid"}, {"pod.name", "node.static"}, {"something.new"}])
def test_what_cannot_be_shared(reads: set[str]) -> None:
    assert Dependencies.of(frozenset(reads)) is None


def test_dependencies() -> None:
    reads = frozenset({"pod.nodeSelector", "pod.images", "cluster.images"})
    assert Dependencies.of(reads) == Dependencies(("images", "node_selector"), False, True, False)


def test_pods_that_look_alike_share() -> None:
    cache, memo, asked = small_cluster(), memo_of(STATIC), Asked()
    nodes = NodeSet.all(cache.snapshot())
    for pod in (PodInfo("p", labels=FrozenMap({"a": "b"})), PodInfo("q"), PodInfo("r", priority=1)):
        memo.answers(pod, nodes, asked)
    assert asked.calls == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize(
    ("reads", "change", "recomputed"),
    [
        (STATIC, lambda cache: cache.add_pod(placed("p", "b")), []),
        (USAGE, lambda cache: cache.add_pod(placed("p", "b")), [1]),
        (STATIC, lambda cache: cache.add_node(node("c", 1)), [2]),
        (USAGE, lambda cache: cache.add_node(node("c", 1)), [2]),
        (STATIC, lambda cache: cache.add_node(node("d")), [3]),
        (STATIC | {"cluster.nodes"}, lambda cache: cache.add_node(node("d")), [0, 1, 2, 3]),
        (STATIC, lambda cache: cache.add_node(node("a", image_sizes=FrozenMap({"i": 1}))), [0]),
        (
            STATIC | {"cluster.images"},
            lambda cache: cache.add_node(node("a", image_sizes=FrozenMap({"i": 1}))),
            [0, 1, 2],
        ),
    ],
)
def test_only_what_changed_is_computed_again(
    reads: frozenset[str], change: Callable[[ClusterCache], None], recomputed: list[int]
) -> None:
    cache, memo, asked = small_cluster(), memo_of(reads), Asked()
    memo.answers(PodInfo("p"), NodeSet.all(cache.snapshot()), asked)
    asked.calls.clear()
    change(cache)
    for _ in range(2):
        memo.answers(PodInfo("p"), NodeSet.all(cache.snapshot()), asked)
    assert asked.calls == ([recomputed] if recomputed else [])


def test_a_row_that_was_given_to_another_node() -> None:
    cache, memo, asked = small_cluster(), memo_of(STATIC), Asked()
    memo.answers(PodInfo("p"), NodeSet.all(cache.snapshot()), asked)
    cache.remove_node("b")
    cache.add_node(node("d"))
    memo.answers(PodInfo("p"), NodeSet.all(cache.snapshot()), asked)
    assert asked.calls[1:] == [[1]]


def test_answers_follow_the_asked_order() -> None:
    snapshot, memo = small_cluster().snapshot(), memo_of(STATIC)
    rows = lambda nodes: nodes.rows.astype(np.int64) * 10  # noqa: E731
    for order in ([2, 0], [1], [0, 1, 2]):
        nodes = NodeSet(snapshot, np.array(order, dtype=np.int32))
        assert memo.answers(PodInfo("p"), nodes, rows).tolist() == [10 * row for row in order]


def test_overlays_and_other_clusters_do_not_share() -> None:
    cache, memo, asked = small_cluster(), memo_of(USAGE), Asked()
    snapshot = cache.snapshot()
    memo.answers(PodInfo("p"), NodeSet.all(snapshot), asked)
    overlay = snapshot.overlay(0, snapshot.info(0).with_pod(placed("x", "a")))
    assert memo.answers(PodInfo("p"), NodeSet.all(overlay), asked).tolist() == [2, 2, 2]
    assert memo.answers(PodInfo("p"), NodeSet.all(snapshot), asked).tolist() == [1, 1, 1]
    assert memo.answers(PodInfo("p"), NodeSet.all(small_cluster().snapshot()), asked).tolist() == [3, 3, 3]


def test_signatures_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo_module, "MAX_BYTES", 5 * 3 * 16)
    nodes, memo, asked = NodeSet.all(small_cluster().snapshot()), memo_of(STATIC), Asked()
    for priority in (0, 1, 2, 3, 4, 0, 5, 0, 1):
        memo.answers(PodInfo("p", priority=priority), nodes, asked)
    # 5 fit: 5 pushes 1 out, which was used longest ago, as 0 was used again.
    assert len(asked.calls) == 7


CHANGES: list[Callable[[ClusterCache, int], None]] = [
    lambda cache, at: cache.add_pod(placed(f"p{at}", "abc"[at % 3], 500 * at)),
    lambda cache, at: cache.remove_pod(f"default/p{at}"),
    lambda cache, at: cache.add_node(node("abcd"[at % 4], 1000 * at, image_sizes=FrozenMap({"i:1": at}))),
    lambda cache, at: cache.remove_node("abcd"[at % 4]),
]

FIT = """
require node.requested["cpu"] + pod.requests["cpu"] <= node.allocatable["cpu"] else "full ${node.podCount}"
"""
SPREAD = "value node.images.size() * cluster.nodeCount + pod.priority"
IMAGES = "value node.images.transformList(k, v, v.nodeCount * v.sizeBytes).sum()"


def fresh(plugin: PredicatePlugin | ScorePlugin) -> None:
    """Make the plugin forget."""
    dependencies = Dependencies.of(plugin._program.rule.reads)
    assert dependencies is not None
    if isinstance(plugin, PredicatePlugin):
        plugin._renew()
    else:
        plugin._memo = Memo(dependencies, plugin._program.dtype)


def answer(plugin: PredicatePlugin | ScorePlugin, pod: PodInfo, nodes: NodeSet) -> list[object]:
    state = CycleState()
    if isinstance(plugin, ScorePlugin):
        return list(plugin.score(state, pod, nodes).tolist())
    plugin.pre_filter(state, pod, nodes)
    column = plugin.filter(state, pod, nodes)
    assert column is not None
    return [column[at] for at in range(len(nodes))]


@given(st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 9), st.integers(0, 2)), max_size=15))
def test_remembered_answers_are_those_of_a_fresh_computation(
    steps: list[tuple[Callable[[ClusterCache, int], None], int, int]],
) -> None:
    warm, cold = ([predicate(FIT), score(SPREAD), score(IMAGES)] for _ in range(2))
    cache = ClusterCache()
    cache.add_node(NodeFacts("a"))
    for change, at, priority in steps:
        change(cache, at)
        nodes = NodeSet.all(cache.snapshot())
        pod = PodInfo("new", priority=priority, requests=Resources({"cpu": 500 * priority}))
        for kept, forgetful in zip(warm, cold, strict=True):
            fresh(forgetful)
            assert answer(kept, pod, nodes) == answer(forgetful, pod, nodes)


def test_reasons_without_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from kdsl.plan import verdicts

    monkeypatch.setattr(verdicts, "MAX_VERDICTS", 10)
    plugin = predicate('require false else "priority ${pod.priority} on ${node.name}"')
    nodes = NodeSet.all(small_cluster().snapshot())
    for priority in range(20):
        first = answer(plugin, PodInfo("p", priority=priority), nodes)
        assert f"priority {priority} on a" in str(first[0])
        assert len(plugin._verdicts.table) <= 13
