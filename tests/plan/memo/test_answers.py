"""Kept answers: computed once, until something changes; one number where all nodes have the same."""

from __future__ import annotations

import numpy as np
import pytest
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint
from kdsl.cluster.snapshot import looks
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.plan.memo.answers import ByLook, ByRow, Kinds
from numpy.typing import NDArray

INT64 = np.dtype(np.int64)
POD = PodInfo("p", usage=Resources({"cpu": 1}))


def cluster(nodes: int) -> ClusterCache:
    cache = ClusterCache()
    for at in range(nodes):
        cache.add_node(NodeFacts(f"n{at}"))
    return cache


@pytest.mark.parametrize("by_look", [True, False])
def test_what_all_nodes_answer_is_known_without_a_look_at_them_until_one_changes(by_look: bool) -> None:
    cache = cluster(3)
    live = cache.snapshot().live
    answers = ByLook(live, INT64) if by_look else ByRow(live, INT64, live.usage_changes)
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
    # As often as there are looks, or rows.
    assert len(asked) == (1 if by_look else 3)
    cache.assume(POD, "n1")
    cache.snapshot()
    answers.refresh()
    assert answers.only is None
    changed, only = answers.get(live.order, compute)
    assert (changed.tolist(), only) == ([0, 1, 0], None)
    assert len(asked) == (2 if by_look else 4)


def test_what_all_nodes_answer_is_found_out_anew_when_looks_are_numbered_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(looks, "_SPARE", 0)
    cache = cluster(1)
    live = cache.snapshot().live
    answers = ByLook(live, INT64)

    def compute(rows: Rows) -> NDArray[np.int64]:
        return np.array([live.info(row).pod_count for row in rows.tolist()], np.int64)

    generation, placed = live.looks.generation, 0
    while live.looks.generation == generation:
        cache.assume(POD.with_fields(name=f"p{placed}"), "n0")
        placed += 1
        cache.snapshot()
        answers.refresh()
        assert answers.only is None
        assert answers.get(live.order, compute)[0].tolist() == [placed]
    answers.refresh()
    assert (answers.only, answers.least) == (placed, placed)


def test_pods_make_no_difference_to_what_does_not_depend_on_usage() -> None:
    cache = cluster(2)
    live = cache.snapshot().live
    answers = ByLook(live, INT64, on_usage=False)
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
            more = live.info(1).with_pod(POD.with_fields(node_name="n1"))
            assert answers.imagine(1, more, compute) == len(facts.taints)
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("wanted", "nodes", "looks_ahead", "first"),
    [(3, 30, True, 30), (3, 12, True, 12), (3, 11, True, 3), (2, 30, True, 2), (12, 30, False, 12)],
)
def test_where_many_looks_are_not_known_all_are_asked_for(
    wanted: int, nodes: int, looks_ahead: bool, first: int
) -> None:
    cache = ClusterCache()
    for at in range(nodes):
        cache.add_node(NodeFacts(f"n{at}", allocatable=Resources({"cpu": at})))
    live = cache.snapshot().live
    answers = ByLook(live, INT64, looks_ahead=looks_ahead)
    asked: list[int] = []

    def compute(rows: Rows) -> NDArray[np.int64]:
        asked.extend(rows.tolist())
        return np.array([live.info(row).allocatable.amount("cpu") for row in rows.tolist()], np.int64)

    answers.refresh()
    assert answers.get(live.order[:wanted], compute)[0].tolist() == list(range(wanted))
    assert len(asked) == first
    assert answers.get(live.order, compute)[0].tolist() == list(range(nodes))
    # Nobody is asked twice.
    assert sorted(asked) == list(range(nodes))


@pytest.mark.parametrize(
    ("wanted", "looks_ahead", "asked_again"), [(12, True, 28), (11, True, 11), (12, False, 12)]
)
def test_where_each_row_has_an_answer_the_others_are_asked_for_when_a_kind_comes_again(
    wanted: int, looks_ahead: bool, asked_again: int
) -> None:
    cache = cluster(40)
    live = cache.snapshot().live
    answers = ByRow(live, INT64, live.fact_changes, looks_ahead=looks_ahead)
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
    # Nobody is asked twice.
    assert sorted(asked) == list(range(40))


class Sized:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def test_kinds_used_longest_ago_go_first_and_those_that_are_no_good_are_made_anew() -> None:
    kinds: Kinds[Sized] = Kinds()
    made: list[str] = []

    def get(name: str, is_good: bool = True) -> Sized:
        def make() -> Sized:
            made.append(name)
            return Sized(8 << 20)

        return kinds.get(name, lambda kind: is_good, make)

    for name in ("a", "a", "b", "c", "a", "d", "e"):
        get(name)
    # Four are kept in any case, five are more than fit.
    assert made == ["a", "b", "c", "d", "e"]
    get("a")
    get("b")
    assert made[5:] == ["b"]
    get("b", is_good=False)
    assert made[5:] == ["b", "b"]
    assert get("b") is get("b")
