"""Whatever a rule reads, and whatever changes between two pods, a kept answer equals a fresh one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.ports import HostPort
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.joined import PreFilterAnswers
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.plan.columns import batch, tape
from kdsl.plan.memo import answers as answers_module
from kdsl.plan.memo import predicates as predicates_module
from kdsl.plan.memo.predicates import PredicateMemo
from kdsl.plan.memo.scores import ScoreMemo
from kdsl.plan.rules.predicate import SKIP
from kdsl.plan.rules.predicate_plugin import PredicatePlugin
from kdsl.plan.rules.score import ScoreError, ScorePlugin

from tests.plan.expressions import Expressions
from tests.plan.lab import DEFAULT_QUEUE, compile_rules, compiler, filtered, predicate, score
from tests.plan.memo.totals import totals_of

INT_LEAVES = st.sampled_from(
    [
        *("1", "pod.priority", "node.podCount", "cluster.nodeCount", "node.taints.size()"),
        *("pod.labels.size()", "node.usedHostPorts.size()", "pod.containerCount"),
        *('node.requested["cpu"].asInteger()', 'pod.requests["cpu"].asInteger()'),
        *('(node.allocatable["cpu"] / quantity("1m"))', "node.labels.transformList(k, v, v.size()).sum()"),
        "node.images.transformList(name, image, image.nodeCount * 3 + image.sizeBytes).sum()",
        "pod.images.filter(i, i in node.images).map(i, node.images[i].nodeCount).sum()",
        *('topology("k").count(p, p.namespace == pod.namespace).here(node)', "cluster.pods.size()"),
        'topology("k").eligible(n, n.podCount < 2).sum(p, p.priority + pod.priority).least(1)',
        'topology("k").eligible(n, n.podCount < cluster.pods.size()).count(p, true).here(node)',
        'topology("j").eligible(n, !n.unschedulable).count(p, "k" in p.labels).total()',
        "pod.labels.map(k, topology(k).count(p, p.labels[?k] == pod.labels[?k]).here(node)).sum()",
        "cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).here(node)",
        "cluster.requiredAntiAffinityTerms.sum(t, t.matches(pod) ? pod.priority : 1).total()",
    ]
)
BOOL_LEAVES = st.sampled_from(
    [
        *('"k" in node.labels', '"k" in pod.labels', "node.unschedulable"),
        *('node.name == "n1"', 'pod.namespace == "x"', 'node.labels[?"k"] == pod.labels[?"k"]'),
        "node.taints.all(t, pod.tolerates(t))",
        "node.pods.map(p, p.priority).sum() > 2",
        "node.pods.exists(p, p.namespace == pod.namespace && p.labels[?'k'] == pod.labels[?'k'])",
        "pod.hostPorts.exists(p, node.usedHostPorts.exists(u, u.conflictsWith(p)))",
        "pod.labels.all(k, node.labels[?k].orValue('') != '')",
    ]
)

EXPRESSIONS = Expressions(INT_LEAVES, BOOL_LEAVES)
INTS, BOOLS = EXPRESSIONS.ints(3), EXPRESSIONS.bools(3)
REASONS = st.sampled_from(["no", "on ${node.name}", "has ${node.podCount}", "of ${pod.priority}", "${a}"])
LOOP = 'for x, y in pod.labels where x != y { let c = a + x.size() @ require c > 3 else "${x} ${y}" }'


@st.composite
def predicates(draw: st.DrawFn) -> str:
    """A predicate with `let`s before and between their uses."""
    lines = [draw(st.sampled_from(["", "report all"])), f"let a = {draw(INTS)}", f"let b = {draw(BOOLS)}"]
    if draw(st.booleans()):
        lines.append(f"applies when {draw(st.one_of(st.just('b'), BOOLS))}")
    if draw(st.booleans()):
        lines.append(f'on error reject "{draw(REASONS)}"')
    for _ in range(draw(st.integers(1, 3))):
        condition = draw(st.one_of(BOOLS, st.just("b || a > 3")))
        require = f'require {condition} else "{draw(REASONS)}"'
        lines.append(draw(st.sampled_from(["@", LOOP])).replace("@", require))
    return "\n".join(lines)


NORMALIZATIONS = st.sampled_from(
    [
        "",
        "normalize max",
        "normalize reverse",
        "normalize minmax",
        "normalize by max == 0 ? 7 : value * 50 / max",
    ]
)


@st.composite
def scores(draw: st.DrawFn) -> str:
    return f"let a = {draw(INTS)}\nvalue {draw(st.one_of(INTS, st.just('a'), st.just('a * 2 - a')))}"


SMALL = st.integers(0, 3)
LABELS = st.lists(st.sampled_from([("k", "a"), ("k", "b"), ("j", "a"), ("i", "k")]), max_size=3).map(
    lambda pairs: FrozenMap(dict(pairs))
)
TERMS = [
    PodAffinityTerm("k", 0, LabelSelector.of_labels({"k": "a"}), frozenset({"x"}), None),
    PodAffinityTerm("j", 0, LabelSelector.of_labels({"j": "a"}), frozenset({"x", "y"}), None),
    PodAffinityTerm("k", 0, LabelSelector.of_labels({}), frozenset({"y"}), None),
]
PORTS = st.sampled_from([(), (HostPort("0.0.0.0", "TCP", 80),), (HostPort("1.1.1.1", "TCP", 80),)])
IMAGES = st.sampled_from(["i:1", "j:1"])
NODES = st.builds(
    NodeFacts,
    st.sampled_from(["n1", "n2", "n3"]),
    labels=LABELS,
    unschedulable=st.booleans(),
    taints=st.sampled_from([(), (Taint("t", "", "NoSchedule"),)]),
    allocatable=st.integers(0, 3).map(lambda cpu: Resources({"cpu": cpu * 1000})),
    image_sizes=st.dictionaries(IMAGES, SMALL, max_size=2).map(FrozenMap),
)
PODS = st.builds(
    PodInfo,
    st.sampled_from(["p1", "p2", "p3"]),
    st.sampled_from(["x", "y"]),
    labels=LABELS,
    priority=SMALL,
    container_count=SMALL,
    tolerations=st.sampled_from([(), (Toleration("t", "Exists", "", ""),)]),
    host_ports=PORTS,
    required_anti_affinity=st.lists(st.sampled_from(TERMS), max_size=2).map(tuple),
    images=st.lists(IMAGES, max_size=2).map(tuple),
    requests=SMALL.map(lambda cpu: Resources({"cpu": cpu * 500})),
    usage=SMALL.map(lambda cpu: Resources({"cpu": cpu * 500})),
    node_name=st.sampled_from(["n1", "n2", "n3"]),
)
CHANGES: st.SearchStrategy[Callable[[ClusterCache], object]] = st.one_of(
    NODES.map(lambda facts: lambda cache: cache.add_node(facts)),
    PODS.map(lambda pod: lambda cache: cache.add_pod(pod)),
    st.sampled_from(["n1", "n2", "n3"]).map(lambda name: lambda cache: cache.remove_node(name)),
    PODS.map(lambda pod: lambda cache: cache.remove_pod(pod.key)),
)


def answers(plugin: PredicatePlugin | ScorePlugin, pod: PodInfo, nodes: NodeSet) -> object:
    """Return the plugin's answer for every node, without joining."""
    state = CycleState()
    if isinstance(plugin, ScorePlugin):
        return plugin.pre_score(state, pod, nodes), plugin.score(state, pod, nodes).tolist()
    decision = plugin.pre_filter(state, pod, nodes)
    if decision is not None:
        return decision
    column = filtered(plugin, state, pod, nodes)
    return [
        (status.code, status.reasons, status.sites) for status in map(column.__getitem__, range(len(nodes)))
    ]


