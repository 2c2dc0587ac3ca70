"""Partial evaluation of expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import (
    Aggregate,
    Bind,
    CallFn,
    CallOf,
    Comprehension,
    Const,
    ListOf,
    Macro,
    TypedExpr,
    TypedItem,
    Var,
)
from kdsl.check.model.types import BOOL, DOUBLE, Type
from kdsl.eval.ir import EAGER, Known, free_slots, map_children, operands, with_args
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value
from kdsl.plan.compile.budget import LEAST_NODE_STEPS
from kdsl.plan.compile.passes.capture import capture
from kdsl.plan.compile.passes.fold import fold_constants
from kdsl.plan.compile.passes.inline import is_plain, substitute
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.compile.stability import is_stable
from kdsl.plan.residual.lists import bound, known_items, list_of
from kdsl.plan.residual.order import asks_first, fails_only_with

MAX_ITEMS: Final = 16
"""Lists of more items stay lists."""
MAX_WORK: Final = 4096
"""The most expressions that are visited for one rule and signature."""
LARGE: Final = 4
"""The part (1 in `LARGE`) of the least steps that a residual rule may save. One that saves more is not used:
the rule itself may run out of steps, and must then do so.
"""
LOOPS: Final = 16
"""The assumed number of items of a loop that stays, for counting steps."""

_ORDERLY: Final = 2
"""The most integers whose sum may be reordered: with more, it may overflow before the last operand fails."""

_RESULTS: Final = (Macro.MAP, Macro.TRANSFORM_LIST)
"""Macros that make a list of results."""
_OPEN: Final = frozenset(
    {
        *("Cluster", "Node", "AnyNode", "Pod", "PlacedPod"),
        *("Topology", "TopologyCount", "PodTerms", "PodTermCount", "dyn"),
    }
)
"""Types whose values read the cluster, or may hold such values: they cannot be constants."""


class TooMuch(Exception):  # noqa: N818 - no error: the rule stays as it is
    """A rule is too large to be worth rewriting."""


def prepared(expr: TypedExpr, scope: RuleScope) -> TypedExpr:
    """Return an expression ready for a `Folder`.

    The inputs of questions are captured before any becomes a constant: the question is part of the key of a
    count, which must be the rule's own.
    """
    return capture(fold_constants(expr, scope), scope)


class Folder:
    """Rewrites the expressions of one rule for one signature. `filled` are the pod and the cluster by slot,
    `node` is the slot of the node.

    `known` are variables by slot with a simple value: constants, other variables, lists of those. Raises
    TooMuch if there is too much to visit or to compute.
    """

    def __init__(
        self, scope: RuleScope, functions: CompiledFunctions, filled: Mapping[int, Value], node: int
    ) -> None:
        self._scope = scope
        self._functions = functions
        self._filled = filled
        # Variables that always have a value.
        self._named = {*filled, node}
        self._work = 0
        # The steps that the residual rule saves.
        self._saved, self._most = 0, min(functions.steps.node, LEAST_NODE_STEPS) // LARGE
        self.known: dict[int, TypedExpr] = {}

    def fold(self, expr: TypedExpr) -> TypedExpr:
        """Return the residual expression, with the same value or error."""
        self._work += 1
        if self._work > MAX_WORK:
            raise TooMuch
        if isinstance(expr, Const):
            return expr
        if isinstance(expr, Var):
            return self.known.get(expr.slot, expr)
        value = self._constant(expr) if self._is_fixed(expr) else None
        if value is not None:
            return value
        match expr:
            case Aggregate():
                return self._aggregate(expr)
            case CallOf(function="_&&_" | "_||_") if all(each.type == BOOL for each in operands(expr)):
                return self._connected(expr, map(self.fold, operands(expr)), expr.function == "_||_")
            case CallOf(function="_?_:_", args=(condition, yes, no)):
                decided = self.fold(condition)
                if isinstance(decided, Const) and decided.type == BOOL:
                    return self.fold(yes if decided.value else no)
                return with_args(expr, (decided, self.fold(yes), self.fold(no)))
            case CallOf():
                return self._call(with_args(expr, tuple(map(self.fold, expr.args))))
            case CallFn():
                return self._fn_call(with_args(expr, tuple(map(self.fold, expr.args))))
            case Comprehension():
                return self._comprehension(expr)
        return map_children(expr, self.fold)

    def substituted(self, expr: TypedExpr, by: Mapping[int, TypedExpr]) -> TypedExpr:
        """Return a copy of an expression with some variables replaced, and with new variables of its own."""
        return substitute(expr, by, self._scope.variable)

    def variable(self, expr: TypedExpr) -> Var:
        """Return a new variable that stands for an expression."""
        return self._scope.variable(expr)

    def save(self, steps: int) -> None:
        """Count steps that the residual rule saves."""
        self._saved += steps
        if self._saved > self._most:
            raise TooMuch

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Fold, inside this context, parts that run once per item of a loop."""
        before = self._saved
        yield
        self.save((self._saved - before) * (LOOPS - 1))

    def _is_fixed(self, expr: TypedExpr) -> bool:
        """Return whether an expression depends only on the pod, the catalog and constants."""
        if not is_stable(expr) or not _is_closed(expr.type):
            return False
        return all(
            slot in self._filled or isinstance(self.known.get(slot), Const) for slot in free_slots(expr)
        )

    def _constant(self, expr: TypedExpr) -> Known | None:
        slots = free_slots(expr) & self.known.keys()
        if slots:
            expr = self.substituted(expr, {slot: self.known[slot] for slot in slots})
        meter = Meter(self._most - self._saved)
        value: Known | None = None
        with suppress(EvalError):
            value = Known.of(expr, self._scope.evaluate_for(expr, self._filled, meter))
        # If the steps ran out, there is no value.
        self.save(meter.limit - meter.left)
        return value

    def _aggregate(self, expr: Aggregate) -> Aggregate:
        """Fold the inputs of a count; the question stays, except for names of the pod."""
        slots = free_slots(expr.body) & self.known.keys()
        body = self.substituted(expr.body, {slot: self.known[slot] for slot in slots}) if slots else expr.body
        target = self.fold(expr.target)
        is_same = target is expr.target and body is expr.body
        return expr if is_same else replace(expr, target=target, body=body)

    def _connected(self, expr: TypedExpr, parts: Iterable[TypedExpr], decider: bool) -> TypedExpr:
        left: list[TypedExpr] = []
        for part in parts:
            if not isinstance(part, Const):
                left.append(part)
            elif part.value is decider:
                return Known.of(expr, decider, BOOL)
        if not left:
            return Known.of(expr, not decider, BOOL)
        function, overload = ("_||_", "logical_or") if decider else ("_&&_", "logical_and")
        whole, *others = left
        for other in others:
            whole = CallOf(
                type=BOOL,
                time=max(whole.time, other.time),
                reads=whole.reads | other.reads,
                span=expr.span,
                function=function,
                args=(whole, other),
                overload=overload,
            )
        return whole

    def _call(self, expr: CallOf) -> TypedExpr:
        if expr.args and all(isinstance(arg, Const) for arg in expr.args) and _is_closed(expr.type):
            return self._constant(expr) or expr
        match expr.overload, expr.args:
            case "add_int64", (Const(value=0), other):
                return other
            case "add_int64" | "subtract_int64", (other, Const(value=0)):
                return other
            case "add_list", (left, right):
                parts = [known_items(left), known_items(right)]
                if parts[0] is not None and parts[1] is not None:
                    return list_of(expr, expr.type, (*parts[0], *parts[1]))
            case "list_sum_int" | "list_sum_double", (ListOf(items=items),) if not any(
                item.optional for item in items
            ):
                return self._added(expr, [item.value for item in items])
            case "list_sum_int" | "list_sum_double", (Comprehension() as chosen,):
                padded = self._padded(chosen)
                if padded is not None:
                    return self._call(replace(expr, args=(padded,)))
            case "index_list", (ListOf(items=(TypedItem(value=only, optional=False),)), Const(value=0)):
                return only
        return expr

    def _added(self, expr: CallOf, summands: list[TypedExpr]) -> TypedExpr:
        if expr.type == DOUBLE:
            # The sum begins with zero, which makes 0.0 of -0.0.
            summands = [Known.of(expr, 0.0), *summands]
        elif not 0 < len(summands) <= _ORDERLY:
            return expr
        self.save(len(summands))
        whole, *others = summands
        for other in others:
            overload = "add_double" if expr.type == DOUBLE else "add_int64"
            addition = replace(expr, function="_+_", overload=overload, args=(whole, other), member=False)
            whole = self._call(addition)
        return whole

    def _fn_call(self, expr: CallFn) -> TypedExpr:
        """Replace a call of a function by its body if its arguments are simple.

        One of them may be a variable that fails, if the body reads it first: the call fails with it as well.
        Others are computed before a body that constants simplify.
        """
        fn = self._functions.fns[expr.fn]
        # A count inside would be known by another question.
        if not isinstance(fn, CheckedFn) or any(isinstance(part, Aggregate) for part in walk(fn.body)):
            return expr
        args = {param.slot: arg for param, arg in zip(fn.params, expr.args, strict=True)}
        unsure = [slot for slot, arg in args.items() if not is_plain(arg, self._named)]
        match [args[slot] for slot in unsure]:
            case []:
                body = self.fold(self.substituted(fn.body, args))
            case [Var(slot=slot)] if asks_first(found := self.fold(self.substituted(fn.body, args)), slot):
                body = found
            case _ if any(isinstance(arg, Const) for arg in expr.args):
                body = self._with_computed(fn, args, unsure)
            case _:
                return expr
        self.save(1)
        return body

    def _with_computed(self, fn: CheckedFn, args: dict[int, TypedExpr], unsure: Iterable[int]) -> TypedExpr:
        """Return the body of a function; some arguments are computed before it."""
        computed = [(self.variable(args[slot]), args[slot]) for slot in unsure]
        variables = [variable for variable, _ in computed]
        self._named.update([variable.slot for variable in variables])
        whole = self.fold(self.substituted(fn.body, {**args, **dict(zip(unsure, variables, strict=True))}))
        for variable, value in reversed(computed):
            whole = Bind(
                type=whole.type,
                time=max(whole.time, value.time),
                reads=whole.reads | value.reads,
                span=whole.span,
                variable=variable,
                value=value,
                body=whole,
                macro=EAGER,
            )
        return whole

    def _comprehension(self, expr: Comprehension) -> TypedExpr:
        iterable = self.fold(expr.iterable)
        items = known_items(iterable) if expr.iterable.type.name == "list" else None
        if items is not None and len(items) <= MAX_ITEMS:
            unrolled = self._unrolled(expr, items)
            if unrolled is not None:
                self.save(len(items))
                return unrolled
        self._named.update(variable.slot for variable in expr.variables)
        with self.loop():
            where = None if expr.where is None else self.fold(expr.where)
            body = self.fold(expr.body)
        return replace(expr, iterable=iterable, where=where, body=body)

    def _unrolled(self, expr: Comprehension, items: Sequence[TypedExpr]) -> TypedExpr | None:
        """Return a macro over some items without the macro; None if there is no such form."""
        match expr.macro:
            case Macro.ALL | Macro.EXISTS if expr.body.type == BOOL and self._is_forced(expr, items):
                parts = (self._of_item(expr.body, expr, place, item) for place, item in enumerate(items))
                return self._connected(expr, parts, expr.macro is Macro.EXISTS)
            case Macro.MAP | Macro.TRANSFORM_LIST if self._is_forced(expr, items):
                chosen = self._chosen(expr, expr.where, items)
                if chosen is not None:
                    bodies = tuple([self._of_item(expr.body, expr, *each) for each in chosen])
                    return list_of(expr, expr.type, bodies)
            case Macro.FILTER:
                chosen = self._chosen(expr, expr.body, items)
                if chosen is not None and (self._are_sure(items) or len(chosen) == len(items)):
                    return list_of(expr, expr.type, tuple([item for _, item in chosen]))
            case _:
                pass
        return None

    def _is_forced(self, expr: Comprehension, items: Sequence[TypedExpr]) -> bool:
        """Return whether the result for each item fails if an item does, with its error: a macro over a list
        fails with the first failing item, whatever the results for the others.
        """
        if self._are_sure(items):
            return True
        if expr.where is not None:
            return False
        slot = expr.variables[-1].slot
        is_list = expr.macro in _RESULTS
        return (len(items) == 1 and asks_first(expr.body, slot)) or (
            is_list and fails_only_with(expr.body, slot, self._named)
        )

    def _are_sure(self, items: Iterable[TypedExpr]) -> bool:
        return all(
            isinstance(item, Const) or (isinstance(item, Var) and item.slot in self._named) for item in items
        )

    def _padded(self, expr: Comprehension) -> TypedExpr | None:
        """Return a list of numbers with an equal sum, with zeros for omitted items; None if impossible."""
        items, where = known_items(expr.iterable), expr.where
        if items is None or len(items) > MAX_ITEMS or where is None or expr.macro not in _RESULTS:
            return None
        if not self._are_sure(items):
            return None
        (type_,) = expr.type.args
        zero = Known.of(expr, 0.0 if type_ == DOUBLE else 0, type_)
        summands: list[TypedExpr] = []
        for place, item in enumerate(items):
            condition = self._of_item(where, expr, place, item)
            body = self._of_item(expr.body, expr, place, item)
            choice = CallOf(
                type=type_,
                time=expr.time,
                reads=expr.reads,
                span=expr.span,
                function="_?_:_",
                args=(condition, body, zero),
                overload="conditional",
            )
            summands.append(self.fold(choice))
        return list_of(expr, expr.type, tuple(summands))

    def _chosen(
        self, expr: Comprehension, condition: TypedExpr | None, items: Sequence[TypedExpr]
    ) -> list[tuple[int, TypedExpr]] | None:
        """Return the items, with their places, for which a condition holds; None if unknown."""
        if condition is None:
            return list(enumerate(items))
        chosen: list[tuple[int, TypedExpr]] = []
        for place, item in enumerate(items):
            holds = self._of_item(condition, expr, place, item)
            if not isinstance(holds, Const) or holds.type != BOOL:
                return None
            if holds.value:
                chosen.append((place, item))
        return chosen

    def _of_item(self, part: TypedExpr, expr: Comprehension, place: int, item: TypedExpr) -> TypedExpr:
        return self.fold(self.substituted(part, bound(expr.variables, place, item)))


def _is_closed(type_: Type) -> bool:
    return type_.name not in _OPEN and all(map(_is_closed, type_.args))
