"""Functions of whole numbers that are looked up: the same values, errors and steps as without."""

from __future__ import annotations

import pytest
from kdsl.check.model import CheckedRequire
from kdsl.plan.scalar.meter import Meter
from kdsl.plan.scope import Functions, RuleScope
from kdsl.plan.values import EvalError

from tests.plan.lab import DEFAULT_QUEUE, rules

FNS = """
fn sum(numbers: list(int), limit: int): int = numbers.map(n, n < limit ? n : limit).sum()
fn twice(limit: int, numbers: list(int)): int = sum(numbers, limit) + sum(numbers, limit)
fn share(count: int): int = [count].map(n, 10 / n).sum()
"""


def compiled(expression: str) -> tuple[RuleScope, object]:
    profile = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q predicates {{ P }} }}'
    found = rules(f'{FNS}\npredicate P {{ require {expression} == 0 else "no" }}\n{profile}')
    rule = found.profiles["t.p"].predicates[0]
    (statement,) = rule.body
    assert isinstance(statement, CheckedRequire)
    scope = RuleScope(rule.scope, rule.params, rule.slots, Functions.of(found.fns))
    return scope, scope.closure(statement.condition.args[0])  # type: ignore[attr-defined]  # the left of `==`


class Counted:
    """A node that says how many pods it has."""

    def __init__(self, pods: int) -> None:
        self.pod_count = pods


@pytest.mark.parametrize("expression", ["twice(node.podCount, [1, 5, 9])", "share(node.podCount)"])
def test_a_second_call_is_like_the_first(expression: str) -> None:
    scope, run = compiled(expression)
    frame = scope.new_frame()

    def ask(pods: int) -> tuple[object, int]:
        frame[scope.slot_of("node")] = Counted(pods)
        frame[-1] = meter = Meter(100)
        try:
            return run(frame), meter.left  # type: ignore[operator]
        except EvalError as error:
            return error.message, meter.left

    first = [ask(pods) for pods in (5, 0, 7)]
    assert [ask(pods) for pods in (5, 0, 7)] == first
    assert len({value for value, _ in first}) == 3
    frame[scope.slot_of("node")] = Counted(5)
    frame[-1] = Meter(1)
    with pytest.raises(EvalError, match="more than 1 steps"):
        run(frame)  # type: ignore[operator]