Answers = tuple[list[tuple[str, Status | Narrowed]], list[tuple[object, ...]]]


def one_by_one(plugins: Sequence[PredicatePlugin], pod: PodInfo, nodes: NodeSet) -> Answers:
    """Return the PreFilter answers, and the status of every node, as the cycle asks plugin after plugin."""
    state = CycleState()
    found: list[tuple[str, Status | Narrowed]] = []
    statuses: list[tuple[object, ...]] = [()] * len(nodes)
    for plugin in plugins:
        answer = plugin.pre_filter(state, pod, nodes)
        if answer is not None:
            found.append((plugin.name, answer))
        if isinstance(answer, Status):
            continue
        column = filtered(plugin, state, pod, nodes)
        for at, status in enumerate(map(column.__getitem__, range(len(nodes)))):
            if not statuses[at] and status.code is not Code.SUCCESS:
                statuses[at] = (plugin.name, status.code, status.reasons, status.sites)
    return found, ([] if is_rejected(found) else statuses)


def is_rejected(found: Iterable[tuple[str, Status | Narrowed]]) -> bool:
    """Return whether PreFilter rejects the pod; the cycle asks no filter then."""
    return any(isinstance(answer, Status) and answer.code.is_rejection for _, answer in found)


def answers_of(found: PreFilterAnswers) -> list[tuple[str, Status | Narrowed]]:
    """Return the predicates that do not just let the pod pass, with their answers."""
    return [*((name, SKIP) for name in found.skipping), *found.answers]


