"""Nodes from which a rule reads the same values are evaluated once; the reads are collected for each pod."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.values import Value
from kdsl.hooks.state import CycleState
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.groups import Grouped
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.score import ScorePlugin

from tests.plan.columns.both import both_scores, both_verdicts, cluster, predicate_program, score_program

FNS = """
fn holds(node: Node, keys: list(string)): bool = keys.all(k, k in node.labels)
fn price(c: TopologyCount, node: Node): int = c.here(node) * 2
fn busy(node: Node): int = node.pods.size()
"""
KEYS = '["zone", "host"].filter(k, k in pod.labels)'
COUNT = "topology(k).count(p, p.priority > pod.priority)"
VALUES = st.sampled_from(
    [
        'topology("zone").count(p, true).here(node)',
        'topology("host").count(p, p.priority > 0).here(node)',
        'topology("zone").eligible(n, holds(n, ["host"])).sum(p, p.priority).here(node)',
        f"{KEYS}.map(k, {COUNT}.here(node)).sum()",
        f"{KEYS}.map(k, price({COUNT}, node)).sum() - {KEYS}.map(k, {COUNT}.total()).sum()",
        f'{KEYS}.transformList(i, k, k in node.labels, k == "host" ? busy(node) : {COUNT}.here(node)).sum()',
        f"(holds(node, {KEYS}) ? {COUNT.replace('(k)', '(pod.namespace)')}.least(1) % 5 : 7)",
        "cel.bind(c, topology('zone').count(p, true), c.here(node) + c.total())",
        "cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).here(node)",
        'int(node.labels[?"n"].value()) / pod.priority',
        '(node.labels[?"zone"].orValue("") == "a" || pod.priority > 1 ? 1 : 2)',
        f"{KEYS}.filter(k, k in node.labels).map(k, node.labels[k] == 'a' ? 2 : 3).sum()",
        f"{KEYS}.filter(k, k in node.labels).filter(k, node.labels[k] > 'a').size()",
        '["n", "zone"].filter(k, k in node.labels).transformList(i, _, ["n", "host"][i] in node.labels).size()',
        'cel.bind(held, ["n", "zone"].filter(k, k in node.labels), held.map(k, node.labels[k]).size())',
        "node.podCount",
        'node.taints.size() + (node.unschedulable && "zone" in pod.labels ? 1 : 0)',
    ]
)
LABELS = st.dictionaries(st.sampled_from(["zone", "n"]), st.sampled_from(["a", "b", "3"]))
NODES = st.lists(
    st.builds(lambda labels, off: (labels, off), LABELS, st.booleans()), min_size=12, max_size=16
)
PODS = st.lists(st.tuples(st.integers(0, 11), st.integers(-1, 2)), max_size=8)
POD = st.builds(
    lambda priority, keys: PodInfo(
        "x", namespace="zone", priority=priority, labels=FrozenMap(dict.fromkeys(keys, "x"))
    ),
    st.integers(-1, 2),
    st.sets(st.sampled_from(["zone", "host"])),
)


def nodes(groups: list[tuple[dict[str, str], bool]]) -> Iterator[NodeFacts]:
    for at, (labels, is_off) in enumerate(groups):
        host = {"host": f"n{at}"} if at % 5 else {}
        yield NodeFacts(f"n{at}", labels=FrozenMap({**labels, **host}), unschedulable=is_off)


def bound(pods: list[tuple[int, int]]) -> list[PodInfo]:
    return [PodInfo(f"p{at}", node_name=f"n{on}", priority=what) for at, (on, what) in enumerate(pods)]


def counting_predicate(first: str, second: str) -> str:
    return f"""let found = {first}
        let other = {second}
        for key in {KEYS} {{
          let here = {COUNT.replace("(k)", "(key)")}
          require key in node.labels || other > 1 else "no ${{key}}"
          require here.here(node) <= here.least(1) + found else "too many over ${{key}}: ${{here.total()}}"
        }}
        require found > other else "few\""""


