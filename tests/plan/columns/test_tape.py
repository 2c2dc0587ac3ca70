"""A replayed tape returns the answers of the scalar back end, for any later nodes and pods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.meter import Steps
from kdsl.hooks.status import Status
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns import tape
from kdsl.plan.columns.batch import MIN_ROWS
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.score import ScorePlugin

from tests.plan.columns.both import cluster, predicate_program, score_program
from tests.plan.expressions import Expressions

FNS = """
fn share(used: quantity, capacity: quantity): double = math.least(1.0, ratio(used, capacity))
fn left(capacity: quantity, used: quantity): int = used > capacity ? 0 : (capacity - used) * 100 / capacity
fn apart(values: list(double)): double =
  values.size() == 2 ? math.abs(values[0] - values[1]) : math.sqrt(values.sum())
"""
FIT = """
report all
require node.podCount + 1 <= node.allocatable["pods"].asInteger() else "too many"
for r, amount in pod.requests where amount > quantity("0") {
  require amount <= node.allocatable[r] else unresolvable "never ${r}"
  require amount <= node.allocatable[r] - node.requested[r] else "no ${r}"
}
"""
LEFT = """
let weights = {"cpu": 1, "memory": 3}.transformMap(r, w, node.allocatable[r] > quantity("0"), w)
let total = weights.transformList(r, w, w).sum()
let scores = weights.transformList(r, w, w * left(node.allocatable[r], node.requested[r] + pod.requests[r]))
value total == 0 ? 0 : scores.sum() / total
"""
BALANCE = """
let present = ["cpu", "memory"].filter(r, node.allocatable[r] > quantity("0"))
value int((1.0 - apart(present.map(r, share(node.requested[r] + pod.requests[r], node.allocatable[r])))) * 100.0)
"""

AMOUNTS = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from([0, 1, 500, 2000, 2**62, 2**63 - 1]),
        "memory": st.sampled_from([0, 1, 3, 2**53 + 1, 2**63 - 1]),
        "pods": st.integers(0, 3),
    }
).map(Resources)
PLAIN = st.fixed_dictionaries(
    {"cpu": st.integers(1, 99), "memory": st.integers(1, 2**40), "pods": st.just(9)}
).map(Resources)
NODES = MIN_ROWS + 2
SIZES = [NODES] * 3 + [3, MIN_ROWS, 1, NODES]
"""The numbers of nodes that are evaluated, one call after the other."""
CLUSTERS = st.lists(st.one_of(AMOUNTS, PLAIN), min_size=NODES, max_size=NODES)

POD = PodInfo("p", requests=Resources({"cpu": 500, "memory": 3}), priority=2)
WANTED = [Resources({"cpu": 500 + 7 * at, "memory": 3 + at}) for at in range(len(SIZES))]
"""The requests of pods; each step has its own."""
ROOMS = [Resources({"cpu": 400 * (at % 4 + 1), "memory": at + 1, "pods": 2}) for at in range(NODES)]
LOAD = Resources({"cpu": 300, "memory": 2})

Program = PredicateRule | ScorePlugin
Arrival = PodInfo | NodeFacts


def _check(
    program: Program,
    rooms: list[Resources],
    arrivals: list[Arrival],
    wanted: list[Resources] | None = None,
) -> bool:
    """Compare both back ends, time after time for another pod, while something arrives. Return whether the rule
    has tapes for the last pod.
    """
    cache = cluster([NodeFacts(f"n{at}", allocatable=room) for at, room in enumerate(rooms)])
    is_known = False
    for at, size in enumerate(SIZES):
        match arrivals[at : at + 1]:
            case [PodInfo() as pod]:
                cache.add_pod(pod.with_fields(name=f"a{at}", node_name=f"n{at * 5 % NODES}"))
            case [NodeFacts() as facts]:
                cache.add_node(replace(facts, name=f"m{at}"))
        snapshot = cache.snapshot()
        nodes = NodeSet(snapshot, np.roll(snapshot.order, at)[:size])
        pod = POD.with_fields(requests=(wanted or WANTED)[at])
        frame = _begin(program, pod, nodes)
        assert _answers(program, frame, nodes, True) == _answers(
            program, _begin(program, pod, nodes), nodes, False
        )
        tapes = program._tapes
        is_known = tapes is not None and tapes.are_known(frame)
    return is_known


def _begin(program: Program, pod: PodInfo, nodes: NodeSet) -> Frame:
    view = ClusterView(nodes.snapshot)
    return program.begin(pod, view, nodes) if isinstance(program, ScorePlugin) else program.begin(pod, view)


def _answers(program: Program, frame: Frame, nodes: NodeSet, over_columns: bool) -> list[object]:
    """Return the answers of a rule for every node; scores exact in every bit."""
    if isinstance(program, ScorePlugin):
        raw = (
            program.raw_scores(frame, nodes).tolist()
            if over_columns
            else program.scalar_scores(frame, nodes.nodes())
        )
        return list(map(repr, raw))
    if (decided := program.decide(frame)) is not None:
        return [decided]
    found = StatusNumbers()
    ids = (
        program.statuses_in(frame, nodes, found)
        if over_columns
        else program.scalar_statuses(frame, nodes.nodes(), found)
    )
    return [found.table[one] for one in ([0] * len(nodes) if ids is None else ids)]


def _program(body: str) -> Program:
    return score_program(body, FNS) if "value" in body else predicate_program(body, FNS)


@pytest.mark.parametrize("body", [FIT, FIT.replace("report all", ""), LEFT, BALANCE])
def test_a_rule_is_played(body: str) -> None:
    arrivals: list[Arrival] = [PodInfo("a", requests=LOAD)] * len(SIZES)
    assert _check(_program(body), ROOMS, arrivals)


@pytest.mark.parametrize(
    "body",
    [
        'value (pod.requests["memory"] > node.allocatable["memory"] + quantity("100Ti") ? 1 : 0) + node.podCount',
        'require pod.requests["memory"] < node.allocatable["memory"] + quantity("100Ti") else "no"',
        'value (node.allocatable["memory"] - pod.requests["memory"]) > quantity("-100Ti") ? node.podCount : 7',
    ],
)
def test_an_amount_that_decided_a_comparison_is_checked_though_no_step_needs_it(body: str) -> None:
    wanted = [Resources({"memory": amount}) for amount in (3, 4, 2**50, 5, 2**62, 7, 2**62)]
    _check(_program(body), ROOMS, [PodInfo("a", requests=LOAD)] * len(SIZES), wanted)


@pytest.mark.parametrize("body", [FIT, LEFT, BALANCE])
@pytest.mark.parametrize("room", [{"memory": 9}, {"cpu": 2**62, "memory": 2**62, "pods": 9}, {"cpu": 1}])
@pytest.mark.parametrize("at", [2, len(SIZES) - 1])
def test_a_node_beyond_the_assumed_range(body: str, room: dict[str, int], at: int) -> None:
    arrivals: list[Arrival] = [PodInfo("a", requests=LOAD)] * len(SIZES)
    arrivals[at] = NodeFacts("n", allocatable=Resources(room))
    _check(_program(body), ROOMS, arrivals)


def test_a_tape_is_not_played_where_the_evaluation_would_take_another_course() -> None:
    body = "value 100 / (node.podCount - 1)"
    before: list[Arrival] = [NodeFacts("m")] * 2
    assert _check(_program(body), ROOMS, before)
    _check(_program(body), ROOMS, [*before, PodInfo("a", requests=LOAD)])


@pytest.mark.parametrize(
    "body",
    [
        "value [5][node.podCount * 0] + node.podCount",
        "value [5, 7][node.podCount * 0 + 1]",
        "value [0.0 / 0.0, 2.5][node.podCount * 0]",
        "value [[5, 6], [7, 8]][node.podCount * 0][node.podCount > 0 ? 1 : 0]",
        "value [4, 5, 6][node.podCount > 0 ? 0 : 2] + [1, 2, 3].map(i, i * node.podCount).max()",
        'value [1, 2][node.podCount * 0 + (pod.requests["cpu"] > quantity("510m") ? 1 : 2)]',
        'require "x.com/a" in node.requested && node.podCount > 0 else "no"',
        'value "x.com/a" in node.allocatable ? node.podCount : 7',
    ],
)
def test_what_the_ranges_of_columns_decide_is_not_recorded(body: str) -> None:
    arrivals: list[Arrival] = [PodInfo("a", requests=LOAD)] * len(SIZES)
    arrivals[4] = NodeFacts("n", allocatable=Resources({"cpu": 1, "x.com/a": 2}))
    _check(_program(body), ROOMS, arrivals)


LIMITS = [100, 900, 101, 902, 2**50, 2**62, -103]


@pytest.mark.parametrize(
    "body",
    [
        'require pod.requests["cpu"] < quantity("500m") || node.podCount > 0 else "small only"',
        'require pod.requests["cpu"] < quantity("500m") ? node.podCount < 1 : node.podCount < 2 else "no"',
        'require pod.requests["cpu"] > quantity("0") ? node.podCount < 1 : node.podCount < 2 else "no"',
        'require pod.requests["cpu"] != quantity("902m") || node.podCount > 0 else "not 902"',
        'require pod.requests["cpu"] + quantity("1") < node.allocatable["cpu"] else "${pod.requests.size()}"',
        'for r, a in pod.requests where a > quantity("0.2") { require a * 2 < node.allocatable[r] else "${r}" }',
        "value pod.requests.size() + node.podCount",
        'value pod.requests["cpu"] > quantity("0.5") ? node.podCount : 7',
        'value node.podCount + int(math.round(ratio(pod.requests["cpu"], quantity("1"))))',
        'value (node.allocatable["cpu"] - pod.requests["cpu"]) / quantity("100m")',
        'value node.allocatable["cpu"] * 1000000 > pod.requests["cpu"] ? 1 : 0',
    ],
)
def test_pods_whose_amounts_come_out_differently_take_other_courses(body: str) -> None:
    wanted = [Resources({"cpu": cpu, "memory": 3}) for cpu in LIMITS]
    _check(_program(body), ROOMS, [PodInfo("a", requests=LOAD)], wanted)


def test_pods_that_ask_for_other_resources_take_other_courses() -> None:
    wanted = [
        Resources({"cpu": 5}),
        Resources({"memory": 5}),
        Resources({"cpu": 5, "memory": 1}),
        Resources(),
    ]
    _check(_program(FIT), ROOMS, [], [*wanted, *wanted])


def test_pods_whose_labels_have_another_order_have_another_tape() -> None:
    program = _program('for k in pod.labels { require node.podCount > 0 else "no ${k}" }')
    nodes = NodeSet.all(cluster([NodeFacts(f"n{at}") for at in range(NODES)]).snapshot())
    for order in ("ab", "ab", "ab", "ba"):
        frame = _begin(program, PodInfo("p", labels=FrozenMap(dict.fromkeys(order, ""))), nodes)
        (status, *_) = _answers(program, frame, nodes, True)
        assert isinstance(status, Status) and status.reasons == (f"no {order[0]}",)


def test_the_tape_of_a_huge_amount_is_that_of_small_ones() -> None:
    wanted = [Resources({"cpu": cpu, "memory": 3}) for cpu in (1, 2, 2**50, 3, 4, 5, 6)]
    assert _check(_program(FIT), ROOMS, [], wanted)


@pytest.mark.parametrize("most", [1, 2])
def test_few_tapes_are_kept_for_one_signature(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether some node has no memory, and so no quotient, is a decision about the nodes of a call."""
    monkeypatch.setattr(tape, "MAX_TAPES", most)
    program = score_program('value left(node.allocatable["memory"], pod.requests["memory"])', FNS)
    # It is in all calls but that for `MIN_ROWS` nodes.
    without = 8
    rooms = [Resources({"memory": 0 if at == without else 400}) for at in range(NODES)]
    assert _check(program, rooms, [])
    assert program._tapes is not None
    (tapes,) = program._tapes._parts
    assert tapes is not None
    assert [len(each) for each in tapes._tapes.values()] == [most]


