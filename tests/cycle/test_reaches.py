"""What is known of how far searches go: it makes them shorter, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.cycle import reaches as module
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.reaches import Reach, Reaches
from kdsl.cycle.search import SearchSettings, search
from kdsl.cycle.workers import Workers
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn

from tests.cycle.world import always, column, plugin, pod, snapshot, table

_NO = Status(Code.UNSCHEDULABLE, ("no",))


def test_the_lesser_of_the_last_two_is_expected() -> None:
    reach = Reach()
    expected = [reach.expected]
    for visited in (700, 500, 900, 800):
        reach.note(visited)
        expected.append(reach.expected)
    assert expected == [0, 0, 500, 500, 800]


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KINDS", 3)
    reaches = Reaches()
    for kind in range(10):
        reach = reaches.of(kind)
        assert reaches.of(kind) is reach
        reach.note(100)
        reach.note(100)
    assert sum(reaches.of(kind).expected > 0 for kind in range(9, -1, -1)) <= 3


class _Alike:
    """Joined predicates that have no place in the profile, and take all pods of a name for the like."""

    names = ("none",)

    def likeness(self, pod: PodInfo) -> int:
        return hash(pod.name)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> None:
        raise AssertionError

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> None:
        raise AssertionError


def _runs(name: str, settings: SearchSettings) -> tuple[list[int], int]:
    """Return how many nodes were asked about at once in a search where every other node is rejected, and how
    many it visited.
    """
    asked: list[int] = []

    def judge(nodes: NodeSet) -> StatusColumn:
        asked.append(len(nodes))
        return column(nodes, dict.fromkeys(range(0, 1000, 2), _NO))

    hooks = table({"F": plugin(filter=judge), "S": plugin(score=always(None))}, scores={"S": 1})
    of = Attempt(replace(hooks, joined_predicates=(_Alike(),)), pod(name), snapshot(1000))
    return asked, len(search(of, settings).verdicts.rows)


def test_pods_that_are_alike_are_searched_for_in_one_run() -> None:
    with Workers() as workers:
        settings = SearchSettings(workers, percentage=20)
        searches = [_runs("a", settings) for _ in range(3)]
        other = _runs("b", settings)
    assert searches[0] == searches[1] == other
    assert len(searches[0][0]) > 1
    assert len(searches[2][0]) == 1
    assert searches[2][1] == searches[0][1]


def test_a_run_has_at_least_one_node() -> None:
    with Workers(1) as workers:
        for length in (None, 1, 2):
            assert SearchSettings(workers, run_length=length).run_length == length
        for length in (0, -1):
            with pytest.raises(ValueError, match="at least 1"):
                SearchSettings(workers, run_length=length)
