"""The PreFilter phase, case by case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kdsl.cycle.prefilter import candidate_rows, run_pre_filters
from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.status import Code, Status

from tests.cycle.world import always, attempt, plugin, snapshot


def answering(*answers: Any) -> dict[str, object]:
    """Plugins A, B, … with these PreFilter answers."""
    return {"ABCD"[at]: plugin(pre_filter=always(answer)) for at, answer in enumerate(answers)}


UNSCHEDULABLE = Status(Code.UNSCHEDULABLE, ("u",))
UNRESOLVABLE = Status(Code.UNRESOLVABLE, ("x",))


def test_success_leaves_all_nodes() -> None:
    found = run_pre_filters(attempt(answering(None, Status(Code.SUCCESS))))
    assert (found.rejection, found.names, found.narrowed_by) == (None, None, ())


def test_skip_is_remembered_for_the_filters() -> None:
    of = attempt(answering(Status(Code.SKIP), None))
    run_pre_filters(of)
    assert of.state.skipped_filters == {"A"}


def test_unresolvable_stops_the_phase() -> None:
    asked: list[str] = []
    plugins = answering(UNSCHEDULABLE, UNRESOLVABLE) | {"C": plugin(pre_filter=lambda: asked.append("C"))}
    assert run_pre_filters(attempt(plugins)).rejection == UNRESOLVABLE.by("B")
    assert asked == []


def test_of_several_unschedulable_the_last_counts_after_all_ran() -> None:
    asked: list[str] = []
    last = Status(Code.UNSCHEDULABLE, ("last",))
    plugins = answering(UNSCHEDULABLE, last) | {"C": plugin(pre_filter=lambda: asked.append("C"))}
    assert run_pre_filters(attempt(plugins)).rejection == last.by("B")
    assert asked == ["C"]


def test_narrowings_intersect() -> None:
    found = run_pre_filters(
        attempt(answering(Narrowed(("n0", "n2", "n9")), None, Narrowed({"n2", "n1", "n9"})))
    )
    assert found.rejection is None
    assert found.names == {"n2", "n9"}
    assert found.narrowed_by == ("A", "C")
    assert found.absent == Status(Code.UNRESOLVABLE, ("node(s) didn't satisfy plugin(s) [A C]",))


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ((Narrowed(()),), "node(s) didn't satisfy plugin A"),
        (
            (None, Narrowed(("n0",)), Narrowed(("n1",))),
            "node(s) didn't satisfy plugin(s) [B C] simultaneously",
        ),
        # The names are sorted, whatever the order of the profile.
    ],
)
def test_nothing_left_is_unresolvable(answers: tuple[Any, ...], reason: str) -> None:
    found = run_pre_filters(attempt(answering(*answers)))
    assert found.rejection == Status(Code.UNRESOLVABLE, (reason,))
    assert found.absent == found.rejection


def test_plugin_names_are_sorted_in_texts() -> None:
    plugins = {
        "Z": plugin(pre_filter=lambda: Narrowed(("n0",))),
        "A": plugin(pre_filter=lambda: Narrowed(("n1",))),
    }
    found = run_pre_filters(attempt(plugins))
    assert found.absent.message == "node(s) didn't satisfy plugin(s) [A Z] simultaneously"


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (lambda: Status(Code.ERROR, ("broken",)), "broken"),
        (lambda: Status(Code.PENDING), "unexpected status Pending"),
        (lambda: Status(Code.WAIT, ("w",)), "w"),
        (lambda: {}["gone"], "KeyError: 'gone'"),
    ],
)
def test_anything_else_is_an_error(hook: Callable[[], Any], reason: str) -> None:
    with pytest.raises(PluginError) as caught:
        run_pre_filters(attempt({"A": plugin(pre_filter=hook)}))
    assert str(caught.value) == f'running PreFilter plugin "A": {reason}'


def test_candidates_are_the_existing_nodes_in_the_order_of_the_snapshot() -> None:
    world = snapshot(5)
    assert candidate_rows(world, frozenset({"n4", "n1", "n9"})).tolist() == [1, 4]
    assert candidate_rows(world, frozenset({"n9"})).tolist() == []
    assert candidate_rows(world, None) is world.order
