from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code
from kdsl.plan.rules.score import ScoreError, ScorePlugin

from tests.plan.lab import node, nodes_of, score

NODES = nodes_of(node("a", 1000), node("b", 2000), node("c", 8000))
POD = PodInfo("p", priority=2)


def run(plugin: ScorePlugin, pod: PodInfo = POD) -> tuple[list[Any], list[int]]:
    """Return raw and normalised scores."""
    state = CycleState()
    assert plugin.pre_score(state, pod, NODES) is None
    raw = plugin.score(state, pod, NODES)
    normalized = plugin.normalize_score(state, pod, NODES, raw)
    assert normalized.dtype == np.int64
    return raw.tolist(), normalized.tolist()


CPU = 'node.allocatable["cpu"].asInteger()'


@pytest.mark.parametrize(
    ("body", "raw", "normalized"),
    [
        (f"value {CPU}", [1, 2, 8], [1, 2, 8]),
        (f"value {CPU}\nnormalize max", [1, 2, 8], [12, 25, 100]),
        (f"value {CPU}\nnormalize reverse", [1, 2, 8], [88, 75, 0]),
        (f"value {CPU}\nnormalize minmax", [1, 2, 8], [0, 14, 100]),
        (f"let half = double({CPU}) / 2.0\nvalue half\nnormalize max", [0.5, 1.0, 4.0], [12, 25, 100]),
        (f"value {CPU}\nnormalize by 100 * (value - min) / (max - min)", [1, 2, 8], [0, 14, 100]),
        (f"value double({CPU})\nnormalize by value / max * 99.9", [1.0, 2.0, 8.0], [12, 24, 99]),
        ("let p = pod.priority\nvalue p + 1", [3, 3, 3], [3, 3, 3]),
    ],
)
def test_score(body: str, raw: list[float], normalized: list[int]) -> None:
    assert run(score(body)) == (raw, normalized)


def test_weight_and_name() -> None:
    plugin = score("value 1")
    assert (plugin.name, plugin.weight, plugin.site) == ("S", 2, "t.kdsl:3")


@pytest.mark.parametrize(
    ("body", "raw", "normalized"),
    [
        (f"ignore when {CPU} == 8\nvalue {CPU}\nnormalize max", [1, 2, 0], [50, 100, 0]),
        (f"ignore when {CPU} == 1\nvalue double({CPU})\nnormalize reverse", [0.0, 2.0, 8.0], [0, 75, 0]),
        (f"ignore when true\nvalue {CPU}\nnormalize minmax", [0, 0, 0], [0, 0, 0]),
        (f"ignore when 1 / ({CPU} - 1) > 5\nvalue {CPU}", [1, 2, 8], [1, 2, 8]),
        ("value feasible.size()", [3, 3, 3], [3, 3, 3]),
        ("value feasible.filter(n, n.name < node.name).size()", [0, 1, 2], [0, 1, 2]),
    ],
)
def test_nodes_are_ignored(body: str, raw: list[float], normalized: list[int]) -> None:
    assert run(score(body)) == (raw, normalized)


def test_a_failed_score_contributes_nothing_and_does_not_count_for_the_others() -> None:
    plugin = score(f"value 8 / ({CPU} - 2)\nnormalize reverse")
    assert run(plugin) == ([-8, 0, 1], [900, 0, 0])
    plugin = score(f"value 1.0 / (double({CPU}) - 2.0)\nnormalize minmax")
    assert run(plugin)[1] == [0, 0, 100]


def test_a_failure_is_remembered_by_the_memo() -> None:
    plugin = score(f"value 8 / ({CPU} - 2)\nnormalize max")
    assert run(plugin) == run(plugin)


def test_on_error_abort() -> None:
    plugin = score(f"value 8 / ({CPU} - 2)\non error abort")
    with pytest.raises(ScoreError, match=r"rule S failed: division by zero \(t.kdsl:4:7\)"):
        run(plugin)


def test_an_error_in_normalize_by_is_zero() -> None:
    assert run(score(f"value {CPU}\nnormalize by 100 / (value - 1)"))[1] == [0, 100, 14]


def test_a_score_that_does_not_apply_is_skipped() -> None:
    plugin = score("applies when pod.priority > 0\nvalue 1")
    status = plugin.pre_score(CycleState(), PodInfo("q"), NODES)
    assert status is not None and status.code is Code.SKIP
    assert run(plugin)[0] == [1, 1, 1]
    assert run(score("applies when 1 / pod.priority > 0\nvalue 1"), PodInfo("q"))[0] == [1, 1, 1]


def test_the_smallest_int_is_no_score() -> None:
    body = 'value node.name == "a" ? -9223372036854775808 : 1'
    assert run(score(body)) == ([0, 1, 1], [0, 1, 1])
    with pytest.raises(ScoreError, match="the score is -9223372036854775808"):
        run(score(f"on error abort {body}"))


def test_an_error_in_normalize_is_shown_where_it_is() -> None:
    plugin = score("on error abort\nvalue 1\nnormalize by value / (max - min)")
    with pytest.raises(ScoreError, match=r"division by zero \(t.kdsl:6:14\)"):
        run(plugin)


def test_lets_are_known_to_applies_when() -> None:
    plugin = score("let wanted = pod.priority > 5\napplies when wanted\nvalue 1")
    status = plugin.pre_score(CycleState(), POD, NODES)
    assert status is not None and status.code is Code.SKIP


@pytest.mark.parametrize("spread", [1, 3_000, 9_000_000])
def test_equal_scores_are_normalised_to_equal_ones(spread: int) -> None:
    body = f"value ({CPU} % 3 - 1) * {spread}\nnormalize by (value - min) * 10 + (max - value) / (value + 1)"
    assert run(score(body))[0] == [0, spread, spread]
    assert run(score(body))[1] == [spread, 10 * spread, 10 * spread]
