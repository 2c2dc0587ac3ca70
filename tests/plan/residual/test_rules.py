"""Residual rules for a pod with priority 2 and the labels `a: x` and `b: y`."""

from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.plan.compile.pre_filter import split_body

from tests.plan.columns.both import cluster
from tests.plan.lab import node
from tests.plan.residual.left import checked_predicate, checked_score, left_of_predicate, left_of_score, lines
from tests.plan.residual.test_any_rule import assert_same_scores, assert_same_verdicts

POD = PodInfo("p", priority=2, labels=FrozenMap({"a": "x", "b": "y"}))
NODES = [node(f"n{at}", labels={"a": "x", "k": "ab"[at % 2]} if at % 3 else {}) for at in range(14)]
WANTING = PodAffinityTerm("k", 0, LabelSelector(), frozenset({"default"}), None)
PLACED = [
    PodInfo(f"q{at}", node_name=f"n{at % 5}", priority=at % 4, required_affinity=(WANTING,) * (at % 2))
    for at in range(7)
]
FNS = """
fn holds(n: Node, key: string, value: string): bool = n.labels[?key].orValue("") == value
fn twice(n: int): int = n + n
fn either(n: int, wanted: int): int = wanted > 1 ? n + wanted : 0
fn weighed(weight: int, first: int, second: int): int = second * weight + first
fn near(pod: Pod, c: Cluster): int = c.requiredAffinityTerms.count(t, t.matches(pod)).total()
"""
BEHIND = 'require node.podCount < 9 else "full"'

PREDICATES = {
    "what holds goes, what fails stays where it was decided": (
        """
        require pod.priority > 1 else "low"
        require pod.priority > 2 else "not high: ${pod.priority}"
        require node.podCount > 0 || pod.priority == 2 else "none"
        require node.podCount > 0 && pod.priority == 3 else unresolvable "never"
        """,
        ["require false else not high: ${2}", "require false else never"],
    ),
    "a loop over what the pod says becomes its body, each `let` once per item": (
        """
        for i, k in ["a", "b"] where k in pod.labels && i < 1 {
          let wanted = pod.labels[k] + "!"
          let found = node.labels[?k].orValue("-")
          require found + "!" == wanted else "${i}: ${wanted} is not ${found}"
        }
        """,
        [
            'let found = node.labels[?"a"].orValue("-")',
            'require ((found + "!") == "x!") else ${0}: ${"x!"} is not ${found}',
        ],
    ),
    "of a loop over known items those remain that it chooses": (
        'for x in [1, 2, 3] where x != pod.priority { require x != node.podCount else "is ${x}" }',
        ["require (1 != node.podCount) else is ${1}", "require (3 != node.podCount) else is ${3}"],
    ),
    "a loop whose items are chosen by nodes stays": (
        'for x in [1, 2, 3] where x < node.podCount { require x * 2 != twice(pod.priority) else "is ${x}" }',
        [
            "for x in (1, 2, 3) where (x < node.podCount)",
            "  require ((x * 2) != 4) else is ${x}",
        ],
    ),
    "under `report all` a loop stays": (
        'report all\nfor x in [1, pod.priority] { require x != node.podCount else "is ${x}" }',
        ["for x in (1, 2)", "  require (x != node.podCount) else is ${x}"],
    ),
    "a loop over pairs of a map stays": (
        'for k, v in pod.labels { require holds(node, k, v) else "no ${k}" }',
        [
            "for k, v in FrozenMap({'a': 'x', 'b': 'y'})",
            "  require t.holds(node, k, v) else no ${k}",
        ],
    ),
    "conditions for all nodes go, those that nodes decide stay theirs": (
        f"applies when pod.priority > 1\napplies when node.podCount > 0 || pod.priority > 1\n{BEHIND}",
        ["applies when true", "require (node.podCount < 9) else full"],
    ),
    "names are known": (
        f'narrow to optional.of(pod.labels.map(k, "n-" + k)) else "others"\n{BEHIND}',
        [
            "narrow to Optional(value=('n-a', 'n-b'), present=True)",
            "require (node.podCount < 9) else full",
        ],
    ),
    "what has no value stays, for who asks fails": (
        'let e = 1 / (pod.priority - 2)\nrequire node.podCount > e else "no"\nrequire pod.priority < 9 || e > 1 else "no"',
        ["let e = (1 / 0)", "require (node.podCount > e) else no"],
    ),
    "a question is asked as it was, whoever is called by another name": (
        """
        let me = pod
        let most = pod.priority
        require cluster.requiredAffinityTerms.count(t, t.matches(me)).here(node) < most else "no"
        require topology("k").count(p, p.priority > most).here(node) < 9 else "no"
        """,
        [
            "require (cluster.requiredAffinityTerms.count(t, t.matches(pod)).here(node) < 2) else no",
            'require (bind(v1, 2, cluster.topology("k").count(p, (p.priority > v1))).here(node) < 9) else no',
        ],
    ),
    "a `let` that is a constant by itself is part of a question": (
        """
        let least = 1
        let most = pod.priority
        for t in ["k"] { let n = 3 require topology(t).count(p, p.priority > least + n).here(node) < most else "" }
        """,
        ['require (cluster.topology("k").count(p, (p.priority > 4)).here(node) < 2) else '],
    ),
    "what a call is given is computed before its body, in order": (
        """
        require weighed(2, 1 / node.podCount, node.labels[?"k"].value().size()) > 2 else "no"
        """,
        [
            'require (bind(v1, (1 / node.podCount), bind(v2, node.labels[?"k"].value().size(), ((v2 * 2) + v1))) > 2) else no',
        ],
    ),
    "functions that count stay, also as arguments": (
        'require twice(near(pod, cluster)) == 0 && holds(node, "k", "a") else "no"',
        ['require ((t.twice(t.near(pod, cluster)) == 0) && (node.labels[?"k"].orValue("") == "a")) else no'],
    ),
}