@pytest.mark.parametrize(("limit", "is_known"), [("0", True), ("500m", False)])
def test_an_amount_is_compared_with_zero_only(limit: str, is_known: bool) -> None:
    body = f'require pod.requests["cpu"] > quantity("{limit}") && node.podCount < 2 else "no"'
    assert _check(_program(body), ROOMS, []) is is_known


@pytest.mark.parametrize("steps", [1, 5, 20, 60])
def test_a_played_rule_runs_out_of_steps_as_in_the_scalar_back_end(steps: int) -> None:
    body = 'for i in [1, 2, 3, 4, 5, 6, 7, 8] { require twice(node.podCount) < i else "full" }'
    _check(predicate_program(body, "fn twice(n: int): int = n * 2", Steps(node=steps)), ROOMS, [])


def test_a_rule_that_reads_more_of_the_cluster_has_no_tape() -> None:
    body = 'require node.podCount + cluster.nodeCount < 20 else "no"'
    assert not _check(_program(body), ROOMS, [])


INT_LEAVES = st.sampled_from(
    [
        *("1", "0", "-7", "9223372036854775807", "pod.priority", "node.podCount"),
        'node.allocatable["memory"].asInteger()',
        'node.requested["cpu"].asInteger()',
        '(node.allocatable["cpu"] / quantity("1m"))',
        '(node.allocatable["memory"] / node.requested["memory"])',
        'left(node.allocatable["cpu"], node.requested["cpu"] + pod.requests["cpu"])',
        'sign(node.allocatable["cpu"] - node.requested["cpu"])',
        '{"cpu": 1, "memory": 2}.transformList(r, a, node.allocatable[r] > node.requested[r], a * node.podCount).sum()',
        '["cpu", "memory"].filter(r, node.allocatable[r] > node.requested[r]).size()',
        "[node.podCount, pod.priority, 3].sum()",
        "math.least([node.podCount, pod.priority, 2])",
        "math.greatest(node.podCount, 1)",
        "math.abs(node.podCount - 1)",
        "cel.bind(x, node.podCount, x * x)",
    ]
)
DOUBLE_LEAVES = st.sampled_from(
    [
        *("1.5", "-0.0", "double(node.podCount)", "math.sqrt(double(node.podCount))"),
        'share(node.requested["cpu"], node.allocatable["cpu"])',
        'ratio(node.requested["memory"], node.allocatable["memory"])',
        "math.greatest(double(node.podCount), -0.0)",
        "math.round(double(node.podCount) / 2.0)",
        "1.0 / double(node.podCount)",
    ]
)
BOOL_LEAVES = st.sampled_from(
    [
        *("true", "node.podCount > 0", "pod.requests <= node.allocatable"),
        'node.allocatable["cpu"] * 3 > quantity("1500m")',
        'node.allocatable["cpu"] < quantity("0.0005")',
        'node.allocatable["cpu"] == node.requested["cpu"]',
        '["cpu", "memory"].all(r, pod.requests[r] <= node.allocatable[r] - node.requested[r])',
        '["cpu", "memory"].exists(r, node.allocatable[r] > quantity("1"))',
        'pod.requests["cpu"] > quantity("0.5")',
        'pod.requests["memory"] == node.allocatable["memory"]',
        'node.requested["cpu"] + pod.requests["cpu"] <= node.allocatable["cpu"]',
    ]
)


