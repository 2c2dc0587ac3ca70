"""Node groups that grow and shrink, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kdsl.base.errors import KdslError
from kdsl.base.span import Source, Span
from kdsl.lab.time.expander import Option, check_expander, expander_of
from kdsl.lab.time.plan import Stop, TimePlan

from tests.lab.time.workloads import arrival, group, node, run, scaled, story


def _nodes(result: object) -> dict[str, str | None]:
    return {log.pod.name: log.node for log in result.pods}  # type: ignore[attr-defined]


def test_a_group_grows_for_pods_and_shrinks_when_idle() -> None:
    plan = replace(scaled([group("g", 5, cores=2, price=3.6, startup=25)]), stop=Stop.SETTLED)
    result = run([], [arrival(f"p{number}", 3, 100) for number in range(3)], plan)
    # Rejected at 3, looked at 10: three pods of one core need two nodes of two. They are there at 35; a pod of no
    # node is tried again after its backoff of up to ten seconds.
    stories = story(result).values()
    starts = {started for _, started, *_ in stories}
    assert all(started is not None and 35.0 <= started <= 45.0 for started in starts)
    (start,) = starts
    assert start is not None
    assert set(_nodes(result).values()) == {"g-1", "g-2"}
    # Idle since start + 100, gone at the first look 60 seconds after that.
    gone = -(-(start + 160) // 10) * 10
    assert result.end == gone
    # Two nodes at 3.6 an hour, billed from 10 on.
    assert result.cost == pytest.approx(2 * 3.6 * (gone - 10) / 3600)
    assert result.nodes_max == 2


def test_no_more_nodes_than_a_group_may_have() -> None:
    result = run([], [arrival(f"p{number}", 0, 50) for number in range(6)], scaled([group("g", 2, cores=1)]))
    assert result.nodes_max == 2
    assert sorted(started for _, started, *_ in story(result).values() if started is not None)[-1] >= 100.0
    assert all(ended is not None for _, _, ended, *_ in story(result).values())


def test_nodes_of_a_fixed_count_are_there_throughout() -> None:
    plan = TimePlan(groups=(group("g", 2, least=2, price=1.0, startup=500),))
    result = run([], [arrival("p", 0, 3600)], plan)
    assert story(result)["p"][1] == 0.0
    assert (result.nodes_mean, result.cost) == (2.0, 2.0)


def test_a_pod_that_fits_on_no_fresh_node_orders_none() -> None:
    result = run([], [arrival("large", 0, 10, cores=9)], scaled([group("g", 3, cores=4)]))
    assert (result.nodes_max, result.cost) == (0, 0.0)
    assert story(result)["large"][1] is None


def test_nodes_that_start_count_as_room() -> None:
    # The second pod comes while a node with room for both starts: it orders no other.
    plan = scaled([group("g", 9, cores=2, startup=100)])
    result = run([], [arrival("a", 0, 500), arrival("b", 50, 500)], plan)
    assert result.nodes_max == 1


@pytest.mark.parametrize(
    ("expander", "chosen"),
    [
        ("-waste", "small-1"),
        ("pods", "large-1"),
        ("-price", "cheap-1"),
        ('group == "large" ? 1 : 0', "large-1"),
    ],
)
def test_an_expression_chooses_the_group(expander: str, chosen: str) -> None:
    groups = [
        group("large", 1, cores=8, price=8),
        group("small", 1, cores=2, price=3),
        group("cheap", 1, cores=3, price=1),
    ]
    arrivals = [arrival("a", 0, 10), arrival("b", 0, 10), arrival("c", 0, 10, cores=6)]
    if expander != "pods":
        arrivals = arrivals[:2]
    result = run([], arrivals, scaled(groups, expander))
    assert _nodes(result)["a"] == chosen


def test_an_underused_node_goes_if_its_pods_fit_elsewhere() -> None:
    # b keeps one of four cores of the group's node in use; the other node has room for it from 100 on.
    arrivals = [arrival("a", 0, 100, cores=4), arrival("b", 1, 1000)]
    plain = run([node("n", 4)], arrivals, scaled([group("g", 1)]))
    assert story(plain)["b"][4] == 0
    result = run([node("n", 4)], arrivals, scaled([group("g", 1)], underused=0.5))
    assert _nodes(plain)["b"] == "g-1" and _nodes(result)["b"] == "n"
    _, started, ended, _, evictions = story(result)["b"]
    # It started at 10, was unneeded for 60 s at 70, and was asked about until a had ended.
    assert (started, evictions) == (10.0, 1)
    assert ended is not None and 1100.0 < ended <= 1180.0


OPTION = Option("g", 2, 5, 7, 1, 3, 4.0, 0.25, 0.1, 0.4, 0.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-waste", -0.25),
        ("pods", 5.0),
        ("price / double(pods)", 0.8),
        ("nodes + size * 10 + priority * 100 + pending * 1000", 7312.0),
        ("wasteCpu + wasteMemory + wasteCards", 0.5),
    ],
)
def test_values_of_expanders(text: str, value: float) -> None:
    assert expander_of(text)(OPTION) == pytest.approx(value)


def test_an_expander_without_a_value_ends_the_run() -> None:
    with pytest.raises(KdslError, match="no value for group `g`: divi"):
        expander_of("pods / (nodes - 2)")(OPTION)
    with pytest.raises(KdslError, match="not a number"):
        expander_of("(waste - waste) / (waste - waste)")(OPTION)


def test_expanders_are_checked() -> None:
    source = Source("x", "waist + 1")
    typed, found = check_expander("waist", lambda start, end: Span(source, start, end))
    assert typed is None and "waist" in found[0].title
    typed, found = check_expander('"text"', lambda start, end: Span(source, start, end))
    assert typed is None and found[0].title == "an expander is a number, this is `string`"
