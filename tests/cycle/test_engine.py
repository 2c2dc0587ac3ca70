"""The engine, pod by pod: outcomes, texts, rotation, nomination, and no influence of parallelism."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.clock import ManualClock
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import (
    Condition,
    Decision,
    Detail,
    NodeVerdict,
    Outcome,
    PreFilter,
    Rejection,
    ScoreCell,
    TieBreak,
    Victim,
)
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.ports import AttemptState
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Narrowed, Nominated
from kdsl.hooks.status import Code, Status, StatusColumn

from tests.cycle.world import always, cluster, engine, plugin, pod, rejecting, scoring, table

FULL = EngineOptions(detail=Detail.FULL)


def refuse(reason: str, code: Code = Code.UNSCHEDULABLE) -> Status:
    return Status(code, (reason,))


def test_the_node_with_the_highest_total_wins_and_is_taken() -> None:
    one = engine({"F": rejecting({0: "full"}), "S": scoring({1: 10, 2: 90})}, 4, scores={"S": 2})
    decision = one.schedule_one(pod())
    assert decision == Decision(
        pod="default/p",
        profile="default",
        outcome=Outcome.PLACED,
        node="n2",
        evaluated=4,
        feasible=3,
        nodes=4,
        sampled=4,
        rejections=(Rejection("F", "Unschedulable", "full", "", 1),),
        total=180,
        tied=1,
        snapshot=decision.snapshot,
    )


def test_the_next_cycle_sees_the_pod_on_its_node() -> None:
    def one_pod_each(node: Any) -> Status | None:
        return refuse("taken") if node.pods else None

    one = engine({"F": plugin(filter_node=one_pod_each)}, 2)
    decisions = list(one.decisions([pod("a"), pod("b"), pod("c")]))
    assert [decision.node for decision in decisions] == ["n0", "n1", ""]
    assert decisions[2].message == "0/2 nodes are available: 2 taken."
    assert decisions[1].snapshot > decisions[0].snapshot


def test_full_detail_tells_of_every_node() -> None:
    plugins = {
        "Narrow": plugin(pre_filter=always(Narrowed(("n1", "n2", "n3", "n9")))),
        "F": rejecting({1: "full"}),
        "S": scoring({2: 10, 3: 40}),
    }
    one = engine(plugins, 4, options=FULL, scores={"S": 3})
    decision = one.schedule_one(pod())
    absent = refuse("node(s) didn't satisfy plugin(s) [Narrow]", Code.UNRESOLVABLE)
    assert decision.prefilter == PreFilter(narrowed_by=("Narrow",), candidates=("n1", "n2", "n3", "n9"))
    assert decision.verdicts == (
        NodeVerdict("n0", False, absent),
        NodeVerdict("n1", False, refuse("full").by("F")),
        NodeVerdict("n2", True, None, (ScoreCell("S", 10, 10, 3),), 30),
        NodeVerdict("n3", True, None, (ScoreCell("S", 40, 40, 3),), 120),
    )
    assert decision.verdicts[3].scores[0].weighted == 120


def test_nodes_beyond_the_end_of_the_search_have_no_verdict() -> None:
    one = engine({"F": rejecting({0: "full"})}, 4, options=FULL)
    assert [(verdict.feasible, verdict.status) for verdict in one.schedule_one(pod()).verdicts] == [
        (False, refuse("full").by("F")),
        (True, None),
        (False, None),
        (False, None),
    ]


def test_without_scores_the_first_feasible_node_is_taken_and_the_search_moves_on() -> None:
    one = engine({"F": rejecting({1: "full"})}, 4)
    decisions = [one.schedule_one(pod(name)) for name in "abcd"]
    assert [decision.node for decision in decisions] == ["n0", "n2", "n3", "n0"]
    # The search for `a` met n1 after n0: it was rejected, so the next search begins behind it.
    assert [decision.start for decision in decisions] == [0, 2, 3, 0]
    assert [decision.evaluated for decision in decisions] == [2, 1, 1, 2]


def test_rotation_counts_over_all_nodes_though_the_candidates_are_few() -> None:
    plugins = {"Narrow": plugin(pre_filter=always(Narrowed(("n1", "n3")))), "S": scoring({})}
    one = engine(plugins, 5, scores={"S": 1}, options=EngineOptions(tie_break=TieBreak.FIRST))
    decisions = [one.schedule_one(pod(name)) for name in "abcd"]
    assert [decision.start for decision in decisions] == [0, 2, 4, 1]
    assert [decision.node for decision in decisions] == ["n1", "n1", "n1", "n3"]


def test_sampling_looks_for_enough_nodes_only() -> None:
    one = engine({"S": scoring({})}, 300, scores={"S": 1}, sample_size=lambda *_: (144, ()))
    decisions = [one.schedule_one(pod(name)) for name in "abcd"]
    assert [(decision.sampled, decision.evaluated, decision.feasible) for decision in decisions] == [
        (144,) * 3
    ] * 4
    assert [decision.start for decision in decisions] == [0, 144, 288, 132]
    assert [decision.node for decision in decisions] == ["n0", "n144", "n288", "n132"]


@pytest.mark.parametrize(("percentage", "sampled"), [(0, 155), (60, 215), (99, 254), (100, 310)])
def test_the_profile_says_how_many_nodes_are_enough_unless_all_are_asked_for(
    percentage: int, sampled: int
) -> None:
    asked = []

    def sample_size(nodes: int, percentage: int) -> tuple[int, tuple[Fault, ...]]:
        asked.append((nodes, percentage))
        return nodes // 2 + percentage, ()

    options = EngineOptions(percentage=percentage)
    one = engine({"S": scoring({})}, 310, scores={"S": 1}, sample_size=sample_size, options=options)
    assert one.schedule_one(pod()).sampled == sampled
    assert asked == ([] if percentage == 100 else [(310, percentage)])


def test_a_profile_without_a_sample_finds_all_feasible_nodes() -> None:
    one = engine({"S": scoring({})}, 300, scores={"S": 1}, options=EngineOptions(percentage=5))
    assert one.schedule_one(pod()).sampled == 300


def test_what_goes_wrong_with_the_sample_is_told() -> None:
    fault = Fault("sample", "division by zero", "p.kdsl:1:2")
    one = engine({"S": scoring({})}, 3, scores={"S": 1}, sample_size=lambda nodes, _: (nodes, (fault,)))
    assert one.schedule_one(pod()).faults == (fault,)


def test_a_single_feasible_node_is_not_scored() -> None:
    def score() -> None:
        raise AssertionError("no choice, no score")

    one = engine({"F": rejecting({0: "x", 1: "x"}), "S": plugin(score=score)}, 3, scores={"S": 1})
    decision = one.schedule_one(pod())
    assert (decision.node, decision.total, decision.tied) == ("n2", None, 1)


class TestNothingFits:
    def test_the_message_counts_reasons(self) -> None:
        decision = engine({"A": rejecting({0: "a"}), "B": rejecting({1: "b", 2: "b"})}).schedule_one(pod())
        assert decision.outcome is Outcome.UNSCHEDULABLE
        assert decision.message == "0/3 nodes are available: 1 a, 2 b."
        assert [(rejection.plugin, rejection.nodes) for rejection in decision.rejections] == [
            ("B", 2),
            ("A", 1),
        ]

    def test_a_prefilter_rejection_answers_for_all_nodes(self) -> None:
        plugins = {"A": plugin(pre_filter=always(refuse("no claim", Code.UNRESOLVABLE)))}
        decision = engine(plugins, options=FULL).schedule_one(pod())
        status = refuse("no claim", Code.UNRESOLVABLE).by("A")
        assert decision.message == "0/3 nodes are available: no claim."
        assert decision.prefilter.status == status
        assert decision.rejections == (Rejection("A", "UnschedulableAndUnresolvable", "no claim", "", 3),)
        assert decision.verdicts == tuple(NodeVerdict(f"n{at}", False, status) for at in range(3))
        assert decision.evaluated == 0

    def test_narrowed_out_nodes_are_counted_under_the_plugin_that_narrowed(self) -> None:
        plugins = {"Narrow": plugin(pre_filter=always(Narrowed(("n1",)))), "F": rejecting({1: "full"})}
        decision = engine(plugins).schedule_one(pod())
        assert decision.message == (
            "0/3 nodes are available: 1 full, 2 node(s) didn't satisfy plugin(s) [Narrow]."
        )

    def test_narrowing_to_unknown_nodes_leaves_nothing(self) -> None:
        decision = engine({"Narrow": plugin(pre_filter=always(Narrowed(("gone",))))}).schedule_one(pod())
        assert decision.message == "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [Narrow]."

    def test_a_cluster_without_nodes(self) -> None:
        one = engine({}, 0)
        found = [(decision.outcome, decision.message) for decision in one.decisions([pod()], attempts=9)]
        assert found == [(Outcome.UNSCHEDULABLE, "no nodes available to schedule pods")]
        assert one.waking_events("default/p") == ("a node is added",)

    def test_post_filter_adds_its_text(self) -> None:
        plugins = {
            "F": rejecting(dict.fromkeys(range(3), "x")),
            "P": plugin(post_filter=always(refuse("not found"))),
        }
        assert engine(plugins).schedule_one(pod()).message == "0/3 nodes are available: 3 x. not found"

    def test_post_filter_nominates(self) -> None:
        plugins = {
            "F": rejecting(dict.fromkeys(range(3), "x")),
            "P": plugin(post_filter=always(Nominated("n1", ("default/victim",)))),
        }
        one = engine(plugins)
        decision = one.schedule_one(pod())
        assert (decision.outcome, decision.nominated, decision.victims) == (
            Outcome.UNSCHEDULABLE,
            "n1",
            (Victim.of("default/victim", "default-scheduler"),),
        )
        assert decision.victims[0].condition == Condition(
            "DisruptionTarget",
            "True",
            "PreemptionByScheduler",
            "default-scheduler: preempting to accommodate a higher priority pod",
        )
        assert one.nominator.node_of(pod()) == "n1"


class TestNominatedNode:
    def test_it_is_taken_without_a_look_at_others(self) -> None:
        one = engine({"F": plugin(filter=always(None)), "S": scoring({0: 100})}, 3, scores={"S": 1})
        decision = one.schedule_one(pod(nominated_node_name="n2"))
        assert (decision.node, decision.evaluated, decision.feasible) == ("n2", 1, 1)
        assert one.schedule_one(pod("next")).start == 0

    def test_where_it_fails_the_search_goes_on_and_counts_it_once(self) -> None:
        one = engine({"F": rejecting({2: "full"}), "S": scoring({0: 100})}, 3, scores={"S": 1})
        decision = one.schedule_one(pod(nominated_node_name="n2"))
        assert (decision.node, decision.evaluated, decision.feasible) == ("n0", 3, 2)
        assert decision.rejections == (Rejection("F", "Unschedulable", "full", "", 1),)

    def test_outside_the_candidates_it_still_counts(self) -> None:
        plugins = {
            "Narrow": plugin(pre_filter=always(Narrowed(("n0",)))),
            "F": rejecting({0: "full", 2: "full"}),
        }
        one = engine(plugins)
        decision = one.schedule_one(pod(nominated_node_name="n2"))
        assert decision.message == (
            "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [Narrow], 2 full."
        )
        assert decision.evaluated == 2
        assert one.schedule_one(pod("next")).start == 2

    def test_an_unknown_node_or_an_error_there_is_passed_over(self) -> None:
        one = engine({"F": plugin(filter=always(None))})
        assert one.schedule_one(pod(nominated_node_name="gone")).node == "n0"
        assert engine({"F": rejecting({2: "broken"}, Code.ERROR)}).schedule_one(
            pod(nominated_node_name="n2")
        ).node == ("n0")

    def test_others_leave_room_for_it(self) -> None:
        def one_pod_each(node: Any) -> Status | None:
            return refuse("taken") if node.pods else None

        one = engine({"F": plugin(filter_node=one_pod_each)}, 2)
        one.nominator.add(pod("vip", priority=5), "n0")
        assert one.schedule_one(pod("low")).node == "n1"
        assert one.schedule_one(pod("high", priority=6)).node == "n0"


class TestSkipped:
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"deletion_timestamp": 1}, "skip schedule deleting pod: default/p"),
            ({"scheduler_name": "other"}, "no profile for scheduler other"),
            ({"node_name": "n1"}, "skip schedule placed pod: default/p"),
        ],
    )
    def test_there_is_nothing_to_decide(self, fields: dict[str, Any], message: str) -> None:
        decision = engine({}).schedule_one(pod(**fields))
        assert (decision.outcome, decision.message) == (Outcome.SKIPPED, message)

    def test_nothing_is_told_of_a_search_that_there_was_not(self) -> None:
        decision = engine({}).schedule_one(pod(node_name="n1"))
        assert decision == Decision(
            "default/p", "default", Outcome.SKIPPED, message=decision.message, evaluated=0, feasible=0, nodes=0,
            start=0, sampled=0, total=None, tied=0, snapshot=0,
        )  # fmt: skip
        assert decision.prefilter == PreFilter(None, (), (), None)

    def test_a_pod_that_was_placed_is_not_placed_again(self) -> None:
        one = engine({})
        assert one.schedule_one(pod()).outcome is Outcome.PLACED
        assert one.schedule_one(pod()).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ({"X": plugin(pre_filter=lambda: 1 / 0)}, 'running PreFilter plugin "X": '),
        ({"X": plugin(filter=lambda: 1 / 0)}, 'running "X" filter plugin: '),
        ({"X": plugin(filter_node=lambda: 1 / 0)}, 'running "X" filter plugin: '),
        ({"X": plugin(pre_score=lambda: 1 / 0, score=always(None))}, 'running PreScore plugin "X": '),
        ({"X": plugin(score=lambda: 1 / 0)}, 'running Score plugins: plugin "X" failed with: '),
        ({"X": plugin(reserve=lambda: 1 / 0)}, 'running Reserve plugin "X": '),
        ({"X": plugin(permit=lambda: 1 / 0)}, 'running Permit plugin "X": '),
        ({"X": plugin(pre_bind=lambda: 1 / 0)}, 'running PreBind plugin "X": '),
        ({"X": plugin(bind=lambda: 1 / 0)}, 'running Bind plugin "X": '),
    ],
)
def test_a_plugin_that_raises_ends_the_attempt_and_nothing_else(
    plugins: dict[str, Any], message: str
) -> None:
    scores = {"X": 1} if hasattr(plugins["X"], "score") else {}
    one = engine(plugins, scores=scores)
    for _ in range(2):  # the pod is not left on a node, so a second attempt meets the same error
        decision = one.schedule_one(pod(nominated_node_name="n1") if scores == {} else pod())
        assert decision.outcome is Outcome.ERROR
        assert decision.message == f"{message}ZeroDivisionError: division by zero"
        assert decision.node == ""
    assert one.nominator.node_of(pod(nominated_node_name="n1")) == ""


def test_of_a_pod_that_prefilter_rejects_no_node_is_looked_for() -> None:
    decision = engine({"P": plugin(pre_filter=always(refuse("no")))}, 3).schedule_one(pod())
    assert decision.outcome is Outcome.UNSCHEDULABLE
    found = (decision.evaluated, decision.feasible, decision.nodes, decision.start, decision.sampled)
    assert found == (0, 0, 3, 0, 0)


def test_an_error_is_of_the_plugin_that_signed_it() -> None:
    """A plugin that asks others says whose answer it is; who answers with no name is itself meant."""
    for signed, named in (("", "F"), ("Inner", "Inner")):
        answer = Status(Code.ERROR, ("broken",), signed)
        decision = engine({"F": plugin(filter=always(StatusColumn.of([answer] * 2)))}, 2).schedule_one(pod())
        assert decision.outcome is Outcome.ERROR
        assert [fault.source for fault in decision.faults] == [named]


def test_the_search_so_far_counts_when_a_filter_fails() -> None:
    one = engine(
        {"F": rejecting({0: "full"}), "G": rejecting({2: "broken"}, Code.ERROR), "S": scoring({})},
        scores={"S": 1},
    )
    decision = one.schedule_one(pod())
    assert (decision.outcome, decision.evaluated, decision.feasible) == (Outcome.ERROR, 2, 1)
    assert one.schedule_one(pod()).start == 2


def test_gated_pods_are_told_first() -> None:
    def gate(pod: Any) -> Status | None:
        return (
            refuse("waiting for scheduling gates: [g]", Code.UNRESOLVABLE) if pod.scheduling_gates else None
        )

    one = engine({"G": plugin(pre_enqueue=gate)})
    decisions = list(one.decisions([pod("a"), pod("b", scheduling_gates=("g",)), pod("c", priority=1)]))
    assert [(decision.pod, decision.outcome) for decision in decisions] == [
        ("default/b", Outcome.GATED),
        ("default/c", Outcome.PLACED),
        ("default/a", Outcome.PLACED),
    ]
    assert decisions[0].message == "waiting for scheduling gates: [g]"


def test_a_tracer_hears_every_decision() -> None:
    class Heard:
        def __init__(self) -> None:
            self.heard: list[Decision] = []

        def begin(self, pod: PodInfo, state: AttemptState) -> None:
            """Every decision is recorded."""

        def record(self, decision: Decision) -> None:
            self.heard.append(decision)

    tracer = Heard()
    binder = plugin(bind=always(None))
    one = Engine([table({"binder": binder})], cluster(2), ManualClock(), tracer=tracer)
    assert list(one.decisions([pod("a"), pod("b", deletion_timestamp=1)])) == tracer.heard
    assert len(tracer.heard) == 2


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 119), st.sampled_from(["x", "y"]), max_size=90), min_size=1, max_size=3
    ),
    st.lists(st.integers(0, 3), min_size=120, max_size=120),
    st.sampled_from([4, 16]),
    st.sampled_from(TieBreak),
)
def test_parallelism_changes_no_decision(
    rejections: list[dict[int, str]], scores: list[int], workers: int, tie_break: TieBreak
) -> None:
    def decide(parallelism: int) -> list[Decision]:
        plugins = {f"F{at}": rejecting(rows) for at, rows in enumerate(rejections)}
        plugins["S"] = scoring(dict(enumerate(scores)))
        options = EngineOptions(seed=1, tie_break=tie_break, parallelism=parallelism, detail=Detail.FULL)
        with engine(plugins, 120, options=options, scores={"S": 1}) as one:
            return list(one.decisions(pod(str(at)) for at in range(3)))

    assert decide(workers) == decide(1)


def test_where_a_plugin_goes_wrong_only_the_nodes_before_it_were_rejected() -> None:
    def goes_wrong(node: Any) -> Status | None:
        if node.name == "n1":
            raise ValueError("broken")
        return refuse("full")

    decision = engine({"F": plugin(filter_node=goes_wrong)}, 4).schedule_one(pod())
    assert (decision.outcome, decision.evaluated, decision.nodes) == (Outcome.ERROR, 1, 4)
    assert decision.rejections == (Rejection("F", "Unschedulable", "full", "", 1),)


def test_a_tracer_is_told_how_many_attempts_there_were_before() -> None:
    class Tracing:
        def __init__(self) -> None:
            self.numbers: list[int] = []

        def begin(self, pod: PodInfo, state: AttemptState) -> None:
            self.numbers.append(state.number)

        def record(self, decision: Decision) -> None:
            self.numbers.append(-1)

    tracing = Tracing()
    engine = Engine([table({})], cluster(1), ManualClock(), EngineOptions(attempts=7), tracer=tracing)
    with engine:
        for name in "ab":
            engine.schedule_one(pod(name))
    assert tracing.numbers == [7, -1, 8, -1]