@settings(max_examples=80)
@given(VALUES, VALUES, NODES, PODS, POD)
def test_rules_that_count_give_what_the_scalar_back_end_gives(
    first: str,
    second: str,
    groups: list[tuple[dict[str, str], bool]],
    pods: list[tuple[int, int]],
    pod: PodInfo,
) -> None:
    candidates = NodeSet.all(cluster(list(nodes(groups)), bound(pods)).snapshot())
    predicate = predicate_program(counting_predicate(first, second), FNS)
    columns, scalar = both_verdicts(predicate, pod, candidates)
    assert columns == scalar
    score = score_program(f"let found = {first}\nignore when found == 2\nvalue found - {second}", FNS)
    scores = both_scores(score, pod, candidates)
    assert scores[0] == scores[1]


KINDS = ["", "normalize max", "normalize reverse", "normalize minmax"]
ENDS = st.sampled_from(
    [
        *(f"value found\n{kind}" for kind in KINDS),
        *(f"value double(found) / 3.0\n{kind}" for kind in KINDS),
        "value found\nnormalize by max == 0 ? 7 : value * 50 / max",
        "value found\nnormalize by 100 / (value - min)",
        "value double(found) / 3.0\nnormalize by (value - min) * 7.5",
    ]
)


@settings(max_examples=80)
@given(VALUES, VALUES, ENDS, NODES, PODS, POD)
def test_points_of_groups_are_the_normalised_scores_of_nodes(
    first: str,
    second: str,
    end: str,
    groups: list[tuple[dict[str, str], bool]],
    pods: list[tuple[int, int]],
    pod: PodInfo,
) -> None:
    candidates = NodeSet.all(cluster(list(nodes(groups)), bound(pods)).snapshot())
    program = score_program(f"let found = {first}\nignore when found == {second}\n{end}", FNS)
    points = program.points_of(CycleState(), pod, candidates)
    frame = program.begin(pod, ClusterView(candidates.snapshot), candidates)
    raw = np.array(list(program.scalar_scores(frame, candidates.nodes())), program.dtype)
    expected = program.normalized(frame, raw, program.missing(raw))
    found = points.column(np.int64) if isinstance(points, Grouped) else points
    assert found.tolist() == expected.tolist()


