"""Many what-ifs at once, each about one node without some pods, are judged as each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import NodesWithPods, Snapshot
from kdsl.cycle.preemption.thinned import ThinnedNodes
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.eval.values import EvalError, Value
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.plan.columns import batch
from kdsl.plan.columns.node_groups import NodeReads
from kdsl.plan.counts.what_ifs import _WhatIfCount
from kdsl.plan.memo.predicates import PredicateMemo
from kdsl.plan.rules.compiled_profile import compile_profile
from kdsl.plan.rules.predicate import PredicateRule

from tests.plan.expressions import Expressions
from tests.plan.lab import compile_rules, rules
from tests.plan.memo.test_joined import (
    BOOL_LEAVES,
    INT_LEAVES,
    NODES,
    PODS,
    TERMS,
    answers_of,
    column_of,
    profile_of,
)

SIZE = 6
PREFERRED = [replace(term, weight=weight) for term in TERMS for weight in (1, 2, 100)]
PREFERRING_PODS = st.builds(
    lambda pod, terms: pod.with_fields(preferred_affinity=terms, preferred_anti_affinity=terms[:1]),
    PODS,
    st.lists(st.sampled_from(PREFERRED), max_size=2).map(tuple),
)
NO_MORE: Mapping[int, Sequence[PodInfo]] = {}
ALIKE = 'p, p.labels[?"k"] == pod.labels[?"k"]'
COUNTS = st.sampled_from(
    [
        f'topology("k").count({ALIKE}).least(1)',
        f'topology("j").count({ALIKE}).least(3)',
        f'topology("i").count({ALIKE}).total()',
        'topology("k").sum(p, p.priority - 1).least(0)',
        'topology("j").sum(p, p.priority - 1).total()',
        'topology("k").sum(p, 1 - p.priority).here(node)',
        'topology("k").sum(p, (p.priority - 1) * 1200000000000000000).total()',
        'topology("k").sum(p, 6 / (p.priority - 3)).here(node)',
        'topology("k").eligible(n, !n.unschedulable).count(p, p.priority > 0).least(1)',
        'topology("k").eligible(n, !n.unschedulable).count(p, p.priority > 0).domains()',
        'topology("k").eligible(n, n.podCount < 2).count(p, true).domains()',
        "pod.labels.map(k, topology(k).count(p, p.priority > 1).least(0)).sum()",
        'cluster.requiredAntiAffinityTerms.count(t, t.topologyKey == "k").total()',
        "cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).here(node)",
        "cluster.preferredAffinityTerms.count(t, t.matches(pod)).total()",
        "cluster.preferredAffinityTerms.sum(t, 6 / (t.weight - 1)).here(node)",
        "cluster.preferredAntiAffinityTerms.sum(t, t.weight * 300000000000000000).total()",
        "cluster.nodes.map(n, n.podCount).sum()",
    ]
)
EXPRESSIONS = Expressions(st.one_of(COUNTS, COUNTS, INT_LEAVES), BOOL_LEAVES)
BOOLS, INTS = EXPRESSIONS.bools(2), EXPRESSIONS.ints(2)
STEPS = st.sampled_from([DEFAULT_STEPS, *(Steps(pod=steps) for steps in (7, 8, 9, 12, 20, 40))])


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """A predicate about counts, most often."""
    lines = [f"let a = {draw(INTS)}", draw(st.sampled_from(["", "", f"applies when {draw(BOOLS)}"]))]
    lines.append(draw(st.sampled_from(["", 'on error reject "failed"'])))
    lines += [
        f'require {draw(BOOLS)} else "no"',
        f'require a > {draw(INTS)} else "{draw(st.sampled_from(["few", "${a}"]))}"',
    ]
    return "\n".join(lines)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Snapshot, list[list[PodInfo]]]:
    """A cluster, and for each node, in rows, some of its pods."""
    cache = ClusterCache()
    for at, facts in enumerate(draw(st.lists(NODES, min_size=2, max_size=SIZE))):
        cache.add_node(replace(facts, name=f"n{at}"))
    chosen: dict[str, list[PodInfo]] = {node.name: [] for node in cache.nodes()}
    for number, pod in enumerate(draw(st.lists(PREFERRING_PODS, max_size=12))):
        name = draw(st.sampled_from(sorted(chosen)))
        cache.add_pod(placed := pod.with_fields(name=f"q{number}").on(name))
        if draw(st.booleans()):
            chosen[name].append(placed)
    snapshot = cache.snapshot()
    return snapshot, [chosen[snapshot.names[row]] for row in snapshot.order.tolist()]


@st.composite
def more_pods(draw: st.DrawFn, live: Snapshot) -> dict[int, list[PodInfo]]:
    """Pods that come to some nodes, by row."""
    chosen = draw(st.lists(st.sampled_from(live.order.tolist()), min_size=1, unique=True))
    pods = st.lists(PREFERRING_PODS, min_size=1, max_size=3)
    return {
        row: [
            pod.with_fields(name=f"m{row}-{at}", node_name=live.names[row])
            for at, pod in enumerate(draw(pods))
        ]
        for row in chosen
    }


def together(nodes: ThinnedNodes, more: Mapping[int, Sequence[PodInfo]] = NO_MORE) -> NodeSet:
    """Return all nodes, each in its own what-if; if they get more pods, those that do."""
    live = nodes.snapshot
    thinned = live.with_what_ifs(nodes.part(np.arange(len(live))))
    if not more:
        return NodeSet(thinned, live.order)
    joined = NodesWithPods(thinned, more)
    return NodeSet(thinned.with_what_ifs(joined), joined.rows)


def alone(nodes: ThinnedNodes, more: Mapping[int, Sequence[PodInfo]] = NO_MORE) -> list[NodeSet]:
    """Return each of these nodes in a snapshot of its own."""
    live, found = nodes.snapshot, list[NodeSet]()
    for row in more or live.order.tolist():
        info = nodes.info(row)
        for pod in more.get(row, ()):
            info = info.with_pod(pod)
        found.append(NodeSet(live.overlay(row, info), np.array([row], np.intp)))
    return found


def judged(plugins: Sequence[Any], pod: PodInfo, live: Snapshot, others: Sequence[NodeSet]) -> list[Any]:
    """Return the statuses of nodes of other snapshots, after a PreFilter on the live one."""
    joined, state = PredicateMemo(plugins), CycleState()
    answers = answers_of(joined.pre_filter(state, pod, NodeSet.all(live)))
    state.skipped_filters |= {name for name, answer in answers if isinstance(answer, Status)}
    columns = [column_of(joined, state, pod, nodes) for nodes in others]
    return [
        (each.plugin, each.code, each.reasons, each.sites, each.faults)
        for column in columns
        for each in map(column.__getitem__, range(len(column)))
    ]


@pytest.fixture(params=[1, batch.MIN_ROWS])
def least_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let columns pay for a single row, or never."""
    monkeypatch.setattr(batch, "MIN_ROWS", request.param)