def column_of(joined: PredicateMemo, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
    """Return the answer of joined predicates for each node."""
    column = joined.filter(state, pod, nodes)
    return StatusColumn.of([None] * len(nodes)) if column is None else column


def joined_answers(joined: PredicateMemo, pod: PodInfo, nodes: NodeSet) -> Answers:
    """Return the same of joined predicates."""
    state = CycleState()
    found = answers_of(joined.pre_filter(state, pod, nodes))
    if is_rejected(found):
        return found, []
    state.skipped_filters |= {name for name, answer in found if isinstance(answer, Status)}
    column = column_of(joined, state, pod, nodes)
    each = map(column.__getitem__, range(len(nodes)))
    return found, [
        () if status.code is Code.SUCCESS else (status.plugin, status.code, status.reasons, status.sites)
        for status in each
    ]


STEPS = st.lists(st.tuples(CHANGES, PODS), min_size=1, max_size=8)


def profile_of(bodies: list[str]) -> str:
    """Write a profile of predicates with these bodies."""
    text = "".join(f"predicate P{at} {{\n{body}\n}}\n" for at, body in enumerate(bodies))
    names = " ".join(f"P{at}" for at in range(len(bodies)))
    return text + f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q predicates {{ {names} }} }}'


def profile_of_scores(bodies: list[tuple[str, str]]) -> str:
    """Write a profile of scores with these bodies and normalisations."""
    text = "".join(f"score S{at} {{\n{body}\n{kind}\n}}\n" for at, (body, kind) in enumerate(bodies))
    names = " ".join(f"S{at} weight {at + 1}" for at in range(len(bodies)))
    return text + f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q scores {{ {names} }} }}'


@settings(deadline=None, max_examples=25)
@given(st.lists(predicates(), min_size=1, max_size=3), STEPS)
def test_joined_predicates_answer_as_they_do_alone(
    bodies: list[str], steps: list[tuple[Callable[[ClusterCache], object], PodInfo]]
) -> None:
    compiled = compiler(profile_of(bodies))
    warm, cache = PredicateMemo(compiled().predicates), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    for change, pod in steps:
        change(cache)
        nodes = NodeSet.all(cache.snapshot())
        uncached = compiled().predicates
        expected = one_by_one(uncached, pod, nodes)
        assert joined_answers(warm, pod, nodes) == expected
        assert joined_answers(warm, pod, nodes) == expected


def test_statuses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicates_module, "MAX_STATUSES", 4)
    text = profile_of(
        [
            'require pod.priority > 1 else "${node.name} has ${pod.priority}"',
            'require cluster.pods.size() == pod.priority else "not ${pod.priority} on ${node.name}"',
        ]
    )
    joined, cache = PredicateMemo(compile_rules(text).predicates), ClusterCache()
    for at in range(3):
        cache.add_node(NodeFacts(f"n{at}"))
    nodes = NodeSet.all(cache.snapshot())
    for priority in (0, 1, 2, 3, 0, 1, 2, 3):
        pod, state = PodInfo("p", priority=priority), CycleState()
        uncached = compile_rules(text).predicates
        assert joined_answers(joined, pod, nodes) == one_by_one(uncached, pod, nodes)
        joined.pre_filter(state, pod, nodes)
        # Two predicates have at most three statuses for each pod, and room is made before they run.
        assert len(column_of(joined, state, pod, nodes).table) <= 4 + 3


