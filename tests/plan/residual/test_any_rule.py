"""Random rules over random clusters: the residual rule for a pod answers as the rule does."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.check.model.rule_set import CheckedPredicate, CheckedScore
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.specs import Narrowed
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.compile.passes import RESIDUAL_PASSES
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.residual.folder import TooMuch
from kdsl.plan.rules.predicate import PredicateProgram
from kdsl.plan.rules.score import ScoreProgram

from tests.plan.columns import test_any_rule as any_rule
from tests.plan.columns import test_node_reads
from tests.plan.columns.both import cluster
from tests.plan.residual.left import checked_predicate, checked_score, left_of_predicate, left_of_score

Found = tuple[list[NodeFacts], list[PodInfo]]


def verdicts(program: PredicateProgram, pod: PodInfo, nodes: NodeSet) -> list[list[object]]:
    """Return the PreFilter answer, or the answers of columns and of the scalar back end for every node."""
    answers: list[list[object]] = []
    for is_columns in (True, False):
        frame, table = program.begin(pod, ClusterView(nodes.snapshot)), StatusNumbers()
        decided = program.decide(frame)
        if isinstance(decided, Narrowed):
            return [[decided.names]]
        if decided is not None:
            return [[decided.code, decided.reasons, decided.sites]]
        ids = (
            program.statuses(frame, nodes, table)
            if is_columns
            else program.scalar_statuses(frame, nodes.nodes(), table)
        )
        statuses = [table.table[one] for one in ids]
        answers.append([(status.code, status.reasons, status.sites) for status in statuses])
    return answers


def raw_scores(program: ScoreProgram, pod: PodInfo, nodes: NodeSet) -> list[list[str]]:
    """Return the raw scores of both back ends, exact in every bit; nothing where the score skips the pod."""
    answers: list[list[str]] = []
    for is_columns in (True, False):
        frame = program.begin(pod, ClusterView(nodes.snapshot), nodes)
        if not program.applies(frame, nodes):
            return []
        raw = (
            program.raw_scores(frame, nodes).tolist()
            if is_columns
            else program.scalar_scores(frame, nodes.nodes())
        )
        answers.append([repr(one) for one in raw])
    return answers


def tallies(nodes: NodeSet) -> int:
    """Return the number of kept counts: a residual rule asks no other questions than the rule."""
    return len(TallyStore.of(nodes.snapshot)._tallies)


def assert_same_verdicts(
    rule: CheckedPredicate, functions: CompiledFunctions, pod: PodInfo, nodes: NodeSet
) -> None:
    expected = verdicts(PredicateProgram(rule, functions), pod, nodes)
    counted = tallies(nodes)
    with suppress(TooMuch):
        left = left_of_predicate(rule, functions, pod, nodes.snapshot)
        assert verdicts(PredicateProgram(left, functions, RESIDUAL_PASSES), pod, nodes) == expected
        assert tallies(nodes) == counted


def assert_same_scores(
    rule: CheckedScore, functions: CompiledFunctions, pod: PodInfo, nodes: NodeSet
) -> None:
    expected = raw_scores(ScoreProgram(rule, functions), pod, nodes)
    counted = tallies(nodes)
    with suppress(TooMuch):
        left = left_of_score(rule, functions, pod, nodes.snapshot)
        assert raw_scores(ScoreProgram(left, functions, RESIDUAL_PASSES), pod, nodes) == expected
        assert tallies(nodes) == counted


@settings(deadline=None, max_examples=60)
@given(any_rule.predicates(), any_rule.CLUSTERS, st.lists(any_rule.PODS, min_size=1, max_size=2))
def test_verdicts_stay(body: str, found: Found, pods: list[PodInfo]) -> None:
    rule, functions = checked_predicate(body, any_rule.FNS)
    for pod in pods:
        assert_same_verdicts(rule, functions, pod, any_rule._nodes(found))


@settings(deadline=None, max_examples=60)
@given(any_rule.scores(), any_rule.CLUSTERS, st.lists(any_rule.PODS, min_size=1, max_size=2))
def test_scores_stay(body: str, found: Found, pods: list[PodInfo]) -> None:
    rule, functions = checked_score(body, any_rule.FNS)
    for pod in pods:
        assert_same_scores(rule, functions, pod, any_rule._nodes(found))


@settings(deadline=None, max_examples=60)
@given(
    test_node_reads.VALUES,
    test_node_reads.VALUES,
    test_node_reads.NODES,
    test_node_reads.PODS,
    test_node_reads.POD,
)
def test_rules_that_count_stay(
    first: str,
    second: str,
    kinds: list[tuple[dict[str, str], bool]],
    pods: list[tuple[int, int]],
    pod: PodInfo,
) -> None:
    candidates = NodeSet.all(
        cluster(list(test_node_reads.nodes(kinds)), test_node_reads.bound(pods)).snapshot()
    )
    body = test_node_reads.counting_predicate(first, second)
    assert_same_verdicts(*checked_predicate(body, test_node_reads.FNS), pod, candidates)
    score = f"let found = {first}\nignore when found == 2\nvalue found - {second}"
    assert_same_scores(*checked_score(score, test_node_reads.FNS), pod, candidates)


PARTS = st.sampled_from(
    [
        *(
            "node.podCount",
            "pod.priority",
            "1 / node.podCount",
            "1 / pod.priority",
            "2",
            "node.taints.size()",
        ),
        *(
            'int(node.labels[?"n"].value())',
            'int(pod.labels[?"n"].value())',
            'topology("k").count(p, true).here(node)',
        ),
        "topology('k').count(p, 1 / p.priority > 0).total()",
    ]
)
ITEMS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
OVER_LETS = st.sampled_from(
    [
        *("l.map(i, @).sum()", "l.map(i, i > 0, @).sum()", "l.transformList(j, i, j < 2, @ + j).sum()"),
        *("l.filter(i, @ > 0).size()", "l.map(i, i + @).sum()", "(l + m).map(i, i).sum()", "l[0] + m[0]"),
        *("(l.all(i, @ > 0) ? 1 : 2)", "(l.exists(i, i > @) ? 1 : 2)", "(l.exists_one(i, i > @) ? 1 : 2)"),
        "(l.all(i, pod.priority > 1 || i > 0) ? 1 : 2)",
        "(l.exists(i, node.podCount > 0 && i > 0) ? 1 : 2)",
        "pod.labels.map(k, l.map(i, i + k.size()).sum()).sum()",
        "[[1, 2], [pod.priority]].map(x, x.map(i, @ + i).sum()).sum()",
        'cel.bind(c, topology("k").count(p, p.priority > pod.priority), [c].map(i, i.here(node) + @).sum())',
    ]
)


@settings(deadline=None, max_examples=80)
@given(ITEMS, ITEMS, OVER_LETS, PARTS, any_rule.CLUSTERS, any_rule.PODS)
def test_lists_of_failing_items_stay(
    first: str, second: str, macro: str, part: str, found: Found, pod: PodInfo
) -> None:
    lets = f"let l = {first}\nlet m = {second}\nlet v = {macro.replace('@', part)}\n"
    nodes = any_rule._nodes(found)
    assert_same_scores(*checked_score(f"{lets}ignore when v == 3\nvalue v"), pod, nodes)
    body = (
        f'{lets}require v > 0 else "${{v}}"\nfor x in l {{ let y = v + x require y != 3 else "is ${{y}}" }}'
    )
    assert_same_verdicts(*checked_predicate(body), pod, nodes)