SCORES = {
    "what is read once stands where it is read": (
        "let x = node.podCount * 2\nlet y = pod.priority - 2\nvalue y > 0 ? x : x + y",
        ["let x = (node.podCount * 2)", "value x"],
    ),
    "a list of counts becomes counts": (
        """
        let counts = ["a", "b"].filter(k, k in pod.labels).map(k, topology(k).count(p, p.priority > pod.priority))
        value counts.map(c, c.here(node)).sum() + counts.size()
        """,
        [
            'let v1 = bind(v2, 2, cluster.topology("a").count(p, (p.priority > v2)))',
            'let v3 = bind(v4, 2, cluster.topology("b").count(p, (p.priority > v4)))',
            "value ((v1.here(node) + v3.here(node)) + [v1, v3].size())",
        ],
    ),
    "what is left out counts as nothing": (
        'value ["a", "b"].map(k, k in node.labels, k == "a" ? 1 : node.podCount).sum()',
        ['value ((("a" in node.labels) ? 1 : 0) + (("b" in node.labels) ? node.podCount : 0))'],
    ),
    "a sum of doubles begins with zero": (
        "let x = double(node.podCount) * -0.0\nvalue 1.0 / ([x].sum() + 1.0) + [x, x, 2.0].sum() + [1.0, -1.0].sum()",
        [
            "let x = (double(node.podCount) * -0.0)",
            "value (((1.0 / ((0.0 + x) + 1.0)) + (((0.0 + x) + x) + 2.0)) + 0.0)",
        ],
    ),
    "of three whole numbers the sum may be too large before the last one fails": (
        "value [9223372036854775807, node.podCount, 1 / node.podCount].sum()",
        ["value [9223372036854775807, node.podCount, (1 / node.podCount)].sum()"],
    ),
    "a list that may fail is read as a whole": (
        "let l = [1 / node.podCount, 7]\nvalue l.map(x, pod.priority).sum()",
        ["let v1 = (1 / node.podCount)", "value [v1, 7].map(x, 2).sum()"],
    ),
    "of one thing it is the thing": (
        "let l = [1 / node.podCount]\nignore when l.exists(x, x > 1)\nvalue l.map(x, x * 3).sum()",
        ["let v1 = (1 / node.podCount)", "ignore when (v1 > 1)", "value (v1 * 3)"],
    ),
    "a function may be given what fails, if it asks that first": (
        "let x = 1 / node.podCount\nvalue twice(x) + either(x, 1) + either(x, 2) + twice(x * 2)",
        [
            "let x = (1 / node.podCount)",
            "value ((((x + x) + bind(v1, x, 0)) + (x + 2)) + t.twice((x * 2)))",
        ],
    ),
    "of what may fail nothing is taken for granted": (
        "let l = [1 / node.podCount]\nvalue l.exists(x, node.podCount == 0 || x > 1) ? 1 : 0",
        [
            "let v1 = (1 / node.podCount)",
            "value ([v1].exists(x, ((node.podCount == 0) || (x > 1))) ? 1 : 0)",
        ],
    ),
    "conditions and normalisation": (
        "applies when pod.priority > 0\napplies when feasible.size() > pod.priority\n"
        "ignore when pod.priority > 5\nvalue node.podCount\nnormalize by max - value + 2 * 2",
        [
            "applies when (feasible.size() > 2)",
            "ignore when false",
            "value node.podCount",
            "normalize by ((max - value) + 4)",
        ],
    ),
    "a parameter is its value, one without a value fails who reads it": (
        "param a = 2\nparam b = 1 / 0\nvalue a > 1 ? node.podCount * a : b",
        ["value (node.podCount * 2)"],
    ),
}


def _snapshot() -> NodeSet:
    return NodeSet.all(cluster(NODES, PLACED).snapshot())


@pytest.mark.parametrize(("body", "expected"), PREDICATES.values(), ids=PREDICATES)
def test_predicates(body: str, expected: list[str]) -> None:
    rule, functions = checked_predicate(body, FNS)
    nodes = _snapshot()
    assert lines(left_of_predicate(rule, functions, POD, nodes.snapshot)) == [
        each.replace('"', "'") for each in expected
    ]
    assert_same_verdicts(rule, functions, POD, nodes)


@pytest.mark.parametrize(("body", "expected"), SCORES.values(), ids=SCORES)
def test_scores(body: str, expected: list[str]) -> None:
    rule, functions = checked_score(body, FNS)
    nodes = _snapshot()
    assert lines(left_of_score(rule, functions, POD, nodes.snapshot)) == [
        each.replace('"', "'") for each in expected
    ]
    assert_same_scores(rule, functions, POD, nodes)


def test_conditions_on_nodes_are_not_decided_before_them() -> None:
    body = """
    require pod.priority > 1 else "early"
    require node.podCount < 9 && pod.priority > 5 else "late"
    require pod.priority > 6 else "later"
    """
    rule, functions = checked_predicate(body)
    early, late = split_body(left_of_predicate(rule, functions, POD))
    assert early == [] and [each.reason.parts for each in late] == [("late",), ("later",)]


def test_an_error_has_its_place_in_the_text() -> None:
    rule, functions = checked_predicate('require pod.priority > 0 ? 1 / node.podCount > 0 : true else "no"')
    left = left_of_predicate(rule, functions, POD)
    assert left.body[0].condition.span == rule.body[0].condition.span