EXPRESSIONS = Expressions(INT_LEAVES, BOOL_LEAVES, DOUBLE_LEAVES)
BOOLS, VALUES = EXPRESSIONS.bools(2), st.one_of(EXPRESSIONS.ints(3), EXPRESSIONS.doubles(3))
WANTS = st.lists(st.one_of(AMOUNTS, PLAIN, st.just(POD.requests)), min_size=len(SIZES), max_size=len(SIZES))
ARRIVALS = st.lists(
    st.one_of(
        st.builds(PodInfo, st.just("a"), requests=AMOUNTS),
        st.builds(NodeFacts, st.just("m"), allocatable=AMOUNTS),
    ),
    max_size=len(SIZES),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(BOOLS, min_size=1, max_size=3), st.booleans(), CLUSTERS, ARRIVALS, WANTS)
def test_played_verdicts_are_the_same(
    conditions: list[str],
    report_all: bool,
    rooms: list[Resources],
    arrivals: list[Arrival],
    wanted: list[Resources],
) -> None:
    lines = [f'require {each} else "no {at}"' for at, each in enumerate(conditions)]
    loop = f'for lr, la in pod.requests {{ require la > node.requested[lr] else "${{lr}}" {lines[0]} }}'
    body = "\n".join([*(["report all"] if report_all else []), *lines, loop])
    _check(predicate_program(body, FNS), rooms, arrivals, wanted)


@settings(deadline=None, max_examples=60)
@given(VALUES, CLUSTERS, ARRIVALS, WANTS)
def test_played_scores_are_the_same(
    value: str, rooms: list[Resources], arrivals: list[Arrival], wanted: list[Resources]
) -> None:
    _check(score_program(f"value {value}", FNS), rooms, arrivals, wanted)
