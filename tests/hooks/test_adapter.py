"""Per-node filters behind the interface of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.adapter import filter_over_nodes, score_over_nodes
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


@pytest.mark.parametrize(
    ("scores", "dtype"), [((3, 1, 2**62 + 1), np.int64), ((3, 1.5, 2), np.float64), ((), np.int64)]
)
def test_scores_of_nodes_become_a_column(scores: tuple[float, ...], dtype: type) -> None:
    answers = dict(zip(("n0", "n1", "n2"), scores, strict=False))
    column = score_over_nodes(lambda state, of, node: answers[node.name])(
        CycleState(), pod(), NodeSet.all(snapshot(len(scores)))
    )
    assert (column.tolist(), column.dtype) == (list(scores), dtype)


@pytest.mark.parametrize("answer", ["3", None])
def test_a_score_that_is_no_number(answer: Any) -> None:
    with pytest.raises(TypeError, match="`score_node` must return a number"):
        score_over_nodes(lambda state, of, node: answer)(CycleState(), pod(), NodeSet.all(snapshot(2)))
