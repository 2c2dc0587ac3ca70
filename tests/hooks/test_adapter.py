"""Per-node filters behind the interface of columns."""

from __future__ import annotations

from typing import Any

from kdsl.cluster.nodeset import NodeSet
from kdsl.hooks.adapter import filter_over_nodes
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status

from tests.cycle.world import pod, snapshot


def test_each_node_is_asked_and_an_exception_answers_for_its_node_only() -> None:
    def judge(state: CycleState, of: Any, node: Any) -> Status | None:
        if node.name == "n1":
            raise RuntimeError("odd")
        return Status(Code.UNSCHEDULABLE, (node.name,)) if node.name == "n2" else None

    column = filter_over_nodes(judge)(CycleState(), pod(), NodeSet.all(snapshot(4)))
    assert [column[at] for at in range(4)] == [
        Status(Code.SUCCESS),
        Status(Code.ERROR, ("RuntimeError: odd",)),
        Status(Code.UNSCHEDULABLE, ("n2",)),
        Status(Code.SUCCESS),
    ]
