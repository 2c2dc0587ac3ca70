"""Macros over nodes give the same for all nodes at once as for one after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.rule_set import CheckedScore
from kdsl.check.model.types import BOOL
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.nodelist import NodeList, StringList
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Meter, Steps
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.column import Column
from kdsl.plan.columns.fallback import Fallback, NodeSlots
from kdsl.plan.columns.node_reads import unclear
from kdsl.plan.columns.over_nodes import _evaluate, lower_macro
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.rules.score import NO_SCORE_INT, ScorePlugin

from tests.plan.columns.both import cluster
from tests.plan.lab import DEFAULT_QUEUE, node, nodes_of, predicate, rules, statuses

FNS = """
fn hasAll(n: Node, keys: list(string)): bool = keys.all(k, k in n.labels)
fn kinds(nodes: list(AnyNode), key: string): int = nodes.map(n, n.labels[?key].orValue("")).distinct().size()
"""
CONDITIONS = st.sampled_from(
    [
        *(
            "true",
            "false",
            "n.unschedulable",
            '"k" in n.labels',
            'n.labels[?"k"].value() == "a"',
            "has(n.labels.k)",
        ),
        *('hasAll(n, ["k", "j"])', "hasAll(n, pod.labels.map(k, k))", 'n.labels[?"k"] == node.labels[?"k"]'),
        *(
            "n.podCount > 0",
            "n.pods.exists(p, p.priority > 1)",
            "n.taints.exists(t, t.key in n.labels)",
            'has(n.labels.k) && n.labels.k < "b"',
            'n.name != "n3"',
        ),
        *("pod.priority > 0 || n.podCount == 0", "node.podCount == n.podCount", "1 / n.podCount > 0"),
    ]
)
VALUES = st.sampled_from(
    [
        *(
            'n.labels[?"k"].orValue("-")',
            'n.labels[?"k"].value()',
            "n.name",
            'pod.labels[?"k"].orValue(n.name)',
        ),
        *('n.labels[?"j"].orValue(n.labels[?"k"].orValue("x"))', '"same"', "node.name"),
    ]
)
RESULTS = st.sampled_from(
    [
        *("chosen.size()", "words.size()", "words.distinct().size()", 'kinds(chosen, "k")'),
        *('words.filter(w, w == "a").size()', "words.map(w, w.size()).sum()", "words.distinct()[0].size()"),
        *("words.exists(w, w < node.name) ? 1 : 0", "node.name in words ? 1 : 0", "words[1].size()"),
        "chosen.map(n, n.podCount).sum()",
        "chosen.map(n, n.pods.size()).max()",
        'chosen.map(n, n.requested["cpu"]).sum() > chosen.map(n, n.allocatable["cpu"]).max() ? 1 : 0',
        "string(chosen.map(n, n.allocatable['memory']).sum()).size()",
    ]
)
LABELS = st.lists(st.sampled_from([("k", "a"), ("k", "b"), ("j", "a")]), max_size=2).map(
    lambda pairs: FrozenMap(dict(pairs))
)
NODES = st.builds(NodeFacts, st.just("n"), labels=LABELS, unschedulable=st.booleans())
PODS = st.builds(
    PodInfo,
    st.sampled_from(["p1", "p2", "p3"]),
    labels=LABELS,
    priority=st.integers(0, 2),
    node_name=st.sampled_from(["n0", "n1", "n2"]),
)


def scores(
    body: str, pod: PodInfo, nodes: NodeSet, at_once: bool, steps: Steps = DEFAULT_STEPS
) -> list[int | float]:
    found = rules(
        f"score P {{\n{body}\n}}\n{FNS}\n{DEFAULT_QUEUE}\n"
        'profile p { scheduler "t" queue Q scores { P weight 1 } }'
    )
    rule = found.profiles["t.p"].scores[0].score
    assert isinstance(rule, CheckedScore)
    program = ScorePlugin(rule, CompiledFunctions(found.fns, None, steps, lower_macro if at_once else None))
    frame = program.begin(pod, ClusterView(nodes.snapshot), nodes)
    return list(program.scalar_scores(frame, nodes.nodes()))


def assert_alike(body: str, facts: list[NodeFacts], pods: list[PodInfo], pod: PodInfo) -> None:
    named = [replace(each, name=f"n{at}") for at, each in enumerate(facts)]
    nodes = NodeSet.all(cluster(named, pods).snapshot())
    assert scores(body, pod, nodes, at_once=True) == scores(body, pod, nodes, at_once=False)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["feasible", "cluster.nodes"]),
    CONDITIONS,
    VALUES,
    RESULTS,
    st.lists(NODES, min_size=12, max_size=14),
    st.lists(PODS, max_size=4),
    PODS,
)
def test_all_at_once_is_one_after_the_other(
    source: str,
    condition: str,
    value: str,
    result: str,
    facts: list[NodeFacts],
    pods: list[PodInfo],
    pod: PodInfo,
) -> None:
    body = f"""
      let chosen = {source}.filter(n, {condition})
      let words = chosen.map(n, {value})
      value {result}
    """
    assert_alike(body, facts, pods, pod)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["feasible", "cluster.nodes", "some"]),
    st.sampled_from(["all", "exists", "exists_one"]),
    CONDITIONS,
    CONDITIONS,
    st.lists(NODES, min_size=12, max_size=14),
    st.lists(PODS, max_size=4),
    PODS,
)
def test_a_quantifier_at_once_is_one_after_the_other(
    source: str,
    quantifier: str,
    condition: str,
    other: str,
    facts: list[NodeFacts],
    pods: list[PodInfo],
    pod: PodInfo,
) -> None:
    body = f"""
      let some = feasible.filter(n, {other})
      value {source}.{quantifier}(n, {condition}) ? 2 : 1
    """
    assert_alike(body, facts, pods, pod)


@pytest.mark.parametrize("body", ["n.pods.size()", 'n.requested["cpu"]', 'n.allocatable["memory"]'])
def test_amounts_of_nodes_are_listed_without_asking_each(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = nodes_of(*[node(f"n{number}", cpu=number) for number in range(20)])
    monkeypatch.setattr(NodeList, "__iter__", lambda self: pytest.fail("visited"))
    found = f"cluster.nodes.map(n, {body})"
    text = f"value string({found}.max()).size() + string({found}.min()).size()"
    assert set(scores(text, PodInfo("p"), nodes, at_once=True))


def test_a_quantifier_visits_no_node_if_columns_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = nodes_of(*[node(f"n{number}", labels={"k": str(number)}) for number in range(20)])
    monkeypatch.setattr(NodeList, "__iter__", lambda self: pytest.fail("visited"))
    for quantifier, most in (("all", 1), ("exists", 0), ("exists_one", 0)):
        body = f'value cluster.nodes.{quantifier}(n, n.labels[?"k"].orValue("") == "7") ? 0 : 1'
        assert set(scores(body, PodInfo("p"), nodes, at_once=True)) == {most}


@pytest.mark.parametrize(
    "quantifier",
    [
        "cluster.nodes.exists(n, {} && n.podCount == 0)",
        '!cluster.nodes.all(n, {} && n.name == "x")',
        # Most nodes fail, and the first makes up for them.
        "cluster.nodes.exists(n, {} || 1 / n.podCount == 2)",
    ],
)
def test_a_quantifier_that_the_first_node_decides_takes_few_steps(quantifier: str) -> None:
    labels = [{"k": str(at % 2)} if at != 9 else {} for at in range(32)]
    nodes = nodes_of(*[node(f"n{at}", labels=each) for at, each in enumerate(labels)])
    # One by one each takes 38 steps, 32 for the visits and 6 for the first node; 7 for each node are 224.
    each = quantifier.format('hasAll(n, ["k", "k", "k", "k", "k"])')
    body = f"value {' && '.join([each] * 6)} ? 1 : 2"
    for at_once in (False, True):
        assert scores(body, PodInfo("p"), nodes, at_once, Steps(node=400, pod=400)) == [1] * 32


def test_a_key_of_an_item_of_the_nodes_own_list() -> None:
    taint = Taint("k", "", "NoSchedule")
    named = [NodeFacts(f"n{at}", labels=FrozenMap({"jk"[at % 2]: ""}), taints=(taint,)) for at in range(12)]
    body = "value feasible.filter(n, n.taints.exists(t, t.key in n.labels)).size()"
    nodes = NodeSet.all(cluster(named).snapshot())
    assert scores(body, PodInfo("p"), nodes, at_once=True) == [6] * 12


@pytest.mark.parametrize("labels", [{"k": "a", "j": "b"}, {"k": "a"}])
@pytest.mark.parametrize("steps", [15, 16, 17])
def test_a_test_of_keys_that_all_nodes_have_takes_the_same_steps(labels: dict[str, str], steps: int) -> None:
    """A step for each of 16 nodes, of which the last may lack a key."""
    facts = [NodeFacts(f"n{at}", labels=FrozenMap({"k": "a", "j": "b"})) for at in range(15)]
    facts.append(NodeFacts("n15", labels=FrozenMap(labels)))
    body = 'let chosen = feasible.filter(n, "k" in n.labels && has(n.labels.j))\nvalue chosen.size()'
    found = [
        scores(body, PodInfo("p"), NodeSet.all(cluster(facts).snapshot()), at_once, Steps(pod=steps))
        for at_once in (True, False)
    ]
    assert found[0] == found[1] == [NO_SCORE_INT if steps < 16 else 14 + len(labels)] * 16


@pytest.mark.parametrize("steps", range(28, 52))
def test_all_at_once_never_takes_more_steps_than_there_are(steps: int) -> None:
    """One after the other pays 3 steps for each second of 16 nodes, all at once for all."""
    facts = [NodeFacts(f"n{at}") for at in range(16)]
    nodes = NodeSet.all(
        cluster(facts, [PodInfo(f"p{at}", node_name=f"n{at}") for at in range(0, 16, 2)]).snapshot()
    )
    body = "let chosen = feasible.filter(n, n.podCount > 0 || [1, 2].exists(i, i > n.podCount))\nvalue chosen.size()"
    found = [scores(body, PodInfo("p"), nodes, at_once, Steps(pod=steps)) for at_once in (True, False)]
    assert found[0] == found[1] == [NO_SCORE_INT if steps < 32 else 16] * 16


@pytest.mark.parametrize("items", [[], ["a"], ["b", "a", "b", "c", "a"]])
def test_strings_by_code_are_a_list(items: list[str]) -> None:
    values = ["", "c", "a", "b", "a"]
    coded = StringList(values, _codes([values.index(item) for item in items]))
    assert (list(coded), len(coded), coded.distinct()) == (items, len(items), tuple(dict.fromkeys(items)))
    for size in (1, 2):
        assert coded.total_units(size) == sum(len(item) // size for item in items)


def _codes(codes: list[int]) -> np.typing.NDArray[np.int32]:
    return np.array(codes, dtype=np.int32)


def test_nodes_of_a_set_are_a_list() -> None:
    nodes = NodeSet.all(cluster([NodeFacts("a"), NodeFacts("b")]).snapshot())
    listed = NodeList(nodes)
    assert [node.name for node in listed] == ["a", "b"] == [listed[0].name, listed[-1].name]
    assert len(listed) == 2 and listed[5:] == ()


SPREAD_NODES = st.builds(
    NodeFacts,
    st.just("n"),
    labels=LABELS,
    unschedulable=st.booleans(),
    taints=st.sampled_from([(), (Taint("t", "", "NoSchedule"),)]),
)
SPREAD_PODS = st.builds(
    PodInfo,
    st.just("p"),
    node_selector=LABELS,
    labels=LABELS,
    priority=st.integers(0, 2),
    tolerations=st.sampled_from([(), (Toleration("t", "Exists", "", ""),)]),
)
ELIGIBLE = st.sampled_from(
    [
        *("true", "false", "n.unschedulable", '"k" in n.labels', 'n.labels[?"k"].value() == "a"'),
        *('hasAll(n, ["k", "j"])', "n.podCount > 0", "n.pods.exists(p, p.priority > 1)", 'n.name != "n3"'),
        *(
            'SPREAD.countsNode(pod, n) && "j" in n.labels',
            'SPREAD.withNodeTaintsPolicy("Honor").countsNode(pod, n)',
        ),
        *('SPREAD.withNodeAffinityPolicy("Ignore").countsNode(pod, n)', "1 / n.podCount > 0"),
    ]
).map(lambda condition: condition.replace("SPREAD", 'spread("k", 1, "DoNotSchedule")'))


@settings(deadline=None, max_examples=60)
@given(
    ELIGIBLE,
    ELIGIBLE,
    st.lists(SPREAD_NODES, min_size=24, max_size=26),
    st.lists(PODS, max_size=4),
    PODS,
    SPREAD_PODS,
)
def test_eligible_at_once_is_one_after_the_other(
    first: str, second: str, facts: list[NodeFacts], pods: list[PodInfo], late: PodInfo, pod: PodInfo
) -> None:
    """A count over all nodes at once goes on one by one when pods come."""
    named = [replace(each, name=f"n{at}") for at, each in enumerate(facts)]
    body = f"""
      let count = topology("k").eligible(n, {first}).eligible(n, {second}).count(p, p.priority > 0)
      value count.here(node) + 10 * count.least(1) + 1000 * count.total() + 100000 * count.domains()
    """
    found = []
    for at_once in (True, False):
        cache = cluster(named, pods)
        before = scores(body, pod, NodeSet.all(cache.snapshot()), at_once)
        cache.add_pod(late.with_fields(name="late"))
        found.append((before, scores(body, pod, NodeSet.all(cache.snapshot()), at_once)))
    assert found[0] == found[1]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("constraint", "domains"),
    [
        ("C", 12),
        ('C.withNodeAffinityPolicy("Ignore")', 24),
        ('C.withNodeTaintsPolicy("Honor")', 8),
        ('C.withNodeAffinityPolicy("Ignore").withNodeTaintsPolicy("Honor")', 16),
    ],
)
def test_nodes_that_count_for_spread(constraint: str, domains: int, at_once: bool) -> None:
    """Every second of 24 nodes has the label that the pod selects, every third a taint."""
    facts = [
        NodeFacts(
            f"n{at}",
            labels=FrozenMap({"host": f"n{at}", "half": str(at % 2)}),
            taints=(Taint("t", "", "NoSchedule"),) if at % 3 == 0 else (),
        )
        for at in range(24)
    ]
    constraint = constraint.replace("C", 'spread("host", 1, "DoNotSchedule")', 1)
    body = f'value topology("host").eligible(n, {constraint}.countsNode(pod, n)).count(p, true).domains()'
    pod = PodInfo("p", node_selector=FrozenMap({"half": "0"}))
    assert set(scores(body, pod, NodeSet.all(cluster(facts).snapshot()), at_once)) == {domains}


@pytest.mark.parametrize("items", [100, 700, 1_500])
@pytest.mark.parametrize(
    "condition", ["key in n.labels", 'n.labels[?key].orValue("") == "a"', "n.taints.size() < key.size()"]
)
def test_a_variable_of_the_outer_node_is_paid_by_it(items: int, condition: str) -> None:
    """The nodes of a macro share the steps that are left; a variable that they read does not."""
    nodes = nodes_of(*(node(f"n{at}", labels={"z": "a"}) for at in range(120)))
    rule = predicate(
        f"""
        let key = lists.range({items}).map(i, i + node.podCount).sum() > 0 ? "z" : "k"
        applies when !node.unschedulable
        require cluster.nodes.filter(n, {condition}).size() == 120 else "none"
        """
    )
    assert statuses(rule, PodInfo("p"), nodes) == {}


def test_nodes_are_not_visited_at_once_without_steps_for_them() -> None:
    """Such an attempt would be made for each node, and nobody would pay for it."""
    nodes = nodes_of(*[node(f"n{number}") for number in range(20)])

    def body(batch: object) -> None:
        raise AssertionError("visited")

    assert _evaluate(body, nodes, [Meter.of(2 * len(nodes) - 1)]) is None
    with pytest.raises(AssertionError, match="visited"):
        _evaluate(body, nodes, [Meter.of(2 * len(nodes))])


def test_nodes_at_once_stop_at_the_first_that_runs_out() -> None:
    nodes = nodes_of(*[node(f"n{number}") for number in range(20)])
    visited = 0

    def costly(frame: Frame) -> bool:
        nonlocal visited
        visited += 1
        frame[-1].spend(5)
        return True

    body = Fallback(costly, BOOL, {}, NodeSlots(0, ()), (unclear, unclear))
    assert _evaluate(body, nodes, [None, Meter.of(4 * len(nodes))]) is None
    assert visited == 1
    found = _evaluate(body, nodes, [None, Meter.of(6 * len(nodes))])
    assert isinstance(found, Column) and found.values.all() and visited == 1 + len(nodes)
