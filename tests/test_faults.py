"""Faults are reported: the same ones in every back end, with and without memos, and in every report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from kdsl.app import Settings, check_text
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.check.model.rule_set import RuleSet
from kdsl.check.model.typed import TypedExpr
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.eval.scalar import Closure
from kdsl.hooks.faults import Fault, merged
from kdsl.plan.columns import batch
from kdsl.plan.memo import answers as answers_module
from kdsl.sim.run import simulate
from kdsl.sim.workload import Workload

HEAD = """kdsl 1
package t
queue Q { order by pod.priority desc, pod.queuedAt }
predicate Any { require node.name != "nobody" else "nobody" }
score Nothing { value 0 }
"""
TAIL = """
profile p {
  scheduler "default-scheduler"
  queue Q
  predicates { Any PREDICATES }
  scores { SCORES }
}
"""


def rules_of(text: str, predicates: str = "", scores: str = "Nothing weight 1", queue: str = "Q") -> RuleSet:
    tail = (
        TAIL.replace("PREDICATES", predicates).replace("queue Q", f"queue {queue}").replace("SCORES", scores)
    )
    checked = check_text(Path("t.kdsl"), f"{HEAD}{text}{tail}")
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


def node(name: str, **labels: str) -> NodeFacts:
    allocatable = Resources({"cpu": 64_000, "memory": 2**36, "pods": 110})
    return NodeFacts(name, labels=FrozenMap(labels), allocatable=allocatable)


def pod(name: str, **labels: str) -> PodInfo:
    return PodInfo(name, uid=name, scheduler_name="default-scheduler", labels=FrozenMap(labels))


def decided(
    rules: RuleSet, nodes: Sequence[NodeFacts], pods: Sequence[PodInfo], **settings: Any
) -> list[Decision]:
    workload = Workload(tuple(nodes), (), tuple(pods))
    return list(simulate(rules, workload, Settings(percentage=100, **settings)).decisions)


def shown(decisions: Sequence[Decision]) -> list[list[str]]:
    return [[str(fault) for fault in decision.faults] for decision in decisions]


class _Watching:
    """A probe that looks away."""

    def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
        return closure


WAYS: Mapping[str, Mapping[str, Any]] = {
    "one worker": {},
    "four workers": {"parallelism": 4},
}
COSTS = ("cheap", "5", "7", "dear", "9")

CASES: Mapping[str, tuple[str, str, str]] = {
    "value": ('score S { value int(node.labels[?"cost"].orValue("1")) normalize reverse }', "", "S weight 1"),
    "plain value": ('score S { value int(node.labels[?"cost"].orValue("1")) }', "", "S weight 1"),
    "value of a pod": (
        'score S { value int(node.labels[?"cost"].orValue("1")) + int(pod.labels[?"team"].orValue("1")) }',
        "",
        "S weight 1",
    ),
    "value over doubles": (
        'score S { value double(node.labels[?"cost"].orValue("1")) normalize max }',
        "",
        "S weight 1",
    ),
    "usage": (
        'score S { value int(node.labels[?"cost"].orValue("1")) * 0 + node.podCount normalize reverse }',
        "",
        "S weight 1",
    ),
    "ignore when": (
        'score S { ignore when int(node.labels[?"cost"].orValue("1")) > 8 value 3 normalize max }',
        "",
        "S weight 1",
    ),
    "normalize by": (
        "score S { value node.podCount normalize by 10 / (value - min) }",
        "",
        "S weight 1",
    ),
    "score applies when": (
        'score S { applies when int(pod.labels[?"team"].orValue("1")) > 0 value 3 }',
        "",
        "S weight 1",
    ),
    "applies when": (
        'predicate P { applies when int(pod.labels[?"team"].orValue("1")) > 0 '
        'require node.name != "x" else "x" }',
        "P",
        "Nothing weight 1",
    ),
    "applies when of nodes": (
        'predicate P { applies when int(node.labels[?"cost"].orValue("1")) > 0 '
        'require node.name != "x" else "x" }',
        "P",
        "Nothing weight 1",
    ),
    "require": (
        'predicate P { require int(node.labels[?"cost"].orValue("1")) > 0 else "x" }',
        "P",
        "Nothing weight 1",
    ),
    "report all": (
        'predicate P { report all require node.name != "n2" else "n2" '
        'require int(node.labels[?"cost"].orValue("1")) > 0 else "x" }',
        "P",
        "Nothing weight 1",
    ),
    "require of the pod": (
        'predicate P { require int(pod.labels[?"team"].orValue("1")) > 0 else "x" }',
        "P",
        "Nothing weight 1",
    ),
    "loop": (
        'predicate P { for c in ["cost"] where int(node.labels[?c].orValue("1")) > 0 '
        '{ require node.labels[?c].orValue("") != "0" else "x" } }',
        "P",
        "Nothing weight 1",
    ),
    "let read twice": (
        'predicate P { report all let cost = int(node.labels[?"cost"].orValue("1")) '
        'require cost > 0 else "x" require cost > 1 else "y" }',
        "P",
        "Nothing weight 1",
    ),
    "let of applies and require": (
        'predicate P { let cost = int(node.labels[?"cost"].orValue("1")) applies when cost > 0 '
        'require node.name == "n0" || cost > 5 else "x" }',
        "P",
        "Nothing weight 1",
    ),
    "let of a loop": (
        'predicate P { report all let cost = int(node.labels[?"cost"].orValue("1")) '
        'for each in [1, 2] where cost > 0 { require cost > each else "x" } require cost > 6 else "y" }',
        "P",
        "Nothing weight 1",
    ),
    "let of ignore and value": (
        'score S { let cost = int(node.labels[?"cost"].orValue("1")) ignore when cost > 8 '
        "value cost normalize max }",
        "",
        "S weight 1",
    ),
    "let of a let": (
        'predicate P { let cost = int(node.labels[?"cost"].orValue("1")) let more = cost + 1 '
        'require more > 0 else "x" }',
        "P",
        "Nothing weight 1",
    ),
    "second of two": (
        'predicate A { require node.labels[?"cost"].orValue("") != "cheap" else "cheap" }\n'
        'predicate P { applies when int(node.labels[?"cost"].orValue("1")) > 0 '
        'require node.name != "x" else "x" }',
        "A P",
        "Nothing weight 1",
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("columns", [False, True])
def test_faults_are_the_same_in_every_back_end_and_from_every_memo(
    name: str, columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, predicates, scores = CASES[name]
    nodes = [node(f"n{at}", cost=cost) for at, cost in enumerate(islice(cycle(COSTS), 12))]
    pods = [pod(f"p{at}", team=team) for at, team in enumerate(["1", "x", "1", "x", "1", "x", "1", "x"])]
    # A probe sees each rule as it is written: node by node, and nothing is kept.
    expected = decided(rules_of(text, predicates, scores), nodes, pods, probe=_Watching())
    assert any(decision.faults for decision in expected)
    if columns:
        for module in (batch, answers_module):
            monkeypatch.setattr(module, "MIN_ROWS", 1)
    for way, settings in WAYS.items():
        found = decided(rules_of(text, predicates, scores), nodes, pods, **settings)
        assert shown(found) == shown(expected), way
        assert [each.node for each in found] == [each.node for each in expected], way
    # Equal pods on equal nodes: the fault is told of every one of them.
    per_pod = [sorted(fault.key for fault in decision.faults) for decision in expected]
    if name not in ("normalize by",):
        assert per_pod[:2] * 4 == per_pod


def test_a_score_that_fails_names_its_nodes_its_cause_and_its_place() -> None:
    text, predicates, scores = CASES["value"]
    nodes = [node(f"n{at}", cost=cost) for at, cost in enumerate(COSTS)]
    (decision,) = decided(rules_of(text, predicates, scores), nodes, [pod("p")])
    assert decision.outcome is Outcome.PLACED
    assert decision.faults == (
        Fault("S", "cannot convert 'cheap' to int", "t.kdsl:6:17", nodes=2, first=("n0", "n3")),
    )


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("let ")])
def test_a_let_that_several_expressions_read_fails_once_on_a_node(name: str) -> None:
    text, predicates, scores = CASES[name]
    nodes = [node(f"n{at}", cost=cost) for at, cost in enumerate(COSTS)]
    (decision,) = decided(rules_of(text, predicates, scores), nodes, [pod("p")])
    (fault,) = decision.faults
    assert (fault.message, fault.nodes, fault.first) == ("cannot convert 'cheap' to int", 2, ("n0", "n3"))
    assert fault.site == f"t.kdsl:6:{text.index('int(') + 1}"


def test_a_fault_on_many_nodes_is_one() -> None:
    text, predicates, scores = CASES["require"]
    nodes = [node(f"n{at}", cost=f"dear{at}") for at in range(500)]
    (decision,) = decided(rules_of(text, predicates, scores), nodes, [pod("p")])
    assert decision.faults == (
        Fault("P", "cannot convert 'dear0' to int", "t.kdsl:6:23", nodes=500, first=("n0", "n1", "n2")),
    )


def test_a_rule_that_expects_its_error_has_no_fault() -> None:
    text = 'predicate P { on error reject "bad" require int(node.labels[?"cost"].orValue("1")) > 0 else "x" }'
    decisions = decided(rules_of(text, "P"), [node("n", cost="dear")], [pod("p")])
    assert [(each.faults, each.rejections[0].reason) for each in decisions] == [((), "bad")]


def test_an_error_that_aborts_is_a_fault_with_its_place() -> None:
    text = 'predicate P { on error abort require int(node.labels[?"cost"].orValue("1")) > 0 else "x" }'
    (decision,) = decided(rules_of(text, "P"), [node("n", cost="dear")], [pod("p")])
    assert decision.outcome is Outcome.ERROR
    assert [(each.source, each.site) for each in decision.faults] == [("P", "t.kdsl:6:38")]
    text = 'score S { on error abort value int(node.labels[?"cost"].orValue("1")) }'
    nodes = [node("n0"), node("n1", cost="dear")]
    (decision,) = decided(rules_of(text, scores="S weight 1"), nodes, [pod("p")])
    assert decision.outcome is Outcome.ERROR
    assert decision.faults == (Fault("S", "cannot convert 'dear' to int", "t.kdsl:6:32", 1, ("n1",)),)


def test_admission_that_fails_is_a_fault() -> None:
    text = 'queue R { admit when int(pod.labels[?"x"].orValue("1")) > 0 else "no" order by pod.queuedAt }'
    rules = rules_of(text)
    rules = (
        check_text(
            Path("t.kdsl"),
            f"{HEAD}{text}\nscore N {{ value 0 }}\n"
            'profile p { scheduler "default-scheduler" queue R scores { N weight 1 } }',
        ).rules
        or rules
    )
    decisions = decided(rules, [node("n")], [pod("a", x="y"), pod("b", x="y"), pod("c", x="1")])
    assert [(each.outcome, [fault.source for fault in each.faults]) for each in decisions] == [
        (Outcome.GATED, ["R"]),
        (Outcome.GATED, ["R"]),
        (Outcome.PLACED, []),
    ]


def test_merged_faults_have_the_nodes_of_all() -> None:
    one, other = Fault("S", "a", "t:1:1").on(["n1"]), Fault("S", "b", "t:1:1").on(["n2", "n1"], 7)
    assert merged((one, other, Fault("T", "a"))) == (
        Fault("S", "a", "t:1:1", 8, ("n1", "n2")),
        Fault("T", "a"),
    )


@pytest.mark.parametrize("how", ["", "unresolvable "])
def test_what_went_wrong_before_a_rule_rejected_the_pod_is_a_fault(how: str) -> None:
    """Where no node can pass, PreFilter ends with the rule."""
    applies = 'applies when int(pod.labels[?"team"].orValue("1")) > 0'
    text = f'predicate P {{ {applies} require pod.priority > 5 else {how}"low" }}'
    (decision,) = decided(rules_of(text, "P"), [node("n")], [pod("p", team="x")])
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert [(each.source, each.message) for each in decision.faults] == [("P", "cannot convert 'x' to int")]