@pytest.mark.usefixtures("least_rows")
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(bodies(), min_size=1, max_size=2), clusters(), PODS, STEPS, st.data())
def test_what_ifs_are_judged_at_once_as_one_by_one(
    texts: list[str],
    cluster: tuple[Snapshot, list[list[PodInfo]]],
    pod: PodInfo,
    steps: Steps,
    data: st.DataObject,
) -> None:
    live, pods = cluster
    found = rules(profile_of(texts))
    compiled = partial(compile_profile, found, found.profiles["t.p"], steps=steps)
    nodes = ThinnedNodes(live, live.order, pods)
    are_absent = data.draw(st.lists(st.booleans(), min_size=12, max_size=12))
    nodes.absent &= np.array(are_absent)[: nodes.absent.shape[1]]
    for more in (NO_MORE, data.draw(more_pods(live))):
        expected = judged(compiled().predicates, pod, live, alone(nodes, more))
        assert judged(compiled().predicates, pod, live, [together(nodes, more)]) == expected


def crowded(pods: int, labels: int) -> tuple[ThinnedNodes, PodInfo]:
    """Return nodes in 4 zones without any of their pods, but for the first two, which lack none; and a pod."""
    cache = ClusterCache()
    for at in range(20):
        cache.add_node(NodeFacts(f"n{at}", labels=FrozenMap({"zone": f"z{at % 4}", "host": f"n{at}"})))
        for number in range(pods):
            cache.add_pod(PodInfo(f"p{at}-{number}", priority=number % 2, node_name=f"n{at}"))
    live = cache.snapshot()
    chosen = [() if live.names[row] in ("n0", "n1") else live.info(row).pods for row in live.order.tolist()]
    own = {"zone": "", **{f"label-{at}": "" for at in range(labels)}}
    return ThinnedNodes(live, live.order, chosen), PodInfo("new", labels=FrozenMap(own))


