"""Loose expressions, outside any rule: for `kdsl eval`, rule tests and the conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kdsl.check.model.rule_set import ExternalFn
from kdsl.check.model.traversal import frame_size
from kdsl.check.model.typed import TypedExpr
from kdsl.eval.scalar.meter import POD_STEPS, Meter
from kdsl.eval.values import Value
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope

Expression = Callable[[Sequence[Value]], Value]
MeteredExpression = Callable[[Sequence[Value], Meter], Value]


def compile_expression(expr: TypedExpr, fns: Mapping[str, ExternalFn] = {}) -> Expression:
    """Compile an expression that was checked in an `Environment`, through the passes of rules.

    `fns` are the functions and fields of plugins that it may call. The result takes the values of the
    environment's variables in their order; EvalError if it has no value.
    """
    compute = compile_metered(expr, fns)
    return lambda values: compute(values, Meter.of(POD_STEPS))


def compile_metered(expr: TypedExpr, fns: Mapping[str, ExternalFn] = {}) -> MeteredExpression:
    """Compile an expression as `compile_expression` does; it takes its steps from the given meter."""
    size = frame_size(expr)
    scope = RuleScope({}, (), size, CompiledFunctions(fns))
    closure = scope.compile(expr)
    blank = scope.new_frame()

    def evaluate(values: Sequence[Value], meter: Meter) -> Value:
        # Slots after the last variable that is read belong to the compiler.
        read = values[:size]
        return closure([*read, *blank[len(read) : -1], meter])

    return evaluate
