"""Answers of plugins beside the rules of a profile: `filter_feasible`, `add_scores` and `trim_candidates`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kdsl.base.clock import ManualClock
from kdsl.base.events import Action, EventPattern, Resource
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cycle.decision import Decision, Detail, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.hooks.specs import AddedScores
from kdsl.hooks.status import Code, Status, StatusColumn

from tests.cycle.world import always, cluster, plugin, pod, table

BUSY = Status(Code.UNSCHEDULABLE, ("busy",))
NODES = 150


def decide(*, nodes: int = 3, start: int = 0, scores: bool = False, **hooks: Any) -> tuple[Decision, Engine]:
    """Decide one pod in a profile with a rule that rejects `n0`."""
    rule = plugin(
        filter=lambda nodes: StatusColumn.of(BUSY if name == "n0" else None for name in nodes.names()),
        score=lambda nodes: np.ones(len(nodes), np.int64),
        bind=always(None),
    )
    plugins = {"Rule": rule} | ({"Late": plugin(**hooks)} if hooks else {})
    frozen = table(
        plugins, scores={"Rule": 1} if scores else None, sample_size=lambda nodes, _: (min(nodes, 100), ())
    )
    options = EngineOptions(detail=Detail.FULL, start=start)
    engine = Engine([frozen], cluster(nodes), ManualClock(), options)
    with engine:
        return engine.schedule_one(pod()), engine


def test_it_is_asked_about_feasible_nodes_and_its_name_is_on_the_answer() -> None:
    asked: list[tuple[str, ...]] = []

    def judge(nodes: Any) -> StatusColumn:
        asked.append(nodes.names())
        return StatusColumn.of([BUSY, None])

    decision, _ = decide(filter_feasible=judge)
    assert asked == [("n1", "n2")]
    assert [verdict.status for verdict in decision.verdicts] == [BUSY.by("Rule"), BUSY.by("Late"), None]
    assert (decision.node, decision.evaluated, decision.feasible) == ("n2", 3, 1)


def test_where_the_next_search_starts_does_not_depend_on_it() -> None:
    everything = always(StatusColumn.of([BUSY] * 100))
    rejected, engine = decide(nodes=NODES, start=7, filter_feasible=everything, scores=True)
    placed, other = decide(nodes=NODES, start=7, scores=True)
    assert (rejected.outcome, placed.outcome) == (Outcome.UNSCHEDULABLE, Outcome.PLACED)
    assert rejected.evaluated == placed.evaluated == 100
    assert engine._start == other._start == 107


def test_more_than_one_node_is_looked_for_where_somebody_may_reject_it() -> None:
    assert decide()[0].sampled == 1
    assert decide(filter_feasible=always(None))[0].sampled == 3


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Status(Code.ERROR, ("out of order",)), "out of order"),
        (StatusColumn.of([Status(Code.ERROR, ("oops",)), None]), "oops"),
        (StatusColumn.of([BUSY]), "ValueError: 1 answers for 2 nodes"),
        (["n1"], "TypeError: `filter_feasible` must return None, StatusColumn or Status, not list"),
        (BUSY, "busy"),
    ],
)
def test_what_it_cannot_answer_is_an_error(answer: Any, message: str) -> None:
    decision, _ = decide(filter_feasible=always(answer))
    assert (decision.outcome, decision.message) == (Outcome.ERROR, message)


def test_points_are_added_to_the_totals() -> None:
    def add(nodes: Any) -> list[AddedScores]:
        return [AddedScores("late", 3, np.arange(len(nodes)) * 50)]

    decision, _ = decide(scores=True, add_scores=add)
    assert [verdict.total for verdict in decision.verdicts] == [None, 1, 151]
    assert [cell.weighted for cell in decision.verdicts[2].scores] == [1, 150]
    without, _ = decide(add_scores=add)
    assert [verdict.total for verdict in without.verdicts] == [None, 0, 150]
    assert without.sampled == 3


@pytest.mark.parametrize(
    "answer",
    [[AddedScores("late", 1, np.zeros(1, np.int64))], [AddedScores("late", 1, np.zeros(2))], None],
    ids=["shape", "type", "none"],
)
def test_points_that_cannot_be_added(answer: Any) -> None:
    decision, _ = decide(add_scores=always(answer))
    assert decision.outcome is Outcome.ERROR
    assert decision.message.startswith('running AddScores plugin "Late": ')


@pytest.mark.parametrize("is_negative", [False, True])
@pytest.mark.parametrize("scores", [False, True])
def test_totals_may_be_as_large_as_they_can_be_and_no_larger(scores: bool, is_negative: bool) -> None:
    # What the rule gives is in the total already.
    room = 2**63 - 1 - scores
    for points, weight, is_good in (
        (room, 1, True),
        (room, 2, False),
        (room + 1, -1, False),
        (room // 2, 2, True),
    ):
        column = (
            np.array([0, -points if is_negative else points]) if points < 2**63 else np.array([0, -(2**63)])
        )
        decision, _ = decide(scores=scores, add_scores=always([AddedScores("late", weight, column)]))
        if is_good:
            assert [verdict.total for verdict in decision.verdicts[1:]] == [
                int(scores),
                int(scores) + int(column[1]) * weight,
            ]
        else:
            assert decision.outcome is Outcome.ERROR
            assert decision.message.endswith("ValueError: no total can hold its points")


def test_a_plugin_that_fails_to_trim_candidates() -> None:
    room = plugin(
        filter=lambda nodes: StatusColumn.of([BUSY if node.pods else None for node in nodes.nodes()]),
        may_preempt=always(None),
        find_victims=lambda pods: pods,
        enough_candidates=always(1),
        choose_candidate=lambda candidates: candidates[0],
    )
    late = plugin(trim_candidates=lambda: 1 / 0)
    frozen = table({"Room": room, "Late": late}, preemption="Room")
    full = cluster(1)
    full.add_pod(pod("old", node_name="n0"))
    with Engine([frozen], full, ManualClock()) as engine:
        decision = engine.schedule_one(pod())
    text = 'running preemption "Late": ZeroDivisionError: division by zero'
    assert (decision.outcome, decision.message) == (Outcome.ERROR, text)


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_plugin_that_keeps_no_candidate_is_asked_again_after_its_events(has_failed: bool) -> None:
    room = plugin(
        filter=lambda nodes: StatusColumn.of([BUSY if node.pods else None for node in nodes.nodes()]),
        may_preempt=always(None),
        find_victims=lambda pods: pods,
        enough_candidates=always(1),
        choose_candidate=lambda candidates: candidates[0],
        events=lambda: (EventPattern(Resource.ASSIGNED_POD, Action.DELETE),),
    )
    late = plugin(
        trim_candidates=lambda candidates: candidates if is_open else none,
        events=lambda: (EventPattern(Resource.NODE, Action.NODE_LABEL),),
    )
    is_open, none = False, Status(Code.ERROR, ("no answer",)) if has_failed else []
    full = cluster(1)
    full.add_pod(pod("old", node_name="n0"))
    with Engine([table({"Room": room, "Late": late}, preemption="Room")], full, ManualClock()) as engine:
        (decision,) = engine.decisions([pod()], attempts=9)
        assert (decision.victims, decision.blockers) == ((), ("Room", "Late"))
        full.add_node(NodeFacts("n0", unschedulable=True))
        assert list(engine.decisions([], attempts=9)) == []
        is_open = True
        full.add_node(NodeFacts("n0", unschedulable=True, labels=FrozenMap({"k": "v"})))
        (decision,) = engine.decisions([], attempts=9)
        assert decision.nominated == "n0"


def test_a_plugin_that_was_asked_for_no_candidates_does_not_wake_the_pod() -> None:
    """An earlier PostFilter failed, as that of device claims does if another plugin rejects the pod first."""
    room = plugin(
        filter=lambda nodes: StatusColumn.of([BUSY] * len(nodes)),
        may_preempt=always(None),
        find_victims=lambda pods: pods,
        enough_candidates=always(1),
        choose_candidate=lambda candidates: candidates[0],
        events=always(()),
    )
    early = plugin(post_filter=always(Status(Code.ERROR, ("not found",))), events=always(()))
    late = plugin(trim_candidates=lambda candidates: candidates)
    plugins = {"Early": early, "Room": room, "Late": late}
    full = cluster(1)
    with Engine([table(plugins, preemption="Room")], full, ManualClock()) as engine:
        (decision,) = engine.decisions([pod()], attempts=9)
        assert decision.blockers == ("Room",)
        full.add_node(NodeFacts("n0", unschedulable=True))
        assert list(engine.decisions([], attempts=9)) == []


def test_an_error_at_the_promised_node_is_not_the_end_of_the_search() -> None:
    asked: list[tuple[str, ...]] = []

    def judge(nodes: Any) -> None:
        asked.append(nodes.names())
        if len(asked) == 1:
            raise OSError("not yet")

    engine = Engine(
        [
            table(
                {
                    "Rule": plugin(filter=always(None), bind=always(None)),
                    "Late": plugin(filter_feasible=judge),
                }
            )
        ],
        cluster(3),
        ManualClock(),
    )
    with engine:
        decision = engine.schedule_one(pod(nominated_node_name="n2"))
    assert decision.outcome is Outcome.PLACED
    assert asked == [("n2",), ("n0", "n1", "n2")]