def test_steps_run_out_as_in_each_what_if() -> None:
    """With fewer pods a count takes fewer steps, which may suffice for the value that it is a part of."""
    nodes, pod = crowded(60, 10)
    counts = "topology(k).count(p, p.priority > pod.labels.size() + cluster.nodeCount).total()"
    lines = (
        f"let a = pod.labels.map(k, {counts}).filter(x, x < 99)",
        'require a.size() + node.podCount > 0 else "no"',
    )
    found = rules(profile_of(["\n".join(lines)]))
    unequal = 0
    for limit in range(310, 320):
        compiled = partial(compile_profile, found, found.profiles["t.p"], steps=Steps(pod=limit))
        expected = judged(compiled().predicates, pod, nodes.snapshot, alone(nodes))
        unequal += len({*map(str, expected)}) > 1
        assert judged(compiled().predicates, pod, nodes.snapshot, [together(nodes)]) == expected
    # Elsewhere all nodes have enough steps, or none.
    assert unequal == 4


def test_steps_run_out_with_more_pods_as_in_each_what_if() -> None:
    """With more pods a count takes more steps, which may be too many."""
    cache = ClusterCache()
    for at in range(20):
        cache.add_node(NodeFacts(f"n{at}", labels=FrozenMap({"zone": f"z{at % 4}"})))
    live = cache.snapshot()
    nodes = ThinnedNodes(live, live.order, [()] * 20)
    more = {
        row: [PodInfo(f"m{at}", node_name=live.names[row]) for at in range(200 * (row % 2 + 1))]
        for row in range(20)
    }
    # Of 20 nodes without pods, the limit of a node is the whole share.
    count = 'topology("zone").count(p, p.priority > pod.labels.size() + cluster.nodeCount)'
    found = rules(profile_of([f'require {count}.total() + node.podCount > 0 else "no"']))
    unequal = 0
    for limit in range(20, 60):
        compiled = partial(compile_profile, found, found.profiles["t.p"], steps=Steps(pod=limit))
        expected = judged(compiled().predicates, PodInfo("new"), live, alone(nodes, more))
        unequal += len({*map(str, expected)}) > 1
        assert judged(compiled().predicates, PodInfo("new"), live, [together(nodes, more)]) == expected
    assert unequal


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        # Nothing counts that is removed.
        ('require topology("zone").count(p, p.priority > 1).least(1) + node.podCount < 2 else "no"', 1),
        # The count at each node is known.
        ('require topology("zone").count(p, p.priority > 0).here(node) < 9 else "no"', 1),
        ('require topology("host").count(p, p.priority > 0).here(node) < 1 else "no"', 1),
        # The total, and so the sum over a zone, is equal where as many pods are removed.
        ('require topology("zone").count(p, p.priority > 0).total() + node.podCount < 40 else "no"', 2),
        # The least sum of a host becomes 0 where its pods are removed.
        ('require topology("host").count(p, p.priority > 0).least(1) + node.podCount < 2 else "no"', 2),
        # Pods of other nodes are read.
        ('require cluster.pods.size() + node.podCount < 80 else "no"', 1 + 20),
        (
            'require topology("zone").eligible(n, n.podCount > 0).count(p, true).here(node) < 18 else "no"',
            1 + 20,
        ),
    ],
)
def test_what_ifs_with_equal_counts_are_asked_about_together(
    body: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    begin = PredicateRule._begin

    def counted(self: PredicateRule, *given: Any) -> Any:
        calls.append(1)
        return begin(self, *given)

    nodes, pod = crowded(4, 0)
    compiled = partial(compile_rules, profile_of([body]))
    expected = judged(compiled().predicates, pod, nodes.snapshot, alone(nodes))
    plugins = compiled().predicates
    monkeypatch.setattr(PredicateRule, "_begin", counted)
    assert judged(plugins, pod, nodes.snapshot, [together(nodes)]) == expected
    assert {each[1] for each in expected} == {Code.SUCCESS, Code.UNSCHEDULABLE}
    # Once in PreFilter.
    assert len(calls) == 1 + asked


def test_pods_that_add_up_to_0_are_removed_one_by_one() -> None:
    nodes, pod = crowded(2, 0)
    nodes.absent[:, 0] = False
    plugins = compile_rules(
        profile_of(['require topology("host").sum(p, p.priority * 2 - 1).here(node) == 0 else "no"'])
    ).predicates
    expected = judged(plugins, pod, nodes.snapshot, alone(nodes))
    assert [each[2] for each in expected].count(("no",)) == 18
    assert judged(plugins, pod, nodes.snapshot, [together(nodes)]) == expected


def test_reads_of_nodes_hold_with_counts_of_what_ifs() -> None:
    # A question never keeps them, but may ask twice about the same nodes.
    count: Any = _WhatIfCount(None, np.zeros(1, np.int64), None)
    assert NodeReads(counts=[(count, None)]).hold([])


def test_reads_of_nodes_hold_while_the_frame_has_the_same_count() -> None:
    def fail(frame: Frame) -> Value:
        raise EvalError("integer overflow")

    count: Any = _WhatIfCount(None, np.zeros(1, np.int64), None)
    reads = NodeReads(counts=[(count, itemgetter(0))])
    assert reads.hold([count]) and not reads.hold([object()])
    assert not NodeReads(counts=[(count, fail)]).hold([count])


TERM = "cluster.preferredAffinityTerms.sum(t, {}).here(node)"


@pytest.mark.parametrize(
    ("amount", "steps"),
    [
        ("t.weight * 3000000000000000000", [DEFAULT_STEPS]),
        ("t.weight * 3", [Steps(pod=steps) for steps in range(1, 60)]),
    ],
)
def test_terms_of_further_pods_have_the_bounds_of_each_what_if(amount: str, steps: Sequence[Steps]) -> None:
    """The sum of an amount may leave the range, and a term that no placed pod has takes steps."""
    cache = ClusterCache()
    for at in range(3):
        cache.add_node(NodeFacts(f"n{at}", labels=FrozenMap({"k": "z"})))
    known, new = PREFERRED[0], PREFERRED[1]
    cache.add_pod(PodInfo("old", node_name="n0", preferred_affinity=(known,)))
    live, pod = cache.snapshot(), PodInfo("new")
    more = {
        row: [
            PodInfo(f"m{row}-{at}", node_name=live.names[row], preferred_affinity=(known, new))
            for at in range(2)
        ]
        for row in live.order.tolist()
    }
    found = rules(profile_of([f'require {TERM.format(amount)} < 0 else "no"']))
    nodes = ThinnedNodes(live, live.order, [()] * 3)
    for each in steps:
        compiled = partial(compile_profile, found, found.profiles["t.p"], steps=each)
        expected = judged(compiled().predicates, pod, live, alone(nodes, more))
        assert judged(compiled().predicates, pod, live, [together(nodes, more)]) == expected
