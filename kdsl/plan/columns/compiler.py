"""Lowering: checked expressions to closures over columns.

This module decides how an expression is evaluated for many nodes:

1. A part that is the same for all nodes is evaluated once, by the scalar back end.
2. Arithmetic, comparison, logic, macros over lists that all nodes share, and functions of rule files are
   evaluated over whole columns.
3. A part that reads only a few facts of a node is evaluated by the scalar back end, once per distinct
   combination of those facts.
4. Other parts are evaluated by the scalar back end for every node that is still undecided.

3 and 4 are used for the smallest part that has no form of kind 2, so one unusual call does not make a rule
slow. `ColumnScope.scalar_parts` lists those parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from kdsl.check.model.typed import (
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    KeyOf,
    ListOf,
    Macro,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import STRING, UINT, optional_of
from kdsl.eval.ir import operands
from kdsl.eval.scalar import UNSET, Closure
from kdsl.eval.scalar.access import CARDS
from kdsl.eval.scalar.meter import may_be_large
from kdsl.eval.values import EvalError, UInt, Value
from kdsl.eval.views import attribute_of, method_of, wrapper_of
from kdsl.plan.card_table import card_table
from kdsl.plan.columns import items as listed
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.calls import call_over_columns
from kdsl.plan.columns.column import (
    AllBad,
    Cards,
    ColumnsOutOfSteps,
    ColumnValue,
    NotColumnar,
    Numbers,
    Same,
    bad_of,
    either,
    with_bad,
)
from kdsl.plan.columns.fallback import Fallback, NodeMethod, attributes_read
from kdsl.plan.columns.fields import (
    amount_read,
    keyed,
    keyed_fact,
    node_amount,
    node_field,
    pod_count,
    text_or,
)
from kdsl.plan.columns.kernels import EQUALITY, KERNELS
from kdsl.plan.columns.logic import ColumnClosure, choose, conjunction, disjunction
from kdsl.plan.columns.node_items import ITEM_METHODS, ItemCondition, list_field, of_items, over_items
from kdsl.plan.columns.node_pods import is_pods_of, macro_over_pods, sum_over_pods
from kdsl.plan.columns.node_reads import NodeReadsCompiler, unclear
from kdsl.plan.columns.numbers import (
    MAKERS,
    MAX_WIDTH,
    MEASURES,
    NUMBERS,
    numbers_of,
    over_cards,
    over_numbers,
)
from kdsl.plan.columns.scope import ColumnScope, Context, RuleColumns, ScalarPart, is_open, only_bools
from kdsl.plan.columns.tape import recorded

Key = TypeVar("Key")

MAX_DEPTH: Final = 32
"""The deepest nesting for columns; the scalar back end needs fewer Python frames per level."""

_OVER_NUMBERS: Final = frozenset(
    (Macro.ALL, Macro.EXISTS, Macro.EXISTS_ONE, Macro.FILTER, Macro.MAP, Macro.TRANSFORM_LIST)
)


def lower_whole(expr: TypedExpr, rule: RuleColumns) -> ColumnClosure:
    """Lower a whole expression of a rule, such as the value of a score."""
    return recorded(Lowering(rule).lower(expr), rule.tapes, expr.reads)


class Lowering:
    """Lowers one expression tree. `shared` are loop variables with one value for all rows, `captured` the
    slots of macros and functions, which hold columns.
    """

    def __init__(
        self,
        scope: ColumnScope,
        shared: frozenset[int] = frozenset(),
        captured: frozenset[int] = frozenset(),
        depth: int = 0,
    ) -> None:
        self.at = Context(scope, shared, captured)
        self._depth = depth

    def lower(self, expr: TypedExpr) -> ColumnClosure:
        """Compile an expression: of each part the first form of those in the docstring of this module."""
        if isinstance(expr, Const):
            return _constant(expr)
        if not (self.at.captured and self.at.scope.needs(expr) & self.at.captured):
            closure = self.at.scope.shared_closure(expr, self.at.shared)
            if closure is not None:
                return _shared(closure)
        parts = self.at.scope.scalar_parts
        count = len(parts)
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise NotColumnar
            return self._guarded(self._columnar(expr), expr)
        except NotColumnar:
            del parts[count:]
            return self._fallback(expr, parts)
        finally:
            self._depth -= 1

    def _once(
        self, known: dict[Key, tuple[ColumnClosure, int]], key: Key, lower: Callable[[], ColumnClosure]
    ) -> ColumnClosure:
        """Return the closure that was made for a key. `lower` makes it, and again for each deeper place,
        because of `MAX_DEPTH`.
        """
        found = known.get(key)
        if found is None or found[1] < self._depth:
            found = known[key] = lower(), self._depth
        return found[0]

    def _fallback(self, expr: TypedExpr, parts: list[ScalarPart] | None = None) -> ColumnClosure:
        """Leave an expression to the scalar back end, and record it in `parts` if it reads the node."""
        scope, captured, shared = self.at.scope, self.at.captured, self.at.shared
        closure, needs = scope.closure(expr), scope.needs(expr)
        held = {slot: attributes_read(expr, slot) for slot in sorted(needs & captured)}
        if not scope.reads_node(needs):
            return Fallback(closure, expr.type, held)
        reads = NodeReadsCompiler(scope, shared | captured)
        collect = reads.compile(expr)
        if parts is not None:
            part = ScalarPart(expr.span, None if collect is unclear else tuple(reads.facts))
            if part not in parts:
                parts.append(part)
        in_any_case = NodeReadsCompiler(scope, shared).compile(expr) if held else collect
        return Fallback(closure, expr.type, held, scope.slots, (collect, in_any_case))

    def _guarded(self, columnar: ColumnClosure, expr: TypedExpr) -> ColumnClosure:
        """Return `columnar`, with the scalar back end for values without a column form."""
        node = self.at.node
        match expr:
            case Var():
                return columnar
            case FieldOf(operand=Var(slot=slot), field=field) if slot == node and field != CARDS:
                return columnar
        if amount_read(expr, node):
            # Like another field of the node, it has a column for all batches, or for none.
            return columnar
        fallback: ColumnClosure | None = None

        def evaluate(batch: Batch) -> ColumnValue:
            nonlocal fallback
            try:
                return columnar(batch)
            except ColumnsOutOfSteps:
                raise
            except NotColumnar:
                if fallback is None:
                    fallback = self._fallback(expr)
                return fallback(batch)

        return evaluate

    def _columnar(self, expr: TypedExpr) -> ColumnClosure:
        match expr:
            case Var():
                return self._variable(expr)
            case FieldOf(operand=Var(slot=slot), field=field) if slot == self.at.node:
                return self._cards() if field == CARDS else node_field(expr)
            case FieldOf() if wrapper_of(expr.type) is None:
                return listed.field_of(self.lower(expr.operand), attribute_of(expr.field), expr.type)
            case CallOf(function="_&&_" | "_||_"):
                parts = operands(expr)
                only_bools(parts)
                combine = conjunction if expr.function == "_&&_" else disjunction
                return combine([self.lower(part) for part in parts])
            case CallOf(function="_?_:_", args=(condition, yes, no)):
                only_bools([condition])
                return choose(self.lower(condition), self.lower(yes), self.lower(no))
            case CallOf() | KeyOf() if (fact := keyed(expr, self.at.node)) is not None:
                assert fact.key is not None
                return keyed_fact(expr, fact.field, self.lower(fact.key))
            case CallOf(
                function="orValue", args=(CallOf() | KeyOf() as found, Const(value=str(default)))
            ) if found.type == optional_of(STRING) and (fact := keyed(found, self.at.node)) is not None:
                assert fact.key is not None
                return text_or(fact.field, self.lower(fact.key), default)
            case CallOf() if (amount := amount_read(expr, self.at.node)) is not None:
                return node_amount(*amount)
            case CallOf():
                return self._call(expr)
            case CallFn():
                return self._fn_call(expr)
            case Comprehension():
                return self._comprehension(expr)
            case ListOf() if not any(item.optional or may_be_large(item.value.type) for item in expr.items):
                return listed.list_of([self.lower(item.value) for item in expr.items])
        raise NotColumnar

    def _cards(self) -> ColumnClosure:
        """Lower the cards of the node."""
        cards_of = self.at.scope.functions.cards_of

        def read(batch: Batch) -> ColumnValue:
            if batch.snapshot.is_overlay:
                raise NotColumnar
            table = card_table(batch.facts.snapshot, cards_of)
            if table.widest > MAX_WIDTH:
                raise NotColumnar
            return Cards(table, batch.rows)

        return read

    def _variable(self, expr: Var) -> ColumnClosure:
        slot = expr.slot
        if slot in self.at.captured:
            return lambda batch: batch.columns[slot]
        definition = self.at.scope.definitions.get(slot)
        if definition is None:
            raise NotColumnar
        lowered = self.at.scope.lowered
        value = self._once(lowered.lets, (slot, self.at.shared), lambda: self.lower(definition))

        def read(batch: Batch) -> ColumnValue:
            known = batch.columns.get(slot)
            if known is None:
                known = batch.columns[slot] = value(batch)
            return known

        return read

    def _call(self, expr: CallOf) -> ColumnClosure:
        if any(is_open(arg.type) for arg in expr.args):
            raise NotColumnar
        match expr.args:
            case (receiver, *others, Var(slot=slot)) if slot == self.at.node:
                if method_of(expr.function) is None or any(
                    slot in self.at.scope.needs(one) for one in (receiver, *others)
                ):
                    raise NotColumnar
                name = attribute_of(expr.function.rpartition(".")[2])
                return NodeMethod(self.lower(receiver), name, [self.lower(one) for one in others], expr.type)
        if expr.function in MEASURES:
            return over_cards(expr.function, [self.lower(arg) for arg in expr.args])
        if expr.function in ITEM_METHODS:
            return of_items(expr, self.lower(expr.args[0]), self.lower(expr.args[1]))
        if expr.function == "sum" and (found := sum_over_pods(expr, self.at)) is not None:
            return found
        overload = expr.overload
        kernel = listed.CALLS.get(overload) or KERNELS.get(overload) or MAKERS.get(overload)
        if kernel is None and overload in ("equals", "not_equals"):
            left, right = expr.args
            kernel = EQUALITY.get((left.type, overload)) if left.type == right.type else None
        if kernel is None and overload not in NUMBERS:
            raise NotColumnar
        if expr.function == "size":
            (counted,) = expr.args
            if (
                isinstance(counted, Comprehension)
                and counted.macro is Macro.FILTER
                and (count := macro_over_pods(counted, self.at)) is not None
            ):
                return count
            if is_pods_of(counted, self.at.node):
                return pod_count
            if self.at.is_node_list(counted):
                return call_over_columns(expr, [self.items_of(counted)], kernel)
        if any(
            arg.type.name in ("list", "map")
            and not self.at.is_uniform(arg)
            and not self.at.is_numbers(arg, expr)
            for arg in expr.args
        ):
            raise NotColumnar
        return call_over_columns(expr, [self.lower(arg) for arg in expr.args], kernel)

    def _fn_call(self, expr: CallFn) -> ColumnClosure:
        fn, node, given = self.at.scope.call(expr)
        # INVARIANT: functions are not recursive; the checker ensures it.
        scope, params = self.at.scope.in_fn(fn, node), frozenset(slot for slot, _ in given)
        # The parameter that receives the node is the node of the body.
        inner = Lowering(scope, captured=params, depth=self._depth)
        body = self._once(self.at.scope.lowered.bodies, (expr.fn, node), lambda: inner.lower(fn.body))
        args = [(slot, self.lower(arg)) for slot, arg in given]
        blank: list[Value] = [UNSET] * (fn.slots + 1)

        def call(batch: Batch) -> ColumnValue:
            batch.spend()
            columns = {slot: arg(batch) for slot, arg in args}
            frame = blank.copy()
            frame[-1] = batch.frame[-1]
            # All arguments are evaluated before the body, even unread ones.
            return with_bad(body(batch.inside(columns, frame)), either(*map(bad_of, columns.values())))

        return call

    def items_of(self, expr: TypedExpr) -> ColumnClosure:
        """Lower a list that is `is_node_list`."""
        return list_field(attribute_of(expr.field)) if isinstance(expr, FieldOf) else self.lower(expr)

    def over_items(self, macro: Macro, items: ColumnClosure, slot: int, body: TypedExpr) -> ColumnClosure:
        """Lower a macro over `items_of` a list; NotColumnar if its body reads the node otherwise."""
        needs = self.at.scope.needs(body) - {slot}
        if self.at.scope.reads_node(needs):
            raise NotColumnar
        only_bools([body])
        holds, others = self._within([slot]).lower(body), tuple(needs & self.at.captured)
        return over_items(macro, items, slot, ItemCondition(holds, not needs, others))

    def _comprehension(self, expr: Comprehension) -> ColumnClosure:
        if expr.macro in (Macro.ALL, Macro.EXISTS, Macro.EXISTS_ONE):
            found = macro_over_pods(expr, self.at)
            if found is not None:
                return found
        if expr.macro in (Macro.ALL, Macro.EXISTS, Macro.FILTER) and self.at.is_node_list(expr.iterable):
            if len(expr.variables) != 1:
                raise NotColumnar
            items = self.items_of(expr.iterable)
            return self.over_items(expr.macro, items, expr.variables[0].slot, expr.body)
        is_numbers = self.at.is_numbers(expr.iterable) and expr.macro in _OVER_NUMBERS
        if not (is_numbers or self.at.is_uniform(expr.iterable)) or is_open(expr.iterable.type):
            raise NotColumnar
        if expr.iterable.type.name not in ("list", "map", "resources"):
            raise NotColumnar
        iterable = self.lower(expr.iterable)
        inner = self._within(variable.slot for variable in expr.variables)
        if expr.macro not in (Macro.MAP, Macro.TRANSFORM_LIST, Macro.TRANSFORM_MAP):
            only_bools([expr.body])
        elif may_be_large(expr.body.type):
            raise NotColumnar  # it pays for all its entries
        if expr.where is not None:
            only_bools([expr.where])
        body = inner.lower(expr.body)
        where = None if expr.where is None else inner.lower(expr.where)
        slots = tuple(variable.slot for variable in expr.variables)
        shared = listed.comprehension(expr.macro, slots, where, body)

        def over(batch: Batch) -> ColumnValue:
            value = iterable(batch)
            if is_numbers:
                value = numbers_of(value)
                if isinstance(value, (Numbers, Cards)):
                    return over_numbers(expr.macro, value, slots, where, body, batch)
            return shared(value, batch)

        return over

    def _within(self, slots: Iterable[int]) -> Lowering:
        """Return a lowering for the inside of a macro, whose variables may hold columns."""
        at = self.at
        return Lowering(at.scope, at.shared, at.captured.union(slots), self._depth)


def _constant(expr: Const) -> ColumnClosure:
    value = Same(UInt(expr.value) if isinstance(expr.value, int) and expr.type == UINT else expr.value)
    return lambda batch: value


def _shared(closure: Closure) -> ColumnClosure:
    def evaluate(batch: Batch) -> ColumnValue:
        try:
            return Same(closure(batch.frame))
        except EvalError:
            raise AllBad from None

    return evaluate