@pytest.fixture
def over_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let columns, and looking ahead, pay for a single row."""
    for module in (batch, answers_module, tape):
        monkeypatch.setattr(module, "MIN_ROWS", 1)


@pytest.mark.usefixtures("over_columns")
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(predicates(), min_size=1, max_size=3),
    st.lists(st.tuples(scores(), NORMALIZATIONS), max_size=2),
    STEPS,
)
def test_joined_rules_answer_for_one_node_after_the_other_as_they_do_alone(
    bodies: list[str],
    score_bodies: list[tuple[str, str]],
    steps: list[tuple[Callable[[ClusterCache], object], PodInfo]],
) -> None:
    compiled = compiler(profile_of(bodies))
    scoring = compiler(profile_of_scores([*score_bodies, ("value 1", "")]))
    warm, cache = PredicateMemo(compiled().predicates), ClusterCache()
    warm_scores = ScoreMemo(scoring().scores)
    cache.add_node(NodeFacts("n1"))
    for change, pod in steps:
        change(cache)
        nodes = NodeSet.all(cache.snapshot())
        for at in range(len(nodes)):
            one = nodes.take(np.array([at]))
            uncached = compiled().predicates
            assert joined_answers(warm, pod, one) == one_by_one(uncached, pod, one)
            assert totals_of(warm_scores, pod, one) == sum_of_each(scoring().scores, pod, one)


@pytest.mark.usefixtures("over_columns")
def test_a_score_that_may_abort_is_not_prefetched() -> None:
    joined = ScoreMemo([score('value 8 / (node.allocatable["cpu"] / quantity("1"))\non error abort')])
    cache, pod = ClusterCache(), PodInfo("p")
    for cpu in (2, 0):
        cache.add_node(NodeFacts(f"n{cpu}", allocatable=Resources({"cpu": cpu * 1000})))
    nodes = NodeSet.all(cache.snapshot())
    assert totals_of(joined, pod, nodes.take(np.array([0]))) == [8]
    with pytest.raises(ScoreError):
        totals_of(joined, pod, nodes)


@settings(deadline=None, max_examples=28)
@given(st.lists(predicates(), min_size=1, max_size=3), STEPS, st.lists(PODS, max_size=2))
def test_joined_predicates_judge_other_pods_on_a_node_as_they_do_alone(
    bodies: list[str], steps: list[tuple[Callable[[ClusterCache], object], PodInfo]], added: list[PodInfo]
) -> None:
    compiled = compiler(profile_of(bodies))
    warm, cache = PredicateMemo(compiled().predicates), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    for change, pod in steps:
        change(cache)
        nodes = NodeSet.all(cache.snapshot())
        plugins = compiled().predicates
        alone, together = CycleState(), CycleState()
        answered = [(each.name, each.pre_filter(alone, pod, nodes)) for each in plugins]
        joined = answers_of(warm.pre_filter(together, pod, nodes))
        # A rejection of the pod holds in dry runs, too.
        alone.skipped_filters |= {name for name, answer in answered if answer == SKIP}
        together.skipped_filters |= {name for name, answer in joined if answer == SKIP}
        for row in nodes.rows.tolist():
            node = nodes.snapshot.info(row)
            less = node
            for other in node.pods:
                less = less.without_pod(other)
            more = node
            for other in added:
                more = more.with_pod(other.with_fields(name=f"new-{other.name}", node_name=node.name))
            for changed in (less, more, less):
                one = NodeSet(nodes.snapshot.overlay(row, changed), np.array([row], np.int32))
                found = told(column_of(warm, together, pod, one)[0])
                assert found == first_rejection(plugins, alone, pod, one)
        assert joined_answers(warm, pod, nodes) == one_by_one(plugins, pod, nodes)


@pytest.mark.parametrize(
    "condition", ["!node.unschedulable", "!node.unschedulable && node.podCount < 3", '"k" in node.labels']
)
def test_what_ifs_of_a_node_are_separate_from_its_answer(condition: str) -> None:
    """Nothing is kept for another node, whether or not the rule depends on pods."""
    joined = PredicateMemo([predicate(f'require {condition} else "no"')])
    good, bad_ = NodeFacts("n", labels=FrozenMap({"k": "a"})), NodeFacts("n", unschedulable=True)
    for facts, other in ((good, bad_), (bad_, good)):
        cache, pod, state = ClusterCache(), PodInfo("p"), CycleState()
        cache.add_node(facts)
        nodes = NodeSet.all(cache.snapshot())
        joined.pre_filter(state, pod, nodes)
        assert bool(told(column_of(joined, state, pod, nodes)[0])) is (facts is bad_)
        node = nodes.snapshot.info(0).with_facts(other)
        for changed in (node, node.with_pod(PodInfo("q", node_name="n"))):
            one = NodeSet(nodes.snapshot.overlay(0, changed), np.array([0], np.int32))
            assert bool(told(column_of(joined, state, pod, one)[0])) is (other is bad_)


def test_what_ifs_of_nodes_have_their_own_answers() -> None:
    joined = PredicateMemo([predicate('require node.podCount < 2 else "full"')])
    cache, pod, state = ClusterCache(), PodInfo("p"), CycleState()
    for name in ("n0", "n1", "n2"):
        cache.add_node(NodeFacts(name))
    nodes = NodeSet.all(cache.snapshot())
    for _ in range(2):  # nothing is kept for a new signature
        joined.pre_filter(state, pod, nodes)
    for row in nodes.rows.tolist():
        for count, is_full in ((1, False), (2, True)):
            node = nodes.snapshot.info(row)
            for number in range(count):
                node = node.with_pod(PodInfo(f"q{number}", node_name=node.name))
            one = NodeSet(nodes.snapshot.overlay(row, node), np.array([row], np.int32))
            assert bool(told(column_of(joined, state, pod, one)[0])) is is_full


def first_rejection(
    plugins: Iterable[PredicatePlugin], state: CycleState, pod: PodInfo, one: NodeSet
) -> tuple[object, ...]:
    """Return the answer of the first predicate that rejects a node."""
    for plugin in plugins:
        column = None if plugin.name in state.skipped_filters else plugin.filter(state, pod, one)
        if column is not None and column[0].code is not Code.SUCCESS:
            return told(column[0].by(plugin.name))
    return ()


def told(status: Status) -> tuple[object, ...]:
    """Return the parts of a status that must be equal; nothing for success."""
    if status.code is Code.SUCCESS:
        return ()
    return status.plugin, status.code, status.reasons, status.sites


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(scores(), NORMALIZATIONS), min_size=1, max_size=3), STEPS)
def test_joined_scores_add_up_to_the_sum_of_each(
    bodies: list[tuple[str, str]], steps: list[tuple[Callable[[ClusterCache], object], PodInfo]]
) -> None:
    compiled = compiler(profile_of_scores(bodies))
    warm, cache = ScoreMemo(compiled().scores), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    for change, pod in steps:
        change(cache)
        nodes = NodeSet.all(cache.snapshot())
        if not len(nodes):
            continue
        expected = sum_of_each(compiled().scores, pod, nodes)
        for _ in range(2):
            assert totals_of(warm, pod, nodes) == expected


@pytest.mark.parametrize(
    "formula", ["normalize by value * 4611686018427387904 > 0 ? 100 : 50", "normalize max", "normalize none"]
)
def test_a_score_that_all_nodes_share_is_no_number_of_numpy(formula: str) -> None:
    compiled = compiler(profile_of_scores([("value 3 + node.podCount", formula)]))
    memo, cache, pod = ScoreMemo(compiled().scores), ClusterCache(), PodInfo("p")
    for name in ("n1", "n2"):
        cache.add_node(NodeFacts(name))
    nodes = NodeSet.all(cache.snapshot())
    for _ in range(3):
        state = CycleState()
        memo.pre_score(state, pod, nodes)
        points = memo.points(state, pod, nodes)
        assert points is not None and type(points[1]) is int
        assert totals_of(memo, pod, nodes) == sum_of_each(compiled().scores, pod, nodes)


def sum_of_each(plugins: Iterable[ScorePlugin], pod: PodInfo, nodes: NodeSet) -> list[int] | None:
    """Return the weighted sums, score by score; None if one is out of range."""
    sums = [0] * len(nodes)
    for plugin in plugins:
        state = CycleState()
        assert plugin.pre_score(state, pod, nodes) is None
        normalized = plugin.normalize_score(state, pod, nodes, plugin.score(state, pod, nodes)).tolist()
        if not all(0 <= each <= 100 for each in normalized):
            return None
        sums = [total + each * plugin.weight for total, each in zip(sums, normalized, strict=True)]
    return sums


def test_the_order_of_a_map_is_part_of_the_signature() -> None:
    joined = PredicateMemo([predicate('for k in pod.labels { require k == node.name else "not ${k}" }')])
    cache = ClusterCache()
    cache.add_node(NodeFacts("n1"))
    nodes = NodeSet.all(cache.snapshot())
    for labels in ({"a": "", "b": ""}, {"b": "", "a": ""}):
        _, (status,) = joined_answers(joined, PodInfo("p", labels=FrozenMap(labels)), nodes)
        assert status[2] == (f"not {next(iter(labels))}",)
