"""Bounds of an expression's cost, in operations, and of the size of its value.

An operation is one operator, call, field, item of a list or map literal, item of a macro, or step of the
meter in `kdsl.eval.scalar.meter`: no run spends more steps than the formula. Expressions are taken as
compiled: constants are folded, and parts that do not depend on the node count once per pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from kdsl.analysis.cost.formula import ONE, UNBOUNDED, ZERO, Formula, total
from kdsl.analysis.cost.results import cost_of_search, shape_of_result
from kdsl.analysis.cost.shapes import (
    SCALAR,
    Shape,
    is_text,
    largest,
    shape_of_field,
    shape_of_value,
    shape_up_to,
)
from kdsl.check.model.rule_set import ExternalFn, Fns
from kdsl.check.model.typed import (
    Aggregate,
    Bind,
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    ListOf,
    Macro,
    MapOf,
    TypedExpr,
    Var,
)
from kdsl.check.views.view import Views
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar.fast import is_total
from kdsl.eval.scalar.logic import LAZY
from kdsl.eval.scalar.meter import has_weight
from kdsl.eval.scalar.searches import SEARCHES

Measured = tuple[Formula, Shape]
"""The cost of an expression, and the shape of its value."""

PODS_OF_THE_CLUSTER = "cluster.pods"
"""The size that is the number of pods on all nodes."""

_CONDITIONS = frozenset((Macro.ALL, Macro.EXISTS, Macro.EXISTS_ONE))


class Estimator:
    """The estimates of expressions that share variables; `shapes` are the shapes of the variables by slot.

    The cost of parts that depend on `lasting` slots only goes to `per_pod`; they are one operation where they
    are used. `bodies` caches functions by the shapes of their arguments.
    """

    def __init__(
        self,
        fns: Fns,
        views: Views,
        lasting: set[int] | None = None,
        bodies: dict[tuple[str, tuple[Shape, ...]], Measured] | None = None,
    ) -> None:
        self.shapes: dict[int, Shape] = {}
        self.per_pod = ZERO
        self._fns = fns
        self._views = views
        self._lasting = lasting
        self._bodies = {} if bodies is None else bodies

    def measure(self, expr: TypedExpr) -> Measured:
        """Return the cost of an expression per evaluation, and the shape of its value."""
        # One frame for a level, and at most two for its kind: `MAX_DEPTH` levels have to fit Python's stack.
        outer = self._lasting
        is_lasting = (
            outer is not None
            and not isinstance(expr, (Const, Var))
            and expr.time.is_lasting
            and free_slots(expr) <= outer
        )
        if is_lasting:
            self._lasting = None
        match expr:
            case Const(value=value):
                found = ZERO, shape_of_value(value)
            case Var(slot=slot):
                found = ZERO, self.shapes.get(slot, SCALAR)
            case FieldOf(operand=operand, view=view, field=field, type=type_):
                found = self.cost(operand) + 1, shape_of_field(self._views, view, field, type_)
            case HasField(operand=operand):
                found = self.cost(operand) + 1, SCALAR
            case KeyOf(operand=operand):
                cost, shape = self.measure(operand)
                found = cost + 1, SCALAR if expr.test else shape.inside
            case CallOf():
                found = self._call(expr)
            case CallFn():
                found = self._call_fn(expr)
            case ListOf(items=items):
                cost, shapes = self._all([item.value for item in items])
                cost += total(shape.weight for shape in shapes) + len(items)
                found = cost, Shape(Formula.of(len(items)), largest(shapes))
            case MapOf(entries=entries):
                key_cost, keys = self._all([entry.key for entry in entries])
                cost, values = self._all([entry.value for entry in entries])
                cost += total(shape.weight for shape in values) + len(entries)
                found = key_cost + cost, Shape(Formula.of(len(entries)), largest(values), largest(keys))
            case Comprehension():
                found = self._comprehension(expr)
            case Aggregate():
                found = self._aggregate(expr)
            case Bind():
                value_cost, self.shapes[expr.variable.slot] = self.measure(expr.value)
                cost, shape = self.measure(expr.body)
                found = value_cost + cost + 1, shape
        if not is_lasting:
            return found
        self._lasting = outer
        self.per_pod += found[0]
        return ONE, found[1]

    def cost(self, expr: TypedExpr) -> Formula:
        """Return the cost of an expression."""
        return self.measure(expr)[0]

    def _aggregate(self, expr: Aggregate) -> Measured:
        """Return the cost of a count: a look-up. Its body runs once for every pod, when counting begins."""
        cost, _ = self.measure(expr.target)
        self.per_pod += Formula.size(PODS_OF_THE_CLUSTER) * (self.cost(expr.body) + 1)
        return cost + 1, SCALAR

    def _all(self, exprs: Sequence[TypedExpr]) -> tuple[Formula, list[Shape]]:
        measured = list(map(self.measure, exprs))
        return total(cost for cost, _ in measured), [shape for _, shape in measured]

    def _call(self, expr: CallOf) -> Measured:
        if expr.function == "_?_:_":
            (test, _), (then, first), (otherwise, second) = map(self.measure, expr.args)
            return test + then.larger(otherwise) + 1, first.larger(second)
        cost, shapes = self._all(expr.args)
        visited = self._views.costs.get(expr.function)
        cost += ONE if visited is None else prod(map(Formula.size, visited), start=ONE)
        result = shape_of_result(expr, shapes)
        is_metered = expr.function not in LAZY and not is_total(expr)
        if is_metered and has_weight(expr.function, (arg.type for arg in expr.args)):
            cost += total(shape.weight for shape in shapes)
            if is_text(expr.type) or expr.type.name in ("list", "dyn"):
                cost += result.size
        if expr.function in SEARCHES:
            cost += cost_of_search(expr, shapes)
        return cost, result

    def _call_fn(self, expr: CallFn) -> Measured:
        cost, shapes = self._all(expr.args)
        fn, key = self._fns[expr.fn], (expr.fn, tuple(shapes))
        if isinstance(fn, ExternalFn):
            # The plugin declares its cost, but not the size of its result.
            return cost + fn.cost + 1, shape_up_to(expr.type, UNBOUNDED)
        if key not in self._bodies:
            inner = Estimator(self._fns, self._views, bodies=self._bodies)
            inner.shapes = {param.slot: shape for param, shape in zip(fn.params, shapes, strict=True)}
            self._bodies[key] = inner.measure(fn.body)
        body, result = self._bodies[key]
        return cost + body + 1, result

    def _comprehension(self, expr: Comprehension) -> Measured:
        cost, ranged = self.measure(expr.iterable)
        self.bind(expr.variables, ranged)
        each = ONE if expr.where is None else self.cost(expr.where) + 1
        body_cost, body = self.measure(expr.body)
        cost += ranged.size * (each + body_cost)
        match expr.macro:
            case macro if macro in _CONDITIONS:
                return cost, SCALAR
            case Macro.FILTER:
                return cost, Shape(ranged.size, ranged.keys)
            case Macro.TRANSFORM_MAP_ENTRY:
                result = Shape(ranged.size * body.size, body.item, body.key)
            case Macro.TRANSFORM_MAP:
                result = Shape(ranged.size, body, self.shapes[expr.variables[0].slot])
            case _:
                result = Shape(ranged.size, body)
        # It pays for all that it holds.
        return cost + result.weight, result

    def bind(self, variables: Sequence[Var], ranged: Shape) -> None:
        """Set the shapes of the variables of a macro or `for`."""
        if len(variables) == 1:
            self.shapes[variables[0].slot] = ranged.keys
        else:
            first, second = variables
            self.shapes[first.slot], self.shapes[second.slot] = ranged.key or SCALAR, ranged.inside
