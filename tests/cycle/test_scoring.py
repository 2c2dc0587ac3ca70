"""The scoring phases, case by case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.scoring import Scores, score_nodes
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import Code, Status

from tests.cycle.world import attempt, plugin, scoring


def scored(plugins: dict[str, object], rows: tuple[int, ...] = (0, 1, 2), **weights: int) -> Scores:
    of = attempt(plugins, scores=weights or dict.fromkeys(plugins, 1))
    return score_nodes(of, NodeSet(of.snapshot, np.array(rows, dtype=np.int32)))


def test_without_score_plugins_every_node_totals_one() -> None:
    of = attempt({})
    assert score_nodes(of, of.all_nodes).totals.tolist() == [1, 1, 1]


def test_totals_are_weighted_sums() -> None:
    found = scored({"A": scoring({0: 10, 1: 100}), "B": scoring({1: 1, 2: 50})}, A=3, B=2)
    assert found.totals.tolist() == [30, 302, 100]
    assert found.totals.dtype == np.int64
    assert [(column.plugin, column.weight) for column in found.columns] == [("A", 3), ("B", 2)]


def test_weight_zero_counts_as_one() -> None:
    assert scored({"A": scoring({0: 7})}, A=0).totals.tolist() == [7, 0, 0]


def test_scores_follow_the_order_of_the_set_and_a_single_node_can_be_scored() -> None:
    plugins = {"A": scoring({0: 1, 1: 2, 2: 3})}
    assert scored(plugins, (2, 0)).totals.tolist() == [3, 1]
    assert scored(plugins, (1,)).totals.tolist() == [2]


def test_pre_score_skip_leaves_the_plugin_out() -> None:
    def score() -> None:
        raise AssertionError("skipped")

    found = scored({"A": plugin(pre_score=lambda: Status(Code.SKIP), score=score), "B": scoring({0: 5})})
    assert [column.plugin for column in found.columns] == ["B"]
    assert found.totals.tolist() == [5, 0, 0]


def test_all_skipped_totals_zero() -> None:
    found = scored({"A": plugin(pre_score=lambda: Status(Code.SKIP), score=lambda: None)})
    assert found.totals.tolist() == [0, 0, 0]


def test_a_normaliser_maps_raw_scores_which_stay_on_record() -> None:
    def normalize(scores: Any) -> Any:
        return (100 * scores / scores.max()).astype(np.int64)

    found = scored({"A": plugin(score=lambda: np.array([0.5, 2.0, 1.0]), normalize_score=normalize)})
    (column,) = found.columns
    assert column.raw.tolist() == [0.5, 2.0, 1.0]
    assert column.normalized.tolist() == [25, 100, 50]


def test_a_plugin_may_say_one_number_for_all_nodes() -> None:
    found = scored({"A": plugin(score=lambda: 7), "B": scoring({1: 5})}, A=2, B=1)
    assert found.totals.tolist() == [14, 19, 14]
    assert [column.raw.tolist() for column in found.columns] == [[7, 7, 7], [0, 5, 0]]


def test_one_number_for_all_nodes_is_normalised_as_a_column() -> None:
    found = scored({"A": plugin(score=lambda: 400, normalize_score=lambda scores: scores // 5)})
    (column,) = found.columns
    assert column.raw.tolist() == [400, 400, 400]
    assert column.normalized.tolist() == found.totals.tolist() == [80, 80, 80]


def test_pre_score_errors() -> None:
    with pytest.raises(PluginError, match=r'^running PreScore plugin "A": no$'):
        scored({"A": plugin(pre_score=lambda: Status(Code.UNSCHEDULABLE, ("no",)), score=lambda: None)})
    with pytest.raises(
        PluginError, match=r'^running PreScore plugin "A": ZeroDivisionError: division by zero$'
    ):
        scored({"A": plugin(pre_score=lambda: 1 / 0, score=lambda: None)})


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: np.array([1, 2]), "ValueError: scores of shape (2,) for 3 nodes"),
        (lambda: np.array([True] * 3), "TypeError: scores of type bool"),
        (lambda: True, "ValueError: scores of shape () for 3 nodes"),
        (lambda: np.array([1.0] * 3), "TypeError: scores that are not normalised further must be integers"),
    ],
)
def test_score_errors_name_the_plugin(score: Callable[[], Any], reason: str) -> None:
    with pytest.raises(PluginError) as caught:
        scored({"A": plugin(score=score)})
    assert str(caught.value) == f'running Score plugins: plugin "A" failed with: {reason}'


def _in_place(scores: Any) -> Any:
    scores += 1
    return scores


@pytest.mark.parametrize(
    ("normalize", "reason"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: np.array([1]), "ValueError: scores of shape (1,) for 3 nodes"),
        (lambda: np.array([1.0] * 3), "TypeError: scores that are not normalised further must be integers"),
        (_in_place, "ValueError: output array is read-only"),
    ],
)
def test_normalize_errors_name_the_plugin(normalize: Callable[..., Any], reason: str) -> None:
    with pytest.raises(PluginError) as caught:
        scored({"A": plugin(score=lambda: np.array([1, 2, 3]), normalize_score=normalize)})
    assert str(caught.value) == f'running Normalize on Score plugins: plugin "A" failed with: {reason}'


@pytest.mark.parametrize("outside", [-1, 101])
def test_scores_outside_the_range_are_refused(outside: int) -> None:
    with pytest.raises(PluginError) as caught:
        scored({"A": scoring({1: outside})})
    assert str(caught.value) == (
        f'plugin "A" returns an invalid score {outside}, it should in the range of [0, 100] after normalizing'
    )
    with pytest.raises(PluginError) as of_all:
        scored({"A": plugin(score=lambda: outside)})
    assert str(of_all.value) == str(caught.value)
