"""The PostFilter phase: who is asked, what is told, what becomes of the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.fit_error import Diagnosis
from kdsl.cycle.postfilter import PostFilterResult, run_post_filters
from kdsl.cycle.visited import VisitedNodes
from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import Nominated
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn

from tests.cycle.world import always, attempt, plugin

FULL = Status(Code.UNSCHEDULABLE, ("full",), "Fit")
ABSENT = Status(Code.UNRESOLVABLE, ("not a candidate",))


def diagnosis() -> Diagnosis:
    """Of three nodes the last was visited, then the first."""
    rows = np.array([2, 0], dtype=np.int32)
    return Diagnosis(
        3, VisitedNodes.of(rows, StatusColumn(np.array([1, 1], dtype=np.int32), [SUCCESS, FULL])), ABSENT
    )


def run(*answers: Any) -> PostFilterResult:
    plugins = {"ABCD"[at]: plugin(post_filter=always(answer)) for at, answer in enumerate(answers)}
    return run_post_filters(attempt(plugins), diagnosis())


def unschedulable(reason: str) -> Status:
    return Status(Code.UNSCHEDULABLE, (reason,))


def test_plugins_see_what_rejected_each_node_in_the_order_of_the_snapshot() -> None:
    seen: list[tuple[tuple[str, ...], list[Status]]] = []

    def look(nodes: NodeSet, column: StatusColumn) -> None:
        seen.append((nodes.names(), [column[at] for at in range(len(column))]))

    run_post_filters(attempt({"A": plugin(post_filter=look)}), diagnosis())
    assert seen == [(("n0", "n1", "n2"), [FULL, ABSENT, FULL])]


def test_without_plugins_there_is_nothing_to_say() -> None:
    assert run() == PostFilterResult()


def test_the_first_success_ends_the_phase() -> None:
    assert run(unschedulable("a"), Nominated("n1", ("ns/v",)), unschedulable("c")) == PostFilterResult(
        SUCCESS.by("B"), Nominated("n1", ("ns/v",))
    )
    assert run(None, unschedulable("b")) == PostFilterResult(SUCCESS.by("A"))


def test_finding_nothing_adds_its_reasons_and_withdraws_the_nomination() -> None:
    nothing = Nominated(reasons=("nobody to remove",))
    assert run(unschedulable("a"), nothing, unschedulable("c")) == PostFilterResult(
        Status(Code.UNSCHEDULABLE, ("a", "nobody to remove", "c")), nothing
    )


def test_reasons_add_up() -> None:
    assert run(unschedulable("no new claims to deallocate"), unschedulable("preemption: not eligible")) == (
        PostFilterResult(
            Status(Code.UNSCHEDULABLE, ("no new claims to deallocate", "preemption: not eligible"))
        )
    )


@pytest.mark.parametrize("code", [Code.UNRESOLVABLE, Code.ERROR, Code.WAIT])
def test_unresolvable_and_errors_end_the_phase_with_their_own_text(code: Code) -> None:
    assert run(unschedulable("a"), Status(code, ("not found",)), unschedulable("c")) == PostFilterResult(
        Status(code, ("not found",), "B")
    )


def test_an_exception_is_an_error_of_the_plugin() -> None:
    with pytest.raises(
        PluginError, match=r'^running PostFilter plugin "A": ZeroDivisionError: division by zero$'
    ):
        run_post_filters(attempt({"A": plugin(post_filter=lambda: 1 / 0)}), diagnosis())
