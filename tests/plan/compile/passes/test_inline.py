"""Inlined calls: the same values, and hoisting reaches the inside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.rule_set import CheckedRequire
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import CallFn, CallOf, TypedExpr, Var
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.ir import free_slots
from kdsl.eval.values import EvalError
from kdsl.plan.compile.passes.inline import inline_calls, substitute
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope

from tests.plan.lab import DEFAULT_QUEUE, node, rules

FNS = """
fn words(text: string): list(string) = text.split(",").filter(word, word != "")
fn listed(entries: map(string, string), key: string): list(string) = words(entries[?key].orValue(""))
fn allows(entries: map(string, string), key: string, name: string): bool =
  listed(entries, key).size() == 0 || listed(entries, key).exists(word, word == name)
fn twice(name: string): list(string) = ["a", "b"].map(word, ["c"].map(inner, inner + word + name)).flatten()
fn share(count: int): int = 1 / count
"""


def inlined(condition: str) -> tuple[TypedExpr, TypedExpr, RuleScope]:
    """Return a condition as checked and as inlined, and the scope of its rule."""
    profile = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q predicates {{ P }} }}'
    found = rules(f'{FNS}\npredicate P {{ require {condition} else "no" }}\n{profile}')
    rule = found.profiles["t.p"].predicates[0]
    (statement,) = rule.body
    assert isinstance(statement, CheckedRequire)
    scope = RuleScope(rule.scope, rule.params, rule.slots, CompiledFunctions(found.fns))
    names = {variable.slot for variable in rule.scope.values()}
    return statement.condition, inline_calls(statement.condition, found.fns, names, scope.variable), scope


def value(expr: TypedExpr, scope: RuleScope, **names: Any) -> Any:
    run = scope.compile(expr)
    frame = scope.new_frame()
    for name, each in names.items():
        frame[scope.slot_of(name)] = each
    try:
        return run(frame)
    except EvalError as error:
        return error.message


@pytest.mark.parametrize(
    "condition",
    [
        'allows(pod.annotations, "use", node.name)',
        "twice(node.name).size() == 2 && twice(pod.name) == twice(node.name)",
        "share(node.podCount) > 0",
        '[1].exists(i, allows(pod.annotations, "use", node.name))',
    ],
)
@pytest.mark.parametrize("annotations", [{}, {"use": "x,n"}, {"use": "x"}])
def test_values_stay(condition: str, annotations: dict[str, str]) -> None:
    names = {"pod": PodInfo("p", annotations=FrozenMap(annotations)), "node": NodeInfo.of(node("n"))}
    written, changed, scope = inlined(condition)
    _, _, other = inlined(condition)
    assert not any(isinstance(part, CallFn) and part.fn == "t.allows" for part in walk(changed))
    assert value(changed, scope, **names) == value(written, other, **names)


def test_parts_that_depend_on_the_pod_are_hoisted_out_of_a_function() -> None:
    written, changed, scope = inlined('allows(pod.annotations, "use", node.name)')

    def calls(expr: TypedExpr) -> list[str]:
        return [part.fn for part in walk(scope.optimised(expr)) if isinstance(part, CallFn)]

    assert calls(written) == ["t.allows"]
    # The list of the pod is made once: the rest for each node calls no function any more.
    assert calls(changed) == []


def test_arguments_that_may_fail_stay_calls() -> None:
    _, changed, _ = inlined("share(1 / node.podCount) > 0")
    assert [part.fn for part in walk(changed) if isinstance(part, CallFn)] == ["t.share"]


def test_variables_of_a_body_are_new_each_time() -> None:
    _, changed, _ = inlined("twice(pod.name) == twice(node.name)")
    slots = [variable.slot for part in walk(changed) for variable in getattr(part, "variables", ())]
    assert len(slots) == 4 and len(set(slots)) == 4
    assert not free_slots(changed) & set(slots)


def test_an_unchanged_expression_stays_the_same_object() -> None:
    written, _, scope = inlined('node.name == "a" && pod.tolerations.exists(t, t.key == pod.name)')
    slots = {name: scope.slot_of(name) for name in ("pod", "node")}
    name = next(part for part in walk(written) if isinstance(part, Var) and part.name == "pod")
    assert isinstance(written, CallOf)
    test, loop = written.args
    put = substitute(written, {slots["pod"]: replace(name, slot=99)}, scope.variable)
    assert isinstance(put, CallOf)
    assert put.args[0] is test and put.args[1] is not loop
    # A loop always gets its own variable.
    assert substitute(test, {}, scope.variable) is test
    assert substitute(loop, {}, scope.variable) is not loop