class Evaluated:
    """Records the nodes that the scalar back end evaluates."""

    def __init__(self, program: PredicateRule | ScorePlugin, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        method = "scalar_scores" if isinstance(program, ScorePlugin) else "scalar_statuses"
        evaluate = getattr(program, method)

        def watched(frame: Value, nodes: Value, *others: Value, **named: Value) -> Value:
            listed = list(nodes)
            self.names += [node.name for node in listed]
            return evaluate(frame, listed, *others, **named)

        monkeypatch.setattr(program, method, watched)


def zones(pods: int) -> ClusterCache:
    groups = [({"zone": "abc"[at % 3]}, False) for at in range(30)]
    return cluster(list(nodes(groups)), bound([(at, 1) for at in range(pods)]))


def test_one_node_of_each_domain_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    program = predicate_program(f'for k in {KEYS} {{ require {COUNT}.here(node) < 2 else "full" }}')
    evaluated = Evaluated(program, monkeypatch)
    candidates = NodeSet.all(zones(4).snapshot())
    pod = PodInfo("x", labels=FrozenMap({"zone": ""}))
    frame = program.begin(pod, ClusterView(candidates.snapshot))
    ids = program.statuses_in(frame, candidates, StatusNumbers())
    assert evaluated.names == ["n0", "n1", "n2"]
    assert ids is not None and [at for at, one in enumerate(ids) if one] == list(range(0, 30, 3))


def test_of_many_domains_one_node_of_each_number_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    program = score_program('value topology("host").count(p, true).here(node)')
    evaluated = Evaluated(program, monkeypatch)
    candidates = NodeSet.all(zones(4).snapshot())
    frame = program.begin(PodInfo("x"), ClusterView(candidates.snapshot), candidates)
    raw = program.raw_scores(frame, candidates).tolist()
    assert evaluated.names == ["n0", "n1"]
    assert raw == [1 if at in (1, 2, 3) else 0 for at in range(30)]


def test_branches_that_the_pod_excludes_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    program = score_program("value pod.priority > 0 ? node.pods.size() : 1")
    evaluated = Evaluated(program, monkeypatch)
    candidates = NodeSet.all(zones(4).snapshot())
    for priority, asked in ((0, ["n0"]), (1, [])):
        evaluated.names.clear()
        pod = PodInfo("x", priority=priority)
        program.raw_scores(program.begin(pod, ClusterView(candidates.snapshot), candidates), candidates)
        assert evaluated.names == asked


def test_of_a_filtered_list_the_values_of_all_items_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = "let found = ['zone', 'host'].filter(k, k in node.labels)"
    program = score_program(f"{found}\nvalue found.map(k, node.labels[k]).filter(v, v in ['a', 'n1']).size()")
    evaluated = Evaluated(program, monkeypatch)
    for hosts in (0, 1):
        evaluated.names.clear()
        groups = [NodeFacts(f"n{at}", labels=FrozenMap({"zone": "abc"[at % 3]})) for at in range(12)]
        groups += [NodeFacts("n12", labels=FrozenMap({"zone": "a", "host": "n1"}))] * hosts
        candidates = NodeSet.all(cluster(groups, []).snapshot())
        frame = program.begin(PodInfo("x"), ClusterView(candidates.snapshot), candidates)
        raw = program.raw_scores(frame, candidates).tolist()
        assert [*dict.fromkeys(evaluated.names)] == ["n0", "n1", "n2"] + ["n12"] * hosts
        assert raw == [1, 0, 0] * 4 + [2] * hosts


def test_many_groups_of_nodes_are_left_to_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    program = score_program('value node.labels[?"host"].orValue("") == "n7" ? 1 : 0')
    evaluated = Evaluated(program, monkeypatch)
    candidates = NodeSet.all(zones(0).snapshot())
    frame = program.begin(PodInfo("x"), ClusterView(candidates.snapshot), candidates)
    raw = program.raw_scores(frame, candidates).tolist()
    assert evaluated.names == [] and raw.index(1) == 7


def test_a_variable_that_is_read_twice_is_collected_once() -> None:
    lets = "\n".join(f"let v{at} = v{at - 1} + v{at - 1}" for at in range(1, 60))
    fns = "fn f0(node: Node): int = node.taints.size()\n" + "\n".join(
        f"fn f{at}(node: Node): int = f{at - 1}(node) + f{at - 1}(node)" for at in range(1, 40)
    )
    lines = f"let v0 = node.taints.size() - node.taints.size()\n{lets}"
    program = score_program(f"{lines}\nvalue v59 + (pod.priority > 0 ? f39(node) : 0)", fns)
    candidates = NodeSet.all(zones(0).snapshot())
    columns, scalar = both_scores(program, PodInfo("x"), candidates)
    assert columns == scalar == ["0"] * 30


def test_reads_of_any_pod_follow_the_facts_of_each_cluster() -> None:
    program = predicate_program('require !node.unschedulable || pod.priority > 1 else "off"')
    caches = [
        cluster([NodeFacts(f"n{at}", unschedulable=at % 3 == odd) for at in range(14)]) for odd in (1, 2)
    ]
    for changed in (None, *(NodeFacts(f"n{at}", unschedulable=at % 2 == 0) for at in range(3))):
        for cache in caches:
            if changed is not None:
                cache.add_node(changed)
            # The nodes are numbered when their version is asked for again.
            for priority in (0, 2, 1):
                pod = PodInfo("p", priority=priority)
                columns, scalar = both_verdicts(program, pod, NodeSet.all(cache.snapshot()))
                assert columns == scalar
