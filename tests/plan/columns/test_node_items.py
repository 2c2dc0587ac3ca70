"""Conditions on items of a node's list, evaluated once per distinct item, have the answers of the scalar back
end.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_volumes import PodVolume
from kdsl.cluster.objects.ports import HostPort
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.fact_columns import FactColumn
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import Steps
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns import node_items
from kdsl.plan.columns.batch import MIN_ROWS
from kdsl.plan.columns.fallback import Fallback
from kdsl.plan.compile.failures import StatusNumbers

from tests.plan.columns.both import both_scores, both_verdicts, cluster, predicate_program, score_program

TAINTS = st.builds(
    Taint,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["", "x", "y"]),
    st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
)
TOLERATIONS = st.builds(
    Toleration,
    st.sampled_from(["", "a", "b", "z"]),
    st.sampled_from(["", "Equal", "Exists", "Lt"]),
    st.sampled_from(["", "x", "z"]),
    st.sampled_from(["", "NoSchedule", "PreferNoSchedule"]),
)
LISTS = st.lists(st.lists(TAINTS, max_size=3), min_size=MIN_ROWS, max_size=MIN_ROWS + 3)
PODS = st.builds(
    lambda tolerations: PodInfo("p", tolerations=tuple(tolerations)), st.lists(TOLERATIONS, max_size=3)
)
PREDICATES = [
    'for t in node.taints where t.effect in ["NoSchedule", "NoExecute"] { require pod.tolerates(t) else "no" }',
    'for t in node.taints { require pod.tolerates(t) else unresolvable "no" }\nrequire node.podCount < 1 else "full"',
    'report all\nrequire node.taints.size() < 3 else "many"\nfor t in node.taints { require t.value != "x" else "x" }',
    'for t in node.taints { require int(t.value) > 0 else "no number" }',
    'for t in node.taints where t.value != "x" && t.value != "y" { require int(t.value + "1") > 0 else "no" }',
    'for t in node.taints { require t.key != "a" else "key ${t.key}" }',
    'for t in node.taints { require t.key != "a" else "a" require t.key != "b" else "b" }',
    'for t in node.taints { require t.key != node.labels[?"k"].orValue("b") else "own" }',
    'require node.taints.all(t, pod.tolerates(t)) else "no"',
    'require !node.taints.exists(t, !pod.tolerations.exists(o, o.tolerates(t))) else "no"',
    'for o in pod.tolerations { require node.taints.exists(t, o.tolerates(t)) else "useless" }',
]
SCORES = [
    'node.taints.filter(t, t.effect == "PreferNoSchedule").size()',
    'node.taints.filter(t, t.key in ["a", "b"]).filter(t, !pod.tolerates(t)).size() * 10 + node.podCount',
    "node.taints.filter(t, !pod.tolerations.exists(o, o.tolerates(t))).map(t, t.key.size()).sum()",
    "node.taints.filter(t, t.value.size() > 0).all(t, t.key.size() > 0) ? 1 : 0",
]


def _nodes(lists: list[list[Taint]]) -> NodeSet:
    facts = [NodeFacts(f"n{at}", taints=tuple(taints)) for at, taints in enumerate(lists)]
    pods = [PodInfo(f"r{at}", node_name=f"n{at}") for at in range(0, len(facts), 2)]
    return NodeSet.all(cluster(facts, pods).snapshot())


@pytest.mark.parametrize("body", PREDICATES)
@settings(deadline=None, max_examples=28)
@given(LISTS, PODS)
def test_predicates(body: str, lists: list[list[Taint]], pod: PodInfo) -> None:
    columns, scalar = both_verdicts(predicate_program(body), pod, _nodes(lists))
    assert columns == scalar


@pytest.mark.parametrize("value", SCORES)
@settings(deadline=None, max_examples=28)
@given(LISTS, PODS)
def test_scores(value: str, lists: list[list[Taint]], pod: PodInfo) -> None:
    columns, scalar = both_scores(score_program(f"value {value}"), pod, _nodes(lists))
    assert columns == scalar


@pytest.mark.parametrize("steps", [1, 3, 5, 8, 12, 20])
@settings(deadline=None, max_examples=20)
@given(LISTS, PODS)
def test_steps_run_out_in_both_back_ends(steps: int, lists: list[list[Taint]], pod: PodInfo) -> None:
    program = predicate_program(PREDICATES[0], "", Steps(node=steps))
    columns, scalar = both_verdicts(program, pod, _nodes(lists))
    assert columns == scalar


PORTS = st.builds(
    HostPort, st.sampled_from(["0.0.0.0", "10.0.0.1", ""]), st.sampled_from(["TCP", "UDP"]), st.integers(1, 3)
)
VOLUMES = st.builds(
    PodVolume,
    st.just("v"),
    st.sampled_from(["rbd", "awsElasticBlockStore", "persistentVolumeClaim"]),
    claim_name=st.sampled_from(["", "a"]),
    id=st.sampled_from(["", "a", "b"]),
    read_only=st.booleans(),
    monitors=st.frozensets(st.sampled_from("mn"), max_size=2),
)
USED_PREDICATES = [
    'require !pod.hostPorts.exists(w, node.usedHostPorts.exists(u, u.conflictsWith(w))) else "taken"',
    'require !pod.hostPorts.exists(w, node.usedHostPorts.exists(u, w.conflictsWith(u))) else "taken"',
    'for w in pod.hostPorts { require !node.usedHostPorts.exists(u, u.conflictsWith(w)) else "taken" }',
    'for u in node.usedHostPorts { require !pod.hostPorts.exists(w, u.conflictsWith(w)) else "taken" }',
    'require node.usedHostPorts.all(u, u.port > 1 || u.protocol == "UDP") else "low"',
    'require node.usedHostPorts.all(u, 4 / (u.port - 1) > 1) else "bad"',
    'require !pod.volumes.exists(v, node.usedVolumes.exists(u, u.conflictsWith(v))) else "no disk"',
    'require pod.hostPorts.all(w, node.taints.exists(t, t.key.size() == w.port)) else "no taint"',
    'require pod.hostPorts.all(w, node.usedHostPorts.filter(u, u.conflictsWith(w)).size() < 2) else "two"',
    "require [node.podCount, 2].all(n, node.usedHostPorts.all(u, u.port < n + 1)) else 'more'",
    'require node.usedHostPorts.size() + node.usedVolumes.size() < 3 else "many"',
]
FAILING = [
    'require !node.usedHostPorts.exists(u, portOf(u, 4 / (u.port - 1)).conflictsWith(pod.hostPorts[0])) else "x"',
    'require !node.usedHostPorts.exists(u, portOf(u, 4 / (u.port - 1)).protocol == "TCP") else "x"',
    'require !node.usedHostPorts.exists(u, cel.bind(q, portOf(u, 4 / (u.port - 1)), q.ip == "")) else "x"',
    'for u in node.usedHostPorts { require portOf(u, 4 / (u.port - 1)).protocol != "TCP" else "x" }',
    'for u in node.usedHostPorts where portOf(u, 4 / (u.port - 1)).ip == "" { require u.port != 2 else "x" }',
    'require !node.usedVolumes.exists(v, diskOf(v, 4 / v.claimName.size()).claimName == "a") else "x"',
    'require node.podCount > 1 || node.taints.all(t, pod.tolerates(taintOf(t, 4 / (t.key.size() - 1)))) else "x"',
]
FNS = """
fn portOf(p: HostPort, n: int): HostPort = p
fn diskOf(v: PodVolume, n: int): PodVolume = v
fn taintOf(t: Taint, n: int): Taint = t
"""
USERS = st.lists(
    st.tuples(st.integers(0, MIN_ROWS - 1), st.lists(PORTS, max_size=3), st.lists(VOLUMES, max_size=2)),
    max_size=2 * MIN_ROWS,
)


_PORTS_OF_TWO_KINDS = [
    HostPort("0.0.0.0", "TCP", 2),
    HostPort("0.0.0.0", "TCP", 3),
    HostPort("0.0.0.0", "UDP", 1),
]
"""The first two decide `u.port > 1`, and only the last one is left for another operand."""


def _users(users: list[tuple[int, list[HostPort], list[PodVolume]]]) -> list[PodInfo]:
    return [
        PodInfo(f"u{at}", node_name=f"n{node}", host_ports=tuple(ports), volumes=tuple(volumes))
        for at, (node, ports, volumes) in enumerate(users)
    ]


@pytest.mark.parametrize("body", USED_PREDICATES)
@settings(deadline=None, max_examples=28)
@given(USERS, USERS, st.lists(PORTS, max_size=3), st.lists(VOLUMES, max_size=2), st.integers(0, 9))
@example([(0, _PORTS_OF_TWO_KINDS, [])], [], [], [], 0)
def test_lists_that_pods_fill(
    body: str,
    users: list[tuple[int, list[HostPort], list[PodVolume]]],
    later: list[tuple[int, list[HostPort], list[PodVolume]]],
    ports: list[HostPort],
    volumes: list[PodVolume],
    gone: int,
) -> None:
    program = predicate_program(body)
    pod = PodInfo("p", host_ports=tuple(ports), volumes=tuple(volumes))
    facts = [NodeFacts(f"n{at}", taints=(Taint("a" * (at % 3), "", ""),)) for at in range(MIN_ROWS + 1)]
    cache = cluster(facts, _users(users))
    columns, scalar = both_verdicts(program, pod, NodeSet.all(cache.snapshot()))
    assert columns == scalar
    # Pods and nodes come and go.
    for user in _users(later):
        if cache.pod(user.key) is None:
            cache.add_pod(user)
    if cache.pod(f"default/u{gone}") is not None:
        cache.remove_pod(f"default/u{gone}")
    cache.remove_node(f"n{gone}")
    cache.add_node(NodeFacts("new"))
    snapshot = cache.snapshot()
    columns, scalar = both_verdicts(program, pod, NodeSet.all(snapshot))
    assert columns == scalar
    row = int(snapshot.order[gone % len(snapshot)])
    info = snapshot.info(row).with_pod(PodInfo("other", host_ports=tuple(ports), volumes=tuple(volumes)))
    columns, scalar = both_verdicts(program, pod, NodeSet.all(snapshot.overlay(row, info)))
    assert columns == scalar


@pytest.mark.parametrize("body", FAILING)
@settings(deadline=None, max_examples=28)
@given(USERS, PORTS, st.lists(TOLERATIONS, max_size=2))
def test_items_whose_condition_fails(
    body: str,
    users: list[tuple[int, list[HostPort], list[PodVolume]]],
    port: HostPort,
    tolerations: list[Toleration],
) -> None:
    pod = PodInfo("p", host_ports=(port,), tolerations=tuple(tolerations))
    facts = [NodeFacts(f"n{at}", taints=(Taint("a" * (1 + at % 3), "", ""),)) for at in range(MIN_ROWS)]
    nodes = NodeSet.all(cluster(facts, _users(users)).snapshot())
    columns, scalar = both_verdicts(predicate_program(body, FNS), pod, nodes)
    assert columns == scalar


def test_ports_in_use_are_asked_at_once() -> None:
    facts = [NodeFacts(f"n{at}") for at in range(MIN_ROWS)]
    used = HostPort("0.0.0.0", "TCP", 80)
    users = [PodInfo(f"u{at}", node_name=f"n{at}", host_ports=(used,)) for at in range(0, MIN_ROWS, 2)]
    program = predicate_program(USED_PREDICATES[0])
    nodes = NodeSet.all(cluster(facts, users).snapshot())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fallback, "__call__", lambda *_: pytest.fail("asked one by one"))
        frame = program.begin(PodInfo("p", host_ports=(used,)), ClusterView(nodes.snapshot))
        ids = program.statuses_in(frame, nodes, StatusNumbers())
    assert ids is not None and (ids > 0).tolist() == [at % 2 == 0 for at in range(MIN_ROWS)]


def test_more_items_than_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_items, "MAX_ITEMS", 1)
    lists = [[Taint("a", str(at), "NoSchedule")] for at in range(MIN_ROWS)]
    columns, scalar = both_verdicts(predicate_program(PREDICATES[0]), PodInfo("p"), _nodes(lists))
    assert columns == scalar


def test_items_follow_their_column() -> None:
    lists = [[Taint("a", str(at), "NoSchedule")] for at in range(MIN_ROWS)]
    facts = [NodeFacts(f"n{at}", taints=tuple(taints)) for at, taints in enumerate(lists)]
    cache = cluster(facts)
    program = predicate_program(PREDICATES[0])
    for at in range(3):
        cache.add_node(NodeFacts(f"n{at}", taints=(Taint("b", str(at), "NoExecute"), *facts[at].taints)))
        pod = PodInfo("p", tolerations=(Toleration("a", "Exists", "", ""),))
        columns, scalar = both_verdicts(program, pod, NodeSet.all(cache.snapshot()))
        assert columns == scalar
        assert sum(status != columns[-1] for status in columns) == at + 1


def test_items_are_numbered_anew_with_their_column() -> None:
    column = FactColumn(lambda snapshot, rows: [])
    column.values, column.numbers = [None, (Taint("a", "", ""),)], {None: 0}
    items = node_items.lists_of(column)
    assert [each.key for each in items.items] == ["a"]
    column._forget()
    column.values += [(Taint("b", "", ""), Taint("c", "", ""))]
    items = node_items.lists_of(column)
    assert (items.longest, [each.key for each in items.items]) == (2, ["b", "c"])


def test_threads_that_ask_at_once_find_the_same_items() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            column = FactColumn(lambda snapshot, rows: [])
            column.values = [None, *((Taint("a", str(at), ""), Taint("b", "", "")) for at in range(500))]
            items = node_items.ListItems(column)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(node_items.ListItems.refresh, [items] * 8))
            assert (len(items.items), len(items.owners), len(items.places)) == (501, 1000, 1000)
            assert items.count(np.ones(501, np.bool_)).tolist() == [0] + [2] * 500
    finally:
        sys.setswitchinterval(before)


def test_thousands_of_ports_are_asked_at_once() -> None:
    facts = [NodeFacts(f"n{at}") for at in range(MIN_ROWS)]
    users = [
        PodInfo(
            f"u{at}",
            node_name=f"n{at}",
            host_ports=tuple(HostPort("0.0.0.0", "TCP", 1_000 * at + port) for port in range(1_000)),
        )
        for at in range(MIN_ROWS)
    ]
    program = predicate_program(USED_PREDICATES[0])
    nodes = NodeSet.all(cluster(facts, users).snapshot())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fallback, "__call__", lambda *_: pytest.fail("asked one by one"))
        pod = PodInfo("p", host_ports=(HostPort("0.0.0.0", "TCP", 4_007),))
        ids = program.statuses_in(program.begin(pod, ClusterView(nodes.snapshot)), nodes, StatusNumbers())
    assert ids is not None and (ids > 0).tolist() == [at == 4 for at in range(MIN_ROWS)]


@pytest.mark.parametrize("last", ['t.key == "c"', "pod.tolerates(t)", "t.key + t.value == 'c'"])
@pytest.mark.parametrize("first", ['t.effect != "NoExecute"', "t.value.size() > 0"])
def test_a_condition_about_a_few_of_the_items(first: str, last: str) -> None:
    """The second operand is evaluated for those items alone that the first leaves open."""
    taints = [Taint(key, "x", "") for key in "efghi"] + [Taint(key, "", "NoExecute") for key in "dc"]
    facts = [NodeFacts(f"n{at}", taints=(taints[at % 7],)) for at in range(MIN_ROWS)]
    # A rule about facts alone would run once for equal nodes.
    used = 'require node.podCount >= 0 else "never"'
    program = predicate_program(f'{used}\nrequire node.taints.all(t, {first} || {last}) else "no"')
    pod = PodInfo("p", tolerations=(Toleration("c", "Exists", "", ""),))
    columns, scalar = both_verdicts(program, pod, NodeSet.all(cluster(facts).snapshot()))
    assert columns == scalar
