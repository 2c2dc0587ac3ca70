"""Random rules over random clusters: both back ends give the same verdicts, reasons, sites and scores."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.ports import HostPort
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.nodeset import NodeSet

from tests.plan.columns.both import both_scores, both_verdicts, cluster, predicate_program, score_program
from tests.plan.expressions import Expressions

FNS = """
fn twice(n: int): int = n * 2
fn longest(texts: list(string)): int = texts.map(t, t.size()).sum()
fn labelled(node: Node, k: string): string = node.labels[?k].orValue("-")
fn hasAll(node: Node, keys: map(string, string)): bool = keys.all(k, k in node.labels)
fn tight(node: Node, most: int): bool = most > 0 && node.podCount >= most
fn spelled(n: int, word: string): string = n > 2 ? word + string(n) : word.upperAscii()
"""
INT_LEAVES = st.sampled_from(
    [
        *("1", "0", "9223372036854775807", "-9223372036854775808", "pod.priority", "node.podCount"),
        *("cluster.nodeCount", "node.taints.size()", "pod.labels.size()", "node.usedHostPorts.size()"),
        *('node.requested["cpu"].asInteger()', 'pod.requests["memory"].asInteger()'),
        *('(node.allocatable["cpu"] / quantity("1m"))', "node.labels.transformList(k, v, v.size()).sum()"),
        'int(node.labels[?"n"].value())',
        *(
            "twice(node.podCount)",
            'longest([node.labels[?"k"].orValue("ab"), "x"])',
            "[1, node.podCount].sum()",
        ),
        "pod.labels.transformList(k, v, k in node.labels ? node.podCount : v.size()).sum()",
        "pod.images.filter(i, i in node.images).map(i, node.images[i].nodeCount).sum()",
        "math.least([node.podCount, pod.priority, 2])",
        "[node.podCount, pod.priority, 3].sortBy(x, -x)[1]",
        "node.taints.sortBy(t, t.key).map(t, t.effect.size()).sum()",
        "[[node.podCount], [pod.priority, 1]].flatten(1).sum()",
        *("int(string(node.podCount))", 'sign(node.allocatable["cpu"] - node.requested["cpu"])'),
        "cel.bind(x, node.podCount, x * x + pod.labels.filter(k, k.size() > x).size())",
        "cluster.pods.filter(p, p.priority > 1).size()",
        "pod.labels.map(k, cluster.pods.filter(p, k in p.labels).size() + node.podCount).sum()",
    ]
)
DOUBLE_LEAVES = st.sampled_from(
    [
        *(
            "1.5",
            "-0.0",
            "double(node.podCount)",
            "1.0 / double(node.podCount)",
            "math.sqrt(double(pod.priority))",
        ),
        *('ratio(node.requested["cpu"], node.allocatable["cpu"])', "double(node.podCount) / 0.0"),
        "pod.labels.map(k, double(node.podCount) / 3.0).sum()",
        "math.greatest(double(node.podCount), -0.0)",
    ]
)
BOOL_LEAVES = st.sampled_from(
    [
        *("true", "false", '"k" in node.labels', '"k" in pod.labels', "node.unschedulable"),
        *('node.name == "n1"', 'pod.namespace == "x"', 'node.labels[?"k"] == pod.labels[?"k"]'),
        *('node.labels[?"k"].value() == "a"', '("k" in node.labels && node.labels["k"] != "a")'),
        *(
            'node.labels[?"k"].value() != node.labels[?"j"].value()',
            '(has(node.labels.k) && node.labels.k < "b")',
        ),
        *(
            "has(node.labels.k)",
            '(!("k" in node.labels) || node.labels["k"] in ["a", "x"])',
            "node.labels.exists(k, v, k == v)",
        ),
        "node.taints.all(t, pod.tolerates(t))",
        "pod.hostPorts.exists(p, node.usedHostPorts.exists(u, u.conflictsWith(p)))",
        *(
            "pod.labels.all(k, node.labels[?k].orValue('') != '')",
            "pod.labels.all(k, v, node.labels[?k].value() == v)",
        ),
        *(
            "pod.labels.exists_one(k, k in node.labels)",
            "pod.labels.exists(k, k in node.labels && node.labels[k] > k)",
        ),
        *('labelled(node, "k") == "a"', 'spelled(node.podCount, node.labels[?"k"].orValue("b")) != "B"'),
        *(
            "hasAll(node, pod.labels)",
            "tight(node, pod.priority)",
            'topology("k").count(p, true).here(node) > 1',
        ),
        *("pod.requests <= node.allocatable", "node.requested <= node.allocatable"),
        'node.allocatable["cpu"] - node.requested["cpu"] >= pod.requests["cpu"]',
        'node.allocatable["cpu"] * 3 > quantity("1500m")',
        *(
            'node.allocatable["cpu"] < quantity("0.0005")',
            'node.allocatable["cpu"] == node.requested["memory"]',
        ),
        'node.labels[?"k"].optMap(v, v + "!").orValue("?") == "a!"',
        'pod.labels.filter(k, k in node.labels).map(k, node.labels[k]).exists(v, v == "a")',
        '(node.podCount > 1 ? node.labels[?"k"].orValue("") : "a") == "a"',
        "cel.bind(k, node.name, node.podCount > 0 || pod.labels[?k].hasValue())",
        'pod.labels.all(k, cel.bind(l, k + "", node.labels[?l].orValue("a") == "a"))',
        "pod.labels.exists(k, cluster.pods.exists(p, k in p.labels) && node.podCount < 2)",
    ]
)


EXPRESSIONS = Expressions(INT_LEAVES, BOOL_LEAVES, DOUBLE_LEAVES)
INTS, DOUBLES, BOOLS = EXPRESSIONS.ints(2), EXPRESSIONS.doubles(2), EXPRESSIONS.bools(2)
REASONS = st.sampled_from(["no", "on ${node.name}", "has ${node.podCount}", "of ${pod.priority}", "${a}"])
LOOPS = st.sampled_from(
    [
        "@",
        'for lx, ly in pod.labels where lx != ly { let lc = a + lx.size() @ require lc > 3 else "${lx} ${ly}" }',
        'for lx in pod.labels { let ly = lx + "" require node.labels[?ly].orValue("a") == "a" else "no ${ly}" @ }',
        'for lt in node.taints where lt.effect == "NoSchedule" { require pod.tolerates(lt) else "taint ${lt.key}" }',
        'for lt in node.taints { @ require node.podCount < 2 else "taint ${lt.key}" }',
        "for lx in pod.labels where node.podCount > lx.size() { @ }",
        'for li in [1, 2, 1] { require li != node.podCount else "has ${li}" require li != 2 else "two" }',
        'for lx in pod.labels { for lt in node.taints { require lt.key != lx else "${lx} ${lt.key}" } @ }',
    ]
)


@st.composite
def predicates(draw: st.DrawFn) -> str:
    lines = [draw(st.sampled_from(["", "report all"])), f"let a = {draw(INTS)}", f"let b = {draw(BOOLS)}"]
    if draw(st.booleans()):
        lines.append(f'on error reject "{draw(REASONS)}"')
    for _ in range(draw(st.integers(1, 3))):
        condition = draw(st.one_of(BOOLS, st.just("b || a > 3")))
        require = f'require {condition} else "{draw(REASONS)}"'
        lines.append(draw(LOOPS).replace("@", require))
    return "\n".join(lines)


@st.composite
def scores(draw: st.DrawFn) -> str:
    lines = [f"let a = {draw(INTS)}", f"let d = {draw(DOUBLES)}"]
    if draw(st.booleans()):
        lines.append(f"ignore when {draw(BOOLS)}")
    lines.append(f"value {draw(st.one_of(INTS, DOUBLES, st.sampled_from(['a', 'a * 2 - a', 'd + d'])))}")
    return "\n".join(lines)


SMALL = st.integers(0, 3)
LABELS = st.lists(
    st.sampled_from([("k", "a"), ("k", "b"), ("j", "a"), ("a", "a"), ("n", "7"), ("n", "x")]), max_size=3
).map(lambda pairs: FrozenMap(dict(pairs)))
AMOUNTS = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from([0, 1, 500, 2000, 2**63 - 1]),
        "memory": st.sampled_from([0, 1, 2**53 + 1, 2**63 - 1]),
    }
).map(Resources)
NODES = st.builds(
    NodeFacts,
    st.just("n"),
    labels=LABELS,
    unschedulable=st.booleans(),
    taints=st.sampled_from(
        [(), (Taint("t", "", "NoSchedule"),), (Taint("k", "", "NoExecute"), Taint("t", "", ""))]
    ),
    allocatable=AMOUNTS,
    image_sizes=st.dictionaries(st.sampled_from(["i:1", "j:1"]), SMALL, max_size=2).map(FrozenMap),
)
PODS = st.builds(
    PodInfo,
    st.sampled_from(["p1", "p2", "p3", "p4"]),
    st.sampled_from(["x", "y"]),
    labels=LABELS,
    priority=SMALL,
    tolerations=st.sampled_from([(), (Toleration("t", "Exists", "", ""),)]),
    host_ports=st.sampled_from([(), (HostPort("0.0.0.0", "TCP", 80),)]),
    images=st.lists(st.sampled_from(["i:1", "j:1"]), max_size=2).map(tuple),
    requests=AMOUNTS,
    usage=AMOUNTS,
    node_name=st.sampled_from([f"n{number}" for number in range(6)]),
)
CLUSTERS = st.tuples(st.lists(NODES, min_size=12, max_size=14), st.lists(PODS, max_size=6))


def _nodes(found: tuple[list[NodeFacts], list[PodInfo]]) -> NodeSet:
    nodes, pods = found
    named = [replace(facts, name=f"n{number}") for number, facts in enumerate(nodes)]
    return NodeSet.all(cluster(named, pods).snapshot())


@settings(deadline=None, max_examples=40)
@given(predicates(), CLUSTERS, st.lists(PODS, min_size=1, max_size=2))
def test_verdicts_are_the_same(
    body: str, found: tuple[list[NodeFacts], list[PodInfo]], pods: list[PodInfo]
) -> None:
    program, nodes = predicate_program(body, FNS), _nodes(found)
    for pod in pods:
        columns, scalar = both_verdicts(program, pod, nodes)
        assert columns == scalar


@settings(deadline=None, max_examples=40)
@given(scores(), CLUSTERS, st.lists(PODS, min_size=1, max_size=2))
@example("value double(-9223372036854775807 - 1)", ([NodeFacts("n")] * 12, []), [PodInfo("p1")])
def test_scores_are_the_same(
    body: str, found: tuple[list[NodeFacts], list[PodInfo]], pods: list[PodInfo]
) -> None:
    program, nodes = score_program(body, FNS), _nodes(found)
    for pod in pods:
        columns, scalar = both_scores(program, pod, nodes)
        assert columns == scalar


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
        *('int(node.labels[?"n"].value())', 'int(pod.labels[?"n"].value())'),
        'topology("k").count(p, true).here(node)',
        "topology('k').count(p, 1 / p.priority > 0).total()",
    ]
)
LISTS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
OVER_LISTS = st.sampled_from(
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


@settings(deadline=None, max_examples=60)
@given(LISTS, LISTS, OVER_LISTS, PARTS, CLUSTERS, PODS)
def test_lists_of_failing_items(
    first: str,
    second: str,
    macro: str,
    part: str,
    found: tuple[list[NodeFacts], list[PodInfo]],
    pod: PodInfo,
) -> None:
    nodes = _nodes(found)
    lets = f"let l = {first}\nlet m = {second}\nlet v = {macro.replace('@', part)}\n"
    columns, scalar = both_scores(score_program(f"{lets}ignore when v == 3\nvalue v"), pod, nodes)
    assert columns == scalar
    body = 'require v > 0 else "${v}"\nfor x in l { let y = v + x require y != 3 else "is ${y}" }'
    verdicts, one_by_one = both_verdicts(predicate_program(lets + body), pod, nodes)
    assert verdicts == one_by_one
