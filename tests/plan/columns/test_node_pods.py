"""Counts of pods on nodes, and sums over them, ask only the pods that an equality leaves, if there is one, and have
the answers of the scalar back end.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.batch import MIN_ROWS
from kdsl.plan.columns.over_nodes import lower_macro
from kdsl.plan.rules.score import ScoreError

from tests.plan.columns.both import both_scores, both_verdicts, cluster, predicate_program, score_program

NODES = MIN_ROWS + 2
# Comparing a long text may take steps.
TEXTS = st.sampled_from(["", "a", "b", "c", "c" * 40])
PODS = st.builds(
    lambda namespace, account, images, labels, priority, amounts: PodInfo(
        "p",
        namespace,
        requests=Resources(amounts),
        service_account=account,
        images=tuple(images),
        labels=FrozenMap(labels),
        priority=priority,
    ),
    st.sampled_from(["a", "b"]),
    TEXTS,
    st.lists(st.sampled_from(["x", "y"]), max_size=2),
    st.dictionaries(st.sampled_from(["app", "team"]), TEXTS),
    st.integers(0, 2),
    st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from([0, 1, 250, 2**40, 2**62])),
)
PLACED = st.lists(st.tuples(st.integers(0, NODES - 1), PODS), max_size=20)

INDEXED = [
    "p.namespace == pod.namespace && p.images == pod.images",
    "pod.images == p.images && p.priority >= pod.priority",
    "p.priority > 0 && (p.labels[?'app'] == pod.labels[?'app'] && p.serviceAccount != '')",
    "'app' in p.labels && p.labels['app'] == pod.namespace",
    "has(p.labels.app) && p.labels.app == 'a' && p.labels.size() == pod.labels.size()",
    "p.serviceAccount == pod.labels[?'team'].orValue('b') && p.images.size() < 2",
    "p.labels[?'app'].orValue('b') == pod.labels[?'app'].orValue('b') && p.labels[?'team'].orValue('') != 'c'",
    "p.namespace == 'a' && pod.images.exists(i, i in p.images)",
]
# Conditions of `all`: false for pods that are equal.
INDEXED_OF_ALL = [
    "p.namespace != pod.namespace || p.images != pod.images",
    "p.priority > 1 || p.labels[?'app'].orValue('') != 'a' || p.labels.size() > 1",
    "!('app' in p.labels) || p.labels['app'] != pod.namespace",
]
# Errors in the value, and in the rest of the condition.
FAILING = [
    "int(pod.serviceAccount) == 1 && p.namespace == 'a'",
    "p.serviceAccount == string(int(pod.serviceAccount)) && p.namespace == 'a'",
    "p.namespace == pod.namespace && int(p.labels[?'app'].orValue('1')) == 1",
    "p.serviceAccount != pod.serviceAccount || int(p.labels[?'app'].orValue('1')) == 1",
]
ANY_POD = [
    "p.labels[?'app'].orValue('b') == pod.labels[?'none'].orValue('b')",
    "p.labels[?'app'] == pod.labels[?'none']",
    "p.labels == pod.labels",
    "p.namespace == pod.namespace || p.priority > 1",
    "p.namespace == node.name && p.priority > 1",
    "p.namespace != pod.namespace",
    "p.namespace == p.serviceAccount",
]


VALUES = [
    ("p.priority", "3"),
    ("p.priority * pod.priority + p.images.size()", "2"),
    ("9223372036854775806 * p.priority - 1", "7"),
    ("p.requests['cpu']", "pod.requests['cpu']"),
    ("p.requests['memory'] + p.requests['cpu']", "node.allocatable['memory']"),
    ("p.requests['cpu'] / 1000", "quantity('20m')"),
    ("quantity(string(int(p.labels[?'app'].orValue('1'))))", "quantity('1')"),
]
"""The values of a sum over pods, and the largest sum that fits."""


def _nodes(placed: Sequence[tuple[int, PodInfo]]) -> tuple[ClusterCache, NodeSet]:
    cache = cluster([NodeFacts(f"n{at}", labels=FrozenMap({"k": "v"})) for at in range(NODES)])
    for number, (at, pod) in enumerate(placed):
        cache.add_pod(_placed(pod, at, number))
    return cache, NodeSet.all(cache.snapshot())


def _placed(pod: PodInfo, at: int, number: int) -> PodInfo:
    return PodInfo(
        f"p{number}",
        pod.namespace,
        uid=f"u{number}",
        labels=pod.labels,
        node_name=f"n{at}",
        service_account=pod.service_account,
        priority=pod.priority,
        images=pod.images,
        annotations=pod.annotations,
        requests=pod.requests,
    )


@pytest.mark.parametrize("condition", INDEXED + INDEXED_OF_ALL + FAILING + ANY_POD)
@settings(deadline=None, max_examples=25)
@given(PLACED, PODS, PLACED)
def test_answers(
    condition: str, placed: list[tuple[int, PodInfo]], pod: PodInfo, later: list[tuple[int, PodInfo]]
) -> None:
    predicates = [
        predicate_program(f'require !node.pods.exists(p, {condition}) else "no"'),
        predicate_program(f'require !node.pods.exists_one(p, {condition}) else "no"'),
        predicate_program(f'require node.pods.all(p, {condition}) else "no"'),
    ]
    score = score_program(f"value node.pods.filter(p, {condition}).size()")
    cache, nodes = _nodes(placed)
    for _ in range(2):
        for predicate in predicates:
            columns, scalar = both_verdicts(predicate, pod, nodes)
            assert columns == scalar
        ours, reference = both_scores(score, pod, nodes)
        assert ours == reference
        # The index follows pods that come and go.
        if placed:
            cache.remove_pod(_placed(placed[0][1], placed[0][0], 0))
        for number, (at, other) in enumerate(later):
            cache.add_pod(_placed(other, at, 100 + number))
        nodes = NodeSet.all(cache.snapshot())


@pytest.mark.parametrize(
    "condition", [*INDEXED, FAILING[2], ANY_POD[0], *ANY_POD[3:6], "int(p.serviceAccount) > 1"]
)
@pytest.mark.parametrize(("value", "most"), VALUES)
@settings(deadline=None, max_examples=15)
@given(PLACED, PODS, st.sampled_from([60, 400, 10_000]))
def test_sums(
    value: str, most: str, condition: str, placed: list[tuple[int, PodInfo]], pod: PodInfo, limit: int
) -> None:
    total = f"node.pods.filter(p, {condition}).map(q, {value.replace('p.', 'q.')}).sum()"
    _, nodes = _nodes(placed)
    predicate = predicate_program(
        f'require {total} <= {most} else "no"', steps=Steps(node=limit, rule=1_000_000)
    )
    columns, scalar = both_verdicts(predicate, pod, nodes)
    assert columns == scalar


@pytest.mark.parametrize("condition", [*INDEXED, *FAILING[:3], *ANY_POD])
@settings(deadline=None, max_examples=15)
@given(PLACED, PODS, st.booleans())
def test_filters_of_all_pods(
    condition: str, placed: list[tuple[int, PodInfo]], pod: PodInfo, is_what_if: bool
) -> None:
    _, nodes = _nodes(placed)
    if is_what_if:
        snapshot = nodes.snapshot
        nodes = NodeSet.all(snapshot.overlay(0, snapshot.info(0).with_pod(_placed(pod, 0, 99))))
    rule = f"""
      let found = cluster.pods.filter(p, {condition})
      value found.size() * 100 + found.map(p, p.name).join(" ").indexOf("p1") + node.podCount
    """
    columns, scalar = _both_answers(rule, pod, nodes)
    assert columns == scalar


@pytest.mark.parametrize("condition", [*INDEXED, "p.labels[?'app'] == pod.labels[?'app']"])
@settings(deadline=None, max_examples=15)
@given(PLACED, PODS, st.integers(1, 100))
def test_filters_of_all_pods_take_the_same_steps(
    condition: str, placed: list[tuple[int, PodInfo]], pod: PodInfo, most: int
) -> None:
    _, nodes = _nodes(placed)
    found = f"cluster.pods.filter(p, {condition}"
    rule = f"value {found}).size() + {found} && p.priority < 9).size() + node.podCount"
    columns, scalar = _both_answers(rule, pod, nodes, Steps(pod=most))
    assert columns == scalar


@pytest.mark.parametrize(
    "call", ["n.pods.filter(p, p.name.contains('z')).map(p, p.priority).sum()", "total(n)"]
)
def test_the_dearest_pod_is_not_paid_for_all_pods_of_all_nodes(call: str) -> None:
    cache = cluster([NodeFacts(f"n{at}") for at in range(NODES)])
    for at in range(10):
        cache.add_pod(PodInfo(f"p{at}" * (8 if at else 800), node_name="n0"))
    nodes = NodeSet.all(cache.snapshot())
    fn = "fn total(n: AnyNode): int = n.pods.filter(p, p.name.contains('z')).map(p, p.priority).sum()"
    rule = f"value cluster.nodes.map(n, {call}).sum() + cluster.nodes.map(n, 1 + {call}).max()"
    # As many as all pods would pay, and not enough more for the second list.
    for most in range(14_500, 14_700, 20):
        columns, scalar = _both_answers(rule, PodInfo("p"), nodes, Steps(pod=most), fn)
        assert columns == scalar


def _both_answers(
    rule: str, pod: PodInfo, nodes: NodeSet, steps: Steps = DEFAULT_STEPS, fns: str = ""
) -> tuple[object, object]:
    """Return the scores, or the error, of a rule with macros at once, and with macros one by one."""
    answers = list[object]()
    for lower in (lower_macro, None):
        program = score_program(rule, fns, lower, steps)
        frame = program.begin(pod, ClusterView(nodes.snapshot), nodes)
        try:
            answers.append(list(program.scalar_scores(frame, nodes.nodes())))
        except ScoreError as error:
            answers.append(str(error))
    return answers[0], answers[1]


def test_filters_of_all_pods_ask_those_that_an_equality_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [PodInfo("p", "ab"[at % 2], priority=at, requests=Resources()) for at in range(8)]
    _, nodes = _nodes([(at % 3, pod) for at, pod in enumerate(pods)])
    program = score_program(
        "value cluster.pods.filter(p, p.namespace == pod.namespace).map(p, p.priority).sum()"
    )
    monkeypatch.setattr(ClusterView, "pods", property(lambda self: pytest.fail("all pods are asked")))
    frame = program.begin(PodInfo("p", "b"), ClusterView(nodes.snapshot), nodes)
    assert set(program.scalar_scores(frame, nodes.nodes())) == {1 + 3 + 5 + 7}


@pytest.mark.parametrize(
    ("macro", "condition"),
    [*(("exists", each) for each in INDEXED), *(("all", each) for each in INDEXED_OF_ALL)],
)
def test_equalities_decide(macro: str, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _nodes_read(macro, condition, monkeypatch) == 0


@pytest.mark.parametrize(
    ("macro", "condition"),
    [
        *(("exists", each) for each in ANY_POD + INDEXED_OF_ALL),
        *(("all", each) for each in INDEXED + ANY_POD if "!=" not in each),
    ],
)
def test_any_pod_is_asked(macro: str, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _nodes_read(macro, condition, monkeypatch) == NODES


@pytest.mark.parametrize("value", ["p.priority", "p.images.size() + pod.priority", "p.requests['cpu']"])
def test_sums_ask_no_other_pods(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    total = f"node.pods.filter(p, {INDEXED[0]}).map(p, {value}).sum()"
    most = "pod.requests['cpu']" if "cpu" in value else "3"
    assert _read(f"value {total} <= {most} ? 1 : 0", monkeypatch) == 0


def test_sums_over_any_pods_and_numbers_of_pods_ask_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    total = "node.pods.filter(p, p.priority <= pod.priority).map(p, p.requests['cpu']).sum()"
    assert _read(f"value {total} <= pod.requests['cpu'] ? 1 : 0", monkeypatch) == 0
    assert _read("value node.pods.size()", monkeypatch) == 0
    fn = "fn total(n: Node): int = n.pods.filter(p, p.priority >= 0).map(p, p.priority).sum()"
    assert _read("value total(node)", monkeypatch, fn) == 0


def _nodes_read(macro: str, condition: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many nodes the scalar back end asks, among 20 unlike pods."""
    return _read(f"value node.pods.{macro}(p, {condition}) ? 1 : 0", monkeypatch)


