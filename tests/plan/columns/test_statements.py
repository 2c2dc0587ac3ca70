"""Statements over columns: order of failures, loops, errors, reasons, and steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.scalar.meter import Steps
from kdsl.eval.values import Value
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns import statements
from kdsl.plan.columns.fallback import Fallback
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.rules.predicate import PredicateRule

from tests.plan.columns.both import both_verdicts, cluster, predicate_program
from tests.plan.lab import node

TAINTS = [(), (Taint("t", "", "NoSchedule"),), (Taint("t", "", "NoSchedule"), Taint("u", "", "NoExecute"))]
NODES = NodeSet.all(
    cluster(
        [
            node(f"n{at}", cpu=at * 500, labels={"k": "ab"[at % 2]} if at % 3 else {}, taints=TAINTS[at % 3])
            for at in range(15)
        ],
        [PodInfo(f"p{at}", node_name=f"n{at}") for at in range(0, 15, 2)],
    ).snapshot()
)
POD = PodInfo("p", labels=FrozenMap({"k": "a", "j": "b"}), priority=2)
USAGE = 'require node.podCount >= 0 else "never"'


@pytest.mark.parametrize(
    "body",
    [
        'require node.podCount == 0 else "has ${node.podCount}"',
        f'report all\n{USAGE}\nfor i in [1, 2, 1] {{ require node.podCount != i else "has ${{i}}" require i != 2 else "two" }}',
        'for k, v in pod.labels { let w = v + "" require node.labels[?k].orValue(w) == w else "${k} is not ${w}" }\n' + USAGE,
        'report all\nfor t in node.taints { require t.key == "u" else "taint ${t.key}" }\nrequire node.podCount == 0 else "full"',
        # The first line leaves all nodes to the scalar back end.
        'report all\nrequire node.podCount > 5 else "on ${node.name}"\nrequire node.podCount == 0 else "used"',
        'for t in node.taints where node.podCount / (node.podCount - 1) == 0 { require false else "${t.key}" }',
        'for t in node.taints { let w = node.labels[?"k"].orValue("") + t.key require w != "at" else "${w}" }',
        USAGE + '\nfor t in node.taints { let w = node.labels[?"k"].orValue("") + t.key require w != "at" else "${w}" }',
        'on error reject "cannot say for ${node.name}"\nrequire 1 / node.podCount == 1 else "no"',
        'on error reject "cannot say for ${node.name}"\nfor i in [0, 1] where 1 / i == 1 { require node.podCount == i else "${i}" }',
        'on error reject "at ${node.name}"\nrequire node.labels[?"k"].value() == "a" else "no"',
        'let a = 10 / node.podCount\nlet b = a + a\nrequire node.podCount == 0 || b > 20 else "${b}"',
        # Lists that turn out to be the same for all nodes.
        'let some = [1, 2].filter(i, node.podCount >= 0)\nrequire some.size() + node.podCount < 3 && some.exists_one(i, i == 1) else "no"',
        'let none = [1, 2].filter(i, node.podCount < i - 9)\nrequire none.size() == node.podCount && !none.exists_one(i, true) else "no"',
        'require [1, 2].exists_one(i, node.podCount >= 0 && i == 2) && [3].exists_one(i, node.podCount == 0) else "no"',
        'let some = [1, 2].map(i, node.podCount >= 0, i * 2)\nrequire some.transformList(at, i, at + i).sum() > 6 + node.podCount else "no"',
        'require pod.labels.all(k, cluster.pods.exists(p, k in p.labels) || node.podCount == 0) else "no"',
    ],
)  # fmt: skip
def test_both_back_ends_answer_the_same(body: str) -> None:
    columns, scalar = both_verdicts(predicate_program(body), POD, NODES)
    assert columns == scalar
    assert len(set(map(str, scalar))) > 1


@pytest.mark.parametrize("body", ["is ? 9 : n", "9", "is || n > 0 ? 1 : 9"])
def test_a_call_fails_with_an_argument_that_its_body_does_not_read(body: str) -> None:
    rule = 'require given(node.podCount < 9, 1 / node.podCount) > 7 - node.podCount else "no"'
    program = predicate_program(rule, f"fn given(is: bool, n: int): int = {body}")
    columns, scalar = both_verdicts(program, POD, NODES)
    assert columns == scalar
    assert len(set(map(str, scalar))) > 1


def test_a_rule_about_few_facts_runs_once_per_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    program = predicate_program('require node.taints.all(t, pod.tolerates(t)) else "no"')
    asked, original = [0], PredicateRule.scalar_statuses

    def counted(self: PredicateRule, frame: Frame, nodes: Iterable[Value], *rest: Any) -> Value:
        found = list(nodes)
        asked[0] += len(found)
        return original(self, frame, found, *rest)

    monkeypatch.setattr(PredicateRule, "scalar_statuses", counted)
    program.statuses_in(program.begin(POD, ClusterView(NODES.snapshot)), NODES, StatusNumbers())
    assert asked == [len(TAINTS)]


def test_a_loop_without_a_column_form_runs_once_per_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"""{USAGE}
    for t in node.taints {{ let w = node.labels[?"k"].orValue("") + t.key require w != "at" else "${{w}}" }}
    """
    asked = [0]

    def counting(closure: Closure, *rest: Any) -> Fallback:
        def counted(frame: Frame) -> Value:
            asked[0] += 1
            return closure(frame)

        return Fallback(counted, *rest)

    monkeypatch.setattr(statements, "Fallback", counting)
    columns, scalar = both_verdicts(predicate_program(body), POD, NODES)
    assert columns == scalar
    # Three lists of taints, and labels `a`, `b` or none of them: not all combinations occur.
    assert 3 <= asked[0] <= 9 < len(NODES)


@pytest.mark.parametrize("steps", [1, 5, 20, 60, 200])
def test_a_rule_runs_out_of_steps_as_in_the_scalar_back_end(steps: int) -> None:
    body = """
    let n = pod.labels.map(k, pod.labels.map(j, node.podCount + k.size()).sum()).sum()
    require n > 4 || twice(twice(n)) > 3 else "few"
    for k in pod.labels { require [1, 2, 3].exists(i, i == node.podCount + k.size()) else "not" }
    """
    program = predicate_program(body, "fn twice(n: int): int = n * 2", Steps(node=steps))
    columns, scalar = both_verdicts(program, POD, NODES)
    assert columns == scalar


def test_a_chain_of_lets_is_lowered_once_each() -> None:
    lets = "\n".join(f"let a{at + 1} = a{at} + a{at}" for at in range(40))
    body = f'let a0 = node.podCount\n{lets}\nrequire a40 >= 0 && a20 != 7 else "no"'
    columns, scalar = both_verdicts(predicate_program(body), POD, NODES)
    assert columns == scalar


def test_deep_nesting_is_left_to_the_scalar_back_end() -> None:
    deep = "node.podCount" + " + 1" * 150
    columns, scalar = both_verdicts(predicate_program(f'require {deep} > 150 else "no"'), POD, NODES)
    assert columns == scalar
