"""Inputs that never ended or filled the memory: each gets an answer now, and soon."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest
from kdsl.base.reasons import MAX_REASON, MAX_TOGETHER, more
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Status
from kdsl.plan.rules.predicate_plugin import PredicatePlugin
from kdsl.plan.rules.score import ScoreError

from tests.bounds.attacks import PREDICATES, SCORES, random_predicates
from tests.plan.lab import filtered, node, nodes_of, predicate, score

SECONDS = 10
"""What one attack may take of a processor. Each takes less than one of them."""
POD = PodInfo("p", namespace="d")
NODES = [node(f"n{at}", labels={"zone": f"z{at}"}) for at in range(3)]


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        # No `except Exception` on the way up keeps it.
        raise KeyboardInterrupt(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def answers(plugin: PredicatePlugin) -> list[Status]:
    """Return what a predicate says of the nodes, once if it is the same for all."""
    state, nodes = CycleState(), nodes_of(*NODES)
    early = plugin.pre_filter(state, POD, nodes)
    if isinstance(early, Status):
        return [early]
    column = filtered(plugin, state, POD, nodes)
    return [column[at] for at in range(len(nodes))]


@pytest.mark.parametrize("name", PREDICATES)
def test_a_predicate_that_would_never_end(name: str) -> None:
    given = answers(predicate(PREDICATES[name]))
    assert all(status.reasons for status in given)
    assert all(len(reason) <= MAX_REASON for status in given for reason in status.reasons)
    assert all(len(status.message) < 2 * MAX_TOGETHER for status in given)


@pytest.mark.parametrize(("name", "body"), random_predicates(7, 20).items())
def test_a_predicate_of_shared_values(name: str, body: str) -> None:
    assert all(status.reasons for status in answers(predicate(body))), body


def test_a_score_that_would_never_end_gives_no_points() -> None:
    plugin, state, nodes = score(SCORES["a list of itself"]), CycleState(), nodes_of(*NODES)
    plugin.pre_score(state, POD, nodes)
    assert plugin.score(state, POD, nodes).tolist() == [0, 0, 0]


def test_a_score_beyond_its_share_ends_the_attempt() -> None:
    plugin, state, nodes = score(SCORES["forty values"]), CycleState(), nodes_of(*NODES)
    plugin.pre_score(state, POD, nodes)
    with pytest.raises(
        ScoreError, match=r"rule S failed: more than [0-9]+ steps, the rule's share for a pod"
    ):
        plugin.score(state, POD, nodes)


def test_a_reason_is_cut_where_it_is_seen() -> None:
    body = (
        'let long = lists.range(5000).map(i, string(i)).join(" ")\nrequire node.podCount < 0 else "${long}"'
    )
    (reason,) = {reason for status in answers(predicate(body)) for reason in status.reasons}
    assert len(reason) == MAX_REASON
    assert reason.endswith("…")


def test_reasons_that_are_left_out_are_counted() -> None:
    body = 'report all\nfor i in lists.range(100) { require i < node.podCount else "${i}" }'
    for status in answers(predicate(body)):
        assert status.reasons == (*map(str, range(64)), more(36))