def _read(rule: str, monkeypatch: pytest.MonkeyPatch, fns: str = "") -> int:
    labels = FrozenMap({"app": "a", "team": "b"})
    pod = PodInfo("p", "a", labels=labels, images=("x",), service_account="s")
    others = [
        PodInfo(
            "o",
            "ab"[at % 2],
            labels=FrozenMap() if at % 3 else labels,
            service_account="sb"[at % 2],
            images=("x",) if at % 5 else (),
        )
        for at in range(20)
    ]
    _, nodes = _nodes([(at % NODES, other) for at, other in enumerate(others)])
    program = score_program(rule, fns)
    view = ClusterView(nodes.snapshot)
    # The first question makes the index.
    program.raw_scores(program.begin(pod, view, nodes), nodes)
    read: set[int] = set()
    info = LiveSnapshot.info

    def spy(self: LiveSnapshot, row: int) -> NodeInfo:
        read.add(row)
        return info(self, row)

    monkeypatch.setattr(LiveSnapshot, "info", spy)
    program.raw_scores(program.begin(pod, view, nodes), nodes)
    return len(read)


LONG = st.sampled_from(["", "a", "b" * 40, "c" * 200])
LONG_PODS = st.builds(
    lambda namespace, images, labels: PodInfo(
        "p", namespace, images=tuple(images), labels=FrozenMap(labels), annotations=FrozenMap(labels)
    ),
    LONG,
    st.lists(LONG, max_size=6),
    st.dictionaries(st.sampled_from(["app", "team"]), LONG),
)


