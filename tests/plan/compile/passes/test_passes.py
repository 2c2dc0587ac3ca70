from __future__ import annotations

from kdsl.check.model.rule_set import CheckedPredicate, CheckedRequire
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import CallOf, Var
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.ir import Known
from kdsl.eval.values import EvalError
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.compile.passes import PASSES
from kdsl.plan.compile.passes.capture import capture
from kdsl.plan.compile.passes.fold import fold_constants
from kdsl.plan.compile.passes.hoist import hoist_lasting
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.rules.predicate import PredicateRule

from tests.plan.lab import DEFAULT_QUEUE, node, nodes_of, rules

FUNCTIONS = CompiledFunctions({})


def rule(body: str) -> CheckedPredicate:
    profile = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q predicates {{ P }} }}'
    return rules(f"predicate P {{\n{body}\n}}\n{profile}").profiles["t.p"].predicates[0]


def condition(checked: CheckedPredicate) -> tuple[CheckedRequire, RuleScope]:
    (statement,) = checked.body
    assert isinstance(statement, CheckedRequire)
    return statement, RuleScope(checked.scope, checked.params, checked.slots, FUNCTIONS)


def test_the_passes_in_order() -> None:
    assert (fold_constants, capture, hoist_lasting) == PASSES


def test_fold_computes_constant_parts() -> None:
    statement, scope = condition(
        rule(
            """
            param names = ["a", "b"]
            require node.name in names.map(n, n + "!") || 1 + 1 > node.podCount else ""
            """
        )
    )
    folded = fold_constants(statement.condition, scope)
    known = [part.value for part in walk(folded) if isinstance(part, Known)]
    assert ("a!", "b!") in known and 2 in known
    assert not any(isinstance(part, CallOf) and part.function == "_+_" for part in walk(folded))


def test_fold_leaves_errors_where_they_are() -> None:
    statement, scope = condition(rule('require node.podCount > 1 || 1 / 0 > 1 else ""'))
    folded = fold_constants(statement.condition, scope)
    assert any(isinstance(part, CallOf) and part.function == "_/_" for part in walk(folded))


def test_hoist_takes_the_largest_part_known_from_the_pod() -> None:
    statement, scope = condition(
        rule('require node.podCount > pod.tolerations.filter(t, t.key == "k").size() + pod.priority else ""')
    )
    hoisted = hoist_lasting(statement.condition, scope)
    assert isinstance(hoisted, CallOf)
    assert isinstance(hoisted.args[1], Var) and hoisted.args[1].name == ""


def test_hoist_leaves_comparisons_that_take_no_longer_than_a_variable() -> None:
    statement, scope = condition(rule('require node.podCount > 0 || pod.phase == "x" else ""'))
    assert hoist_lasting(statement.condition, scope) == statement.condition


def test_hoist_leaves_parts_that_depend_on_a_loop_variable() -> None:
    statement, scope = condition(rule('require pod.tolerations.exists(t, t.key + "x" == node.name) else ""'))
    hoisted = hoist_lasting(statement.condition, scope)
    assert any(isinstance(part, CallOf) and part.function == "_+_" for part in walk(hoisted))


class Counting:
    """A pod that counts how often its priority is read."""

    def __init__(self) -> None:
        self.reads = 0

    @property
    def priority(self) -> int:
        self.reads += 1
        return 3


def test_parts_that_depend_on_the_pod_are_computed_once_for_all_nodes() -> None:
    program = PredicateRule(
        rule(
            """
            let twice = pod.priority * 2
            for x in [1, 2] where x < pod.priority + 10 {
              require node.podCount < twice + x else "${twice}"
            }
            """
        ),
        FUNCTIONS,
    )
    pod, nodes = Counting(), nodes_of(*(node(f"n{at}") for at in range(20)))
    ids = program.scalar_statuses(program.begin(pod, None), nodes.nodes(), StatusNumbers())
    assert list(ids) == [0] * 20
    # Once for `twice`, once for `pod.priority + 10`.
    assert pod.reads == 2


def test_a_hoisted_part_that_is_not_reached_does_not_fail() -> None:
    program = PredicateRule(
        rule('require node.podCount == 0 || 1 / (pod.priority - pod.priority) > 0 else ""'), FUNCTIONS
    )
    nodes = nodes_of(node("a"))
    assert list(
        program.scalar_statuses(program.begin(PodInfo("p"), None), nodes.nodes(), StatusNumbers())
    ) == [0]


def test_an_error_of_a_parameter_is_an_error_of_its_users() -> None:
    statement, scope = condition(rule('param broken = 1 / 0\nrequire node.podCount > broken else ""'))
    closure = scope.compile(statement.condition)
    frame = scope.new_frame()
    frame[scope.slot_of("node")] = next(nodes_of(node("a")).nodes())
    try:
        closure(frame)
    except EvalError as error:
        assert error.message == "division by zero"
    else:
        raise AssertionError("no error")
