"""Bounds of a rule's cost: once per pod, and for every node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kdsl.analysis.cost.expressions import Estimator, Measured
from kdsl.analysis.cost.formula import ZERO, Formula, total
from kdsl.analysis.cost.shapes import shape_of_value
from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedPredicate,
    CheckedPreemption,
    CheckedQueue,
    CheckedRequire,
    CheckedScore,
    CheckedStatement,
    CheckedTemplate,
    Fns,
    WrittenRule,
)
from kdsl.check.model.typed import TypedExpr
from kdsl.check.views.view import Views
from kdsl.eval.ir import Known
from kdsl.plan.compile.passes.fold import fold_constants
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope

PODS_OF_A_NODE = "node.pods"
"""The size that is the number of pods on a node."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The number of operations in the worst case; `per_node` applies to every node that a rule visits."""

    per_pod: Formula
    per_node: Formula

    @property
    def names(self) -> frozenset[str]:
        """The sizes that it depends on."""
        return self.per_pod.names | self.per_node.names


def cost_of(rule: WrittenRule, fns: Fns, views: Views) -> Cost | None:
    """Return the cost of a rule without its tightenings; None for a plugin."""
    if isinstance(rule, CheckedPredicate | CheckedScore) and rule.plugin:
        return None
    analysis = _Analysis(rule, fns, views)
    match rule:
        case CheckedPredicate():
            per_node = analysis.predicate(rule)
        case CheckedScore():
            per_node = analysis.score(rule)
        case CheckedQueue():
            return Cost(analysis.per_pod + analysis.queue(rule), ZERO)
        case CheckedPreemption():
            per_node = analysis.preemption(rule)
    return Cost(analysis.per_pod, per_node)


class _Analysis:
    """A walk over a rule in the order of compilation; the cost per pod adds up separately."""

    def __init__(self, rule: WrittenRule, fns: Fns, views: Views) -> None:
        self._scope = RuleScope(rule.scope, rule.params, rule.slots, CompiledFunctions(fns))
        names = rule.scope if isinstance(rule, CheckedPreemption) else ("pod", "node", "cluster", "feasible")
        for name in names:
            self._scope.slot_of(name)
        self._estimator = Estimator(fns, views, self._scope.lasting)
        for param in rule.params:
            _, self._estimator.shapes[param.variable.slot] = self._measure(param.value)

    @property
    def per_pod(self) -> Formula:
        return self._estimator.per_pod

    def predicate(self, rule: CheckedPredicate) -> Formula:
        # As in the compiler, `let`s are lazy, and statements before the first `require` may use them.
        cost = total(self._let(each) for each in rule.body if isinstance(each, CheckedLet))
        cost += total(self._cost(condition) for condition in rule.applies)
        if rule.narrow is not None:
            names, shape = self._measure(rule.narrow.names)
            cost += names + shape.size + self._template(rule.narrow.reason)
        on_error = rule.on_error.reason if rule.on_error else None
        in_error = ZERO if on_error is None else self._template(on_error)
        body = [each for each in rule.body if not isinstance(each, CheckedLet)]
        return cost + self._statements(body, in_error)

    def score(self, rule: CheckedScore) -> Formula:
        cost = total(map(self._let, rule.lets))
        cost += total(self._cost(condition) for condition in (*rule.applies, *rule.ignores))
        cost += self._cost(rule.value)
        return cost if rule.normalize.by is None else cost + self._cost(rule.normalize.by)

    def queue(self, rule: CheckedQueue) -> Formula:
        cost = total(map(self._let, rule.lets))
        cost += total(self._cost(admit.condition) + self._template(admit.reason) for admit in rule.admit)
        return cost + total(self._cost(key.value) for key in rule.order)

    def preemption(self, rule: CheckedPreemption) -> Formula:
        """Return the cost of a node in preemption: each pod may be a victim, and the node is ranked.

        Eligibility and the number of candidates are evaluated once per pod.
        """
        lets = total(map(self._let, rule.lets))
        once = total(self._cost(each.condition) + self._template(each.reason) for each in rule.eligible)
        if rule.candidates is not None:
            once += self._cost(rule.candidates)
        self._estimator.per_pod += lets + once
        victim = self._cost(rule.victim) + total(self._cost(key.value) for key in rule.order)
        rank = total(self._cost(key.value) for key in rule.choose)
        return Formula.size(PODS_OF_A_NODE) * (lets + victim + 1) + lets + rank

    def _statements(self, body: Iterable[CheckedStatement], in_error: Formula) -> Formula:
        cost = ZERO
        for statement in body:
            match statement:
                case CheckedLet():
                    cost += self._let(statement)
                case CheckedRequire():
                    reason = self._template(statement.reason).larger(in_error)
                    cost += self._cost(statement.condition) + reason
                    if self._scope.is_lasting(statement.condition):
                        # It may fail before any node is visited.
                        self._estimator.per_pod += reason
                case CheckedForEach():
                    cost += self._for_each(statement, in_error)
        return cost

    def _for_each(self, loop: CheckedForEach, in_error: Formula) -> Formula:
        slots = tuple(variable.slot for variable in loop.variables)
        is_lasting = self._scope.is_lasting(loop.iterable) and self._scope.is_lasting(loop.where, bound=slots)
        cost, ranged = self._measure(loop.iterable)
        self._estimator.bind(loop.variables, ranged)
        where = ZERO if loop.where is None else self._cost(loop.where)
        listing = cost + ranged.size * (where + 1)
        body = self._statements(loop.body, in_error)
        each = ranged.size * (body + in_error + 1)
        if not is_lasting:
            return listing + each
        self._estimator.per_pod += listing
        return each

    def _let(self, let: CheckedLet) -> Formula:
        """Declare a `let`, and return its cost per node or loop item."""
        cost, self._estimator.shapes[let.variable.slot] = self._measure(let.value)
        self._scope.let(let)
        return cost

    def _template(self, template: CheckedTemplate) -> Formula:
        return total(map(self._cost, template.holes))

    def _cost(self, expr: TypedExpr) -> Formula:
        return self._measure(expr)[0]

    def _measure(self, expr: TypedExpr) -> Measured:
        folded = fold_constants(expr, self._scope)
        if isinstance(folded, Known):
            return ZERO, shape_of_value(folded.value)
        return self._estimator.measure(folded)