SIZES = ["1", "p.images.filter(i, i != 'a').size()", "p.labels.size() + pod.images.size()"]


@pytest.mark.parametrize(
    "condition",
    [
        "p.images == pod.images && p.namespace == pod.namespace",
        "p.annotations[?'app'].orValue('d') == pod.namespace && p.images.all(i, i != 'x')",
        "p.images.all(i, i != 'x') && p.namespace == pod.namespace",
        "'app' in p.labels && p.labels['app'] == pod.images.filter(i, i != 'a').join('') && p.images == pod.images",
        "p.namespace != pod.namespace || p.images != pod.images.map(i, i + 'b')",
    ],
)
@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, NODES - 1), LONG_PODS), max_size=12), LONG_PODS, st.integers(1, 150))
def test_a_rule_that_runs_out_of_steps(
    condition: str, placed: list[tuple[int, PodInfo]], pod: PodInfo, limit: int
) -> None:
    steps = Steps(node=limit, rule=1_000_000)
    _, nodes = _nodes(placed)
    asks = [f"node.pods.{macro}(p, {condition})" for macro in ("all", "exists", "exists_one")]
    asks += [f"node.pods.filter(p, {condition}).map(p, {value}).sum() > 3" for value in SIZES]
    for ask in asks:
        columns, scalar = both_verdicts(
            predicate_program(f'require {ask} else "no"', steps=steps), pod, nodes
        )
        assert columns == scalar
