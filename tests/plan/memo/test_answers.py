"""Kept answers: computed once, until something changes; one number where all nodes have the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kdsl.base.bounded_memo import Memo
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint
from kdsl.cluster.snapshot import node_classes
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.plan.memo.answers import ByNodeClass, ByRow
from numpy.typing import NDArray

INT64 = np.dtype(np.int64)
POD = PodInfo("p", usage=Resources({"cpu": 1}))


def cluster(nodes: int) -> ClusterCache:
    cache = ClusterCache()
    for at in range(nodes):
        cache.add_node(NodeFacts(f"n{at}"))
    return cache


@pytest.mark.parametrize("by_node_class", [True, False])
def test_the_answer_of_all_nodes_is_known_until_one_changes(by_node_class: bool) -> None:
    cache = cluster(3)
    live = cache.snapshot().live
    answers = ByNodeClass(live, INT64) if by_node_class else ByRow(live, INT64, live.usage_changes)
    asked: list[int] = []

    def compute(rows: Rows) -> NDArray[np.int64]:
        asked.extend(rows.tolist())
        return np.array([live.info(row).pod_count for row in rows.tolist()], np.int64)

    answers.refresh()
    assert answers.only is None
    first, only = answers.get(live.order, compute)
    assert (first.tolist(), only) == ([0, 0, 0], 0)
    answers.refresh()
    assert (answers.only, answers.least) == (0, 0)
    # As often as there are classes, or rows.
    assert len(asked) == (1 if by_node_class else 3)
    cache.assume(POD, "n1")
    cache.snapshot()
    answers.refresh()
    assert answers.only is None
    changed, only = answers.get(live.order, compute)
    assert (changed.tolist(), only) == ([0, 1, 0], None)
    assert len(asked) == (2 if by_node_class else 4)


def test_the_answer_of_all_nodes_is_recomputed_when_classes_are_renumbered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_classes, "_SPARE", 0)
    cache = cluster(1)
    live = cache.snapshot().live
    answers = ByNodeClass(live, INT64)

    def compute(rows: Rows) -> NDArray[np.int64]:
        return np.array([live.info(row).pod_count for row in rows.tolist()], np.int64)

    generation, placed = live.node_classes.generation, 0
    while live.node_classes.generation == generation:
        cache.assume(POD.with_fields(name=f"p{placed}"), "n0")
        placed += 1
        cache.snapshot()
        answers.refresh()
        assert answers.only is None
        assert answers.get(live.order, compute)[0].tolist() == [placed]
    answers.refresh()
    assert (answers.only, answers.least) == (placed, placed)


def test_answers_that_do_not_depend_on_usage_do_not_depend_on_pods() -> None:
    cache = cluster(2)
    live = cache.snapshot().live
    answers = ByNodeClass(live, INT64, on_usage=False)
    asked: list[int] = []

    def compute(rows: Rows) -> NDArray[np.int64]:
        asked.extend(rows.tolist())
        return np.array([len(live.info(row).taints) for row in rows.tolist()], np.int64)

    for facts in (NodeFacts("n1"), NodeFacts("n1", taints=(Taint("t", "", "NoSchedule"),))):
        cache.add_node(facts)
        for pod in ("p", "q"):
            cache.assume(POD.with_fields(name=f"{pod}{len(facts.taints)}"), "n0")
            cache.snapshot()
            answers.refresh()
            assert answers.get(live.order, compute)[0].tolist() == [0, len(facts.taints)]
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("wanted", "nodes", "prefetches", "first"),
    [(3, 30, True, 30), (1, 3, True, 3), (12, 30, False, 12)],
)
def test_if_a_class_is_missing_all_missing_ones_are_prefetched(
    wanted: int, nodes: int, prefetches: bool, first: int
) -> None:
    cache = ClusterCache()
    for at in range(nodes):
        cache.add_node(NodeFacts(f"n{at}", allocatable=Resources({"cpu": at})))
    live = cache.snapshot().live
    answers = ByNodeClass(live, INT64, prefetches=prefetches)
    asked: list[int] = []

    def compute(rows: Rows) -> NDArray[np.int64]:
        asked.extend(rows.tolist())
        return np.array([live.info(row).allocatable.amount("cpu") for row in rows.tolist()], np.int64)

    answers.refresh()
    assert answers.get(live.order[:wanted], compute)[0].tolist() == list(range(wanted))
    assert len(asked) == first
    assert answers.get(live.order, compute)[0].tolist() == list(range(nodes))
    # No row is computed twice.
    assert sorted(asked) == list(range(nodes))


@pytest.mark.parametrize(
    ("wanted", "prefetches", "asked_again"), [(12, True, 28), (11, True, 11), (12, False, 12)]
)
def test_other_rows_are_prefetched_for_a_repeated_signature(
    wanted: int, prefetches: bool, asked_again: int
) -> None:
    cache = cluster(40)
    live = cache.snapshot().live
    answers = ByRow(live, INT64, live.fact_changes, prefetches=prefetches)
    asked: list[int] = []

    def compute(rows: Rows) -> NDArray[np.int64]:
        asked.extend(rows.tolist())
        return rows.astype(np.int64)

    answers.refresh()
    for first in (0, 6):
        # Two runs of one search are one attempt.
        answers.get(live.order[first : first + 6], compute)
    assert len(asked) == 12
    answers.refresh()
    rows = live.order[12 : 12 + wanted]
    assert answers.get(rows, compute)[0].tolist() == rows.tolist()
    assert len(asked) == 12 + asked_again
    assert answers.get(live.order, compute)[0].tolist() == live.order.tolist()
    # No row is computed twice.
    assert sorted(asked) == list(range(40))


class MemoEntry:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def test_the_least_recently_used_entries_go_first_and_invalid_ones_are_made_again() -> None:
    kinds: Memo[MemoEntry] = Memo()
    made: list[str] = []

    def get(name: str, is_valid: bool = True) -> MemoEntry:
        def make() -> MemoEntry:
            made.append(name)
            return MemoEntry(8 << 20)

        return kinds.get(name, lambda entry: is_valid, make)

    for name in ("a", "a", "b", "c", "a", "d", "e"):
        get(name)
    # Four are kept in any case, five are more than fit.
    assert made == ["a", "b", "c", "d", "e"]
    get("a")
    get("b")
    assert made[5:] == ["b"]
    get("b", is_valid=False)
    assert made[5:] == ["b", "b"]
    assert get("b") is get("b")


@pytest.mark.parametrize("by_node_class", [True, False])
def test_a_value_is_known_to_other_threads_after_it_counts_for_all_nodes(by_node_class: bool) -> None:
    """A thread that reads between two steps of another one must not take one value for that of all nodes."""
    cache = cluster(2)
    cache.assume(POD, "n1")
    live = cache.snapshot().live
    answers = ByNodeClass(live, INT64) if by_node_class else ByRow(live, INT64)
    answers.refresh()
    seen: list[tuple[list[int], object]] = []

    class Watched(np.ndarray[tuple[int], np.dtype[np.bool_]]):
        def __setitem__(self, index: Any, value: Any) -> None:
            super().__setitem__(index, value)
            values, only = answers.get(live.order, counts)
            seen.append((values.tolist(), only))

    def counts(rows: Rows) -> NDArray[np.int64]:
        return np.array([live.info(row).pod_count for row in rows.tolist()], np.int64)

    assert answers.get(live.order[:1], counts)[1] == 0
    answers._known = answers._known.view(Watched)
    answers.get(live.order[1:], counts)
    assert seen == [([0, 1], None)]


def test_an_entry_that_grew_counts_though_it_is_not_asked_for_again() -> None:
    entries: Memo[MemoEntry] = Memo(most=60_000)
    made: list[int] = []

    def get(signature: int) -> MemoEntry:
        def make() -> MemoEntry:
            made.append(signature)
            return MemoEntry(0)

        return entries.get(signature, lambda entry: True, make)

    for signature in range(10):
        get(signature).nbytes = 10_000
    # The first ones are over 60,000 bytes together with the last ones.
    get(0)
    assert made == [*range(10), 0]


@pytest.mark.parametrize("phase", range(30, 34))
def test_every_entry_that_grows_after_it_was_found_counts(phase: int) -> None:
    most = 8 << 20
    entries: Memo[MemoEntry] = Memo(most)
    for signature in range(1_500):
        entries.put(signature, MemoEntry(0))
    # A part of them grows, and none is found again.
    for signature in range(1_500):
        found = entries.find(signature)
        if found is not None and signature % 33 == phase % 33:
            found.nbytes = 200_000
    for signature in range(1_500, 1_900):
        entries.put(signature, MemoEntry(0))
    assert sum(each.nbytes + 4096 for each in entries._entries.values()) <= most
