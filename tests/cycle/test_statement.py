"""Tentative changes: all kept, or all taken back in reverse order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.statement import Statement
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import Code, Status

from tests.cycle.world import attempt, cluster, plugin, pod, table


def contents(cache: ClusterCache) -> dict[str, list[str]]:
    present = cache.snapshot()
    return {
        present.names[row]: [one.name for one in present.info(row).pods] for row in present.order.tolist()
    }


@given(st.lists(st.integers(0, 2), max_size=8), st.booleans())
def test_a_commit_keeps_the_assumed_pods_and_a_discard_removes_them(nodes: list[int], is_kept: bool) -> None:
    cache, empty = cluster(3), table({})
    statement, before = Statement(cache), contents(cache)
    for at, node in enumerate(nodes):
        statement.assume(Attempt(empty, pod(f"p{at}"), cache.snapshot()), f"n{node}")
    assumed = contents(cache)
    assert sorted(name for names in assumed.values() for name in names) == [
        f"p{at}" for at in range(len(nodes))
    ]
    (statement.commit if is_kept else statement.discard)()
    assert contents(cache) == (assumed if is_kept else before)
    statement.discard()
    assert contents(cache) == (assumed if is_kept else before)


def test_a_statement_that_is_over_takes_no_more_changes() -> None:
    of, statement = attempt({}), Statement(cluster(3))
    statement.commit()
    with pytest.raises(RuntimeError, match="the statement is over"):
        statement.assume(of, "n0")
    with pytest.raises(RuntimeError, match="the statement is over"):
        statement.reserve(of, "n0")


def logging_plugin(log: list[str], name: str, answer: Status | None = None) -> object:
    def reserve(node: str) -> Status | None:
        log.append(f"reserve {name} {node}")
        return answer

    def unreserve(node: str) -> None:
        log.append(f"unreserve {name} {node}")

    return plugin(reserve=reserve, unreserve=unreserve)


def test_a_rejection_stops_reserving_and_undoing_reaches_every_plugin_in_reverse() -> None:
    log: list[str] = []
    refusal = Status(Code.UNSCHEDULABLE, ("taken",))
    plugins = {
        "A": logging_plugin(log, "A"),
        "B": logging_plugin(log, "B", refusal),
        "C": logging_plugin(log, "C"),
    }
    statement = Statement(cluster(3))
    assert statement.reserve(attempt(plugins), "n1") == refusal.by("B")
    statement.discard()
    assert log == ["reserve A n1", "reserve B n1", "unreserve C n1", "unreserve B n1", "unreserve A n1"]


@pytest.mark.parametrize(
    ("reserve", "reason"),
    [(lambda: 1 / 0, "ZeroDivisionError: division by zero"), (lambda: Status(Code.ERROR, ("down",)), "down")],
)
def test_an_error_in_reserve_is_raised_and_can_be_undone(reserve: object, reason: str) -> None:
    log: list[str] = []
    statement = Statement(cluster(3))
    plugins = {"A": plugin(reserve=reserve), "B": logging_plugin(log, "B")}
    with pytest.raises(PluginError) as caught:
        statement.reserve(attempt(plugins), "n0")
    assert str(caught.value) == f'running Reserve plugin "A": {reason}'
    statement.discard()
    assert log == ["unreserve B n0"]


def test_a_plugin_that_fails_to_undo_does_not_keep_others_from_it() -> None:
    log: list[str] = []
    statement = Statement(cluster(3))
    plugins = {"A": logging_plugin(log, "A"), "B": plugin(unreserve=lambda: 1 / 0)}
    statement.reserve(attempt(plugins), "n0")
    statement.discard()
    assert log == ["reserve A n0", "unreserve A n0"]
    assert [str(fault) for fault in statement.faults] == [
        'running Unreserve plugin "B": ZeroDivisionError: division by zero'
    ]
