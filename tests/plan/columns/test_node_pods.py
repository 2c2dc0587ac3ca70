"""Counts of pods on nodes ask only the pods that an equality leaves, and have the answers of the scalar back
end.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import Steps
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.batch import MIN_ROWS

from tests.plan.columns.both import both_scores, both_verdicts, cluster, predicate_program, score_program

NODES = MIN_ROWS + 2
TEXTS = st.sampled_from(["", "a", "b", "c"])
PODS = st.builds(
    lambda namespace, account, images, labels, priority: PodInfo(
        "p",
        namespace,
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


def _nodes_read(macro: str, condition: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many nodes the scalar back end asks, among 20 unlike pods."""
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
    program = score_program(f"value node.pods.{macro}(p, {condition}) ? 1 : 0")
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
    for macro in ("all", "exists", "exists_one"):
        columns, scalar = both_verdicts(
            predicate_program(f'require node.pods.{macro}(p, {condition}) else "no"', steps=steps), pod, nodes
        )
        assert columns == scalar
