"""Checked expressions to column programs.

This module decides how an expression is evaluated for many nodes:

1. A part that is the same for all nodes is evaluated once, by the scalar back end.
2. Arithmetic, comparison, logic, macros over lists that all nodes share, and functions of rule files are
   evaluated over whole columns; other functions once per distinct combination of their arguments.
3. A part that reads only a few facts of a node is evaluated by the scalar back end, once per distinct
   combination of those facts.
4. Other parts are evaluated by the scalar back end for every node that is still undecided.

3 and 4 are used for the smallest part that has no form of kind 2, so one unusual call does not make a rule
slow. `ColumnCompiler.scalar_parts` lists those parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, TypeVar

from kdsl.check.model.typed import (
    Bind,
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
from kdsl.check.model.types import BOOL, QUANTITY, STRING, UINT, Type, optional_of
from kdsl.eval.functions import IMPLEMENTATIONS
from kdsl.eval.ir import EAGER, free_slots, operands
from kdsl.eval.scalar import UNSET, Closure
from kdsl.eval.scalar.access import CARDS, DEVICE
from kdsl.eval.scalar.meter import may_be_large
from kdsl.eval.scalar.selecting import selector_of
from kdsl.eval.values import EvalError, UInt
from kdsl.eval.views import attribute_of, method_of, wrapper_of
from kdsl.plan.columns import items as listed
from kdsl.plan.columns.atoms import Fact, is_fact, keyed
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.calls import call_over_columns, compare_columns
from kdsl.plan.columns.column import (
    DTYPES,
    AllBad,
    CardLists,
    Coded,
    ColumnValue,
    NotColumnar,
    Numbers,
    OutOfSteps,
    Same,
    bad_of,
    either,
    with_bad,
)
from kdsl.plan.columns.distinct import Fallback, NodeMethod
from kdsl.plan.columns.fields import keyed_fact, node_field, text_or
from kdsl.plan.columns.kernels import KERNELS
from kdsl.plan.columns.logic import Operand as ColumnClosure
from kdsl.plan.columns.logic import choose, conjunction, disjunction
from kdsl.plan.columns.node_lists import TOLERATES, ItemCondition, list_field, over_items, tolerates
from kdsl.plan.columns.node_pods import count_selected
from kdsl.plan.columns.numbers import NUMBERS, cards, numbers_of, over_numbers
from kdsl.plan.columns.rule import ColumnScope, RuleColumns, ScalarPart
from kdsl.plan.columns.tape import recorded
from kdsl.plan.columns.typical_pods import MEASURES, measured

__all__ = ["ColumnClosure", "ColumnCompiler", "ScalarPart"]

Key = TypeVar("Key")

MAX_DEPTH: Final = 32
"""The deepest nesting for columns; the scalar back end needs fewer Python frames per level."""

MAX_VALUES: Final = 4
"""The most values of an argument for which a function is called by value."""

_OPTIONAL_STRING: Final = optional_of(STRING)
_OVER_NUMBERS: Final = frozenset(
    (Macro.ALL, Macro.EXISTS, Macro.EXISTS_ONE, Macro.FILTER, Macro.MAP, Macro.TRANSFORM_LIST)
)
_LISTS = (Macro.FILTER, Macro.MAP, Macro.TRANSFORM_LIST, Macro.TRANSFORM_MAP)


class ColumnCompiler(RuleColumns):
    """Compiles the expressions of one rule."""

    def compile(self, expr: TypedExpr) -> ColumnClosure:
        """Compile a whole expression, such as the value of a score."""
        return recorded(self.lower(expr), self.tapes, expr.reads)

    def lower(self, expr: TypedExpr, shared: frozenset[int] = frozenset()) -> ColumnClosure:
        """Compile a part of a rule. `shared` are loop variables with one value for all rows."""
        return self.lowering(shared).lower(expr)

    def lowering(self, shared: frozenset[int]) -> Lowering:
        """Return a compiler for parts of a rule."""
        return Lowering(self, shared, frozenset(), self.slots.node)


class Lowering:
    """Lowers one expression tree. `captured` are the slots of macros and functions, which hold columns.
    `node` is the slot of the node, None in functions without one.
    """

    def __init__(
        self,
        rule: ColumnScope,
        shared: frozenset[int],
        captured: frozenset[int],
        node: int | None,
        in_fn: bool = False,
        depth: int = 0,
    ) -> None:
        self._rule = rule
        self._shared = shared
        self._captured = captured
        self._node = node
        self._in_fn = in_fn
        self._depth = depth

    def lower(self, expr: TypedExpr) -> ColumnClosure:
        if isinstance(expr, Const):
            return _constant(expr)
        if not (self._in_fn or (self._captured and self._rule.needs(expr) & self._captured)):
            closure = self._rule.shared_closure(expr, self._shared)
            if closure is not None:
                return _shared(closure)
        parts = self._rule.scalar_parts
        count = len(parts)
        self._depth += 1
        try:
            self._reach(self._depth)
            return self._guarded(self._columnar(expr), expr)
        except NotColumnar:
            del parts[count:]
            self._rule.add_scalar_part(expr, self._node, self._in_fn)
            return self._fallback(expr)
        finally:
            self._depth -= 1

    def _reach(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise NotColumnar
        self._rule.lowered.deepest = max(self._rule.lowered.deepest, depth)

    def _once(
        self,
        known: dict[Key, tuple[ColumnClosure, int]],
        key: Key,
        lower: Callable[[], ColumnClosure],
    ) -> ColumnClosure:
        lowered, depth = self._rule.lowered, self._depth
        if key not in known:
            before, lowered.deepest = lowered.deepest, depth
            closure = lower()
            known[key] = closure, lowered.deepest - depth
            lowered.deepest = max(lowered.deepest, before)
        closure, height = known[key]
        self._reach(depth + height)
        return closure

    def _fallback(self, expr: TypedExpr) -> ColumnClosure:
        if self._in_fn:
            return self._rule.fallback_in_fn(expr, self._captured, self._node)
        return self._rule.fallback(expr, self._captured)

    def _guarded(self, columnar: ColumnClosure, expr: TypedExpr) -> ColumnClosure:
        """Return `columnar`, with the scalar back end for values without a column form."""
        if isinstance(expr, Var):
            return columnar
        fallback: ColumnClosure | None = None

        def evaluate(batch: Batch) -> ColumnValue:
            nonlocal fallback
            try:
                return columnar(batch)
            except OutOfSteps:
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
            case FieldOf(operand=Var(slot=slot), field=field) if slot == self._node:
                return self._cards() if field == CARDS else node_field(expr)
            case FieldOf() if wrapper_of(expr.type) is None:
                return listed.field_of(self.lower(expr.operand), attribute_of(expr.field), expr.type)
            case CallOf(function="_&&_" | "_||_"):
                parts = operands(expr)
                _only_bools(parts)
                combine = conjunction if expr.function == "_&&_" else disjunction
                return combine([self.lower(part) for part in parts])
            case CallOf(function="_?_:_", args=(condition, yes, no)):
                _only_bools([condition])
                return choose(self.lower(condition), self.lower(yes), self.lower(no))
            case CallOf() | KeyOf() if (fact := self._keyed(expr)) is not None:
                assert fact.key is not None
                return keyed_fact(expr, fact.field, self.lower(fact.key))
            case CallOf(
                function="orValue", args=(CallOf() | KeyOf() as found, Const(value=str(default)))
            ) if found.type == _OPTIONAL_STRING and (fact := self._keyed(found)) is not None:
                assert fact.key is not None
                return text_or(fact.field, self.lower(fact.key), default, self._call(expr))
            case CallOf():
                return self._call(expr)
            case CallFn():
                return self._fn_call(expr)
            case Comprehension():
                return self._comprehension(expr)
            case ListOf() if not any(item.optional or may_be_large(item.value.type) for item in expr.items):
                return listed.list_of([self.lower(item.value) for item in expr.items])
            case Bind(macro=macro) if macro in ("bind", EAGER):
                return self._bind(expr)
        raise NotColumnar

    def _cards(self) -> ColumnClosure:
        """Lower the cards of the node."""
        cards_of = self._rule.cards_of
        return lambda batch: cards(batch, batch.facts.cards(cards_of))

    def _keyed(self, expr: CallOf | KeyOf) -> Fact | None:
        """Return the fact of an expression, if it is one with a column."""
        return None if self._node is None else keyed(expr, self._node)

    def _variable(self, expr: Var) -> ColumnClosure:
        slot = expr.slot
        if slot in self._captured:
            return lambda batch: batch.columns[slot]
        definition = None if self._in_fn else self._rule.definition(slot)
        if definition is None:
            raise NotColumnar
        lowered = self._rule.lowered
        value = self._once(lowered.lets, (slot, self._shared), lambda: self.lower(definition))

        def read(batch: Batch) -> ColumnValue:
            known = batch.columns.get(slot)
            if known is None:
                known = batch.columns[slot] = value(batch)
            return known

        return read

    def _call(self, expr: CallOf) -> ColumnClosure:
        if any(_is_open(arg.type) for arg in expr.args):
            raise NotColumnar
        match expr.args:
            case (receiver, *others, Var(slot=slot)) if slot == self._node:
                needs = free_slots if self._in_fn else self._rule.needs
                if method_of(expr.function) is None or any(slot in needs(one) for one in (receiver, *others)):
                    raise NotColumnar
                name = attribute_of(expr.function.rpartition(".")[2])
                return NodeMethod(self.lower(receiver), name, [self.lower(one) for one in others], expr.type)
        if expr.overload in ("equals", "not_equals"):
            return self._equality(expr)
        if expr.function in MEASURES:
            return measured(expr.function, [self.lower(arg) for arg in expr.args])
        if expr.function in TOLERATES:
            return tolerates(expr, self.lower(expr.args[0]), self.lower(expr.args[1]))
        special = listed.CALLS.get(expr.overload)
        kernel = KERNELS.get(expr.overload)
        if special is None and kernel is None:
            self._only_codable(expr)
        match expr.args:
            case (Comprehension() as filtered,) if expr.function == "size":
                counted = self._pods_of_node(filtered)
                if counted is not None:
                    return counted
        if any(
            arg.type.name in ("list", "map") and not self._is_uniform(arg) and not self._is_numbers(arg, expr)
            for arg in expr.args
        ) and not (expr.function == "size" and self.is_node_list(expr.args[0])):
            raise NotColumnar
        return call_over_columns(expr, [self.lower(arg) for arg in expr.args], special or kernel)

    def _is_numbers(self, arg: TypedExpr, call: CallOf | None = None) -> bool:
        """Tell whether an expression is a list of numbers, or the cards of the node, and a call takes it."""
        if call is not None and call.overload not in NUMBERS:
            return False
        if arg.type.name != "list":
            return False
        if arg.type.args[0].name == DEVICE:
            is_given = isinstance(arg, Var) and arg.slot in self._captured
            return is_given or (isinstance(arg, FieldOf) and arg.field == CARDS)
        return arg.type.args[0] in DTYPES

    def _only_codable(self, expr: CallOf) -> None:
        """Raise NotColumnar unless a function can be called once per distinct combination of arguments."""
        if expr.overload not in IMPLEMENTATIONS:
            raise NotColumnar
        for arg in expr.args:
            if arg.type == QUANTITY and (self._in_fn or self._rule.shared_closure(arg, self._shared) is None):
                raise NotColumnar

    def _equality(self, expr: CallOf) -> ColumnClosure:
        left, right = expr.args
        if left.type != right.type or left.type.name in ("list", "map", "resources"):
            raise NotColumnar
        if left.type not in (*DTYPES, STRING, QUANTITY):
            return call_over_columns(expr, [self.lower(left), self.lower(right)], None)
        return compare_columns(
            self.lower(left), self.lower(right), expr.overload == "equals", DTYPES.get(left.type)
        )

    def _fn_call(self, expr: CallFn) -> ColumnClosure:
        fn = self._rule.fn(expr.fn)
        # The parameter that receives the node is the node of the body.
        of_node = [isinstance(arg, Var) and arg.slot == self._node for arg in expr.args]
        if of_node.count(True) > 1:
            raise NotColumnar
        node = next((param.slot for param, is_it in zip(fn.params, of_node, strict=True) if is_it), None)
        params = frozenset(param.slot for param in fn.params) - {node}
        # INVARIANT: functions are not recursive; the checker ensures it.
        inner = Lowering(self._rule, frozenset(), params, node, in_fn=True, depth=self._depth)
        body = self._once(self._rule.lowered.bodies, (expr.fn, node), lambda: inner.lower(fn.body))
        args = [
            (param.slot, self.lower(arg))
            for param, arg in zip(fn.params, expr.args, strict=True)
            if param.slot != node
        ]
        blank = [UNSET] * (fn.slots + 1)

        @cache
        def by_value() -> Fallback:
            compiled = self._rule.fn_compiler().compile(fn.body)
            return Fallback(compiled, expr.type, sorted(params), None, None)

        def call(batch: Batch) -> ColumnValue:
            batch.spend()
            columns = {slot: arg(batch) for slot, arg in args}
            frame = blank.copy()
            frame[-1] = batch.frame[-1]
            if node is None and _has_few_values(columns.values()):
                return by_value()(batch.inside(columns, frame))
            # All arguments are evaluated before the body, even unread ones.
            return with_bad(body(batch.inside(columns, frame)), either(*map(bad_of, columns.values())))

        return call

    def _pods_of_node(self, expr: Comprehension) -> ColumnClosure | None:
        """Lower the number of pods of the node that a filter keeps; None if no selector decides it."""
        match expr.iterable, expr.variables:
            case FieldOf(operand=Var(slot=node), field="pods"), [variable] if (
                node == self._node and expr.macro is Macro.FILTER
            ):
                pass
            case _:
                return None
        needs = (free_slots if self._in_fn else self._rule.needs)(expr.body) - {variable.slot}
        if self._node in needs or (not self._in_fn and self._rule.reads_node(needs)):
            return None
        compile = self._rule.fn_compiler().compile if self._in_fn else self._rule.closure
        selector = selector_of(expr.body, variable, self._rule.fns, compile)
        if selector is None:
            return None
        return count_selected(variable.slot, sorted(needs & self._captured), compile(expr.body), selector)

    def is_node_list(self, expr: TypedExpr) -> bool:
        """Return whether an expression is a list of node facts, or a filtered one."""
        match expr:
            case FieldOf(operand=Var(slot=slot)) if slot == self._node:
                return expr.type.name == "list" and is_fact(expr)
            case Comprehension(macro=Macro.FILTER, iterable=iterable):
                return self.is_node_list(iterable)
            case Var(slot=slot) if slot not in self._captured and not self._in_fn:
                definition = self._rule.definition(slot)
                return definition is not None and self.is_node_list(definition)
        return False

    def items_of(self, expr: TypedExpr) -> ColumnClosure:
        """Lower a list that is `is_node_list`."""
        return list_field(attribute_of(expr.field)) if isinstance(expr, FieldOf) else self.lower(expr)

    def of_item(self, condition: TypedExpr, slot: int) -> ItemCondition | None:
        """Lower a condition on the item in `slot`; None if it reads more than the item and shared values."""
        needs = (free_slots if self._in_fn else self._rule.needs)(condition) - {slot}
        if not needs.isdisjoint(self._captured) or self._node in needs or self._rule.reads_node(needs):
            return None
        _only_bools([condition])
        return ItemCondition(self._within([slot]).lower(condition), not needs)

    def _comprehension(self, expr: Comprehension) -> ColumnClosure:
        if expr.macro in (Macro.ALL, Macro.EXISTS, Macro.FILTER) and self.is_node_list(expr.iterable):
            slot = expr.variables[0].slot
            condition = self.of_item(expr.body, slot) if len(expr.variables) == 1 else None
            if condition is None:
                raise NotColumnar
            return over_items(expr.macro, self.items_of(expr.iterable), slot, condition)
        is_numbers = self._is_numbers(expr.iterable) and expr.macro in _OVER_NUMBERS
        if not (is_numbers or self._is_uniform(expr.iterable)) or _is_open(expr.iterable.type):
            raise NotColumnar
        if expr.iterable.type.name not in ("list", "map"):
            raise NotColumnar
        iterable = self.lower(expr.iterable)
        inner = self._within(variable.slot for variable in expr.variables)
        if expr.macro not in (Macro.MAP, Macro.TRANSFORM_LIST, Macro.TRANSFORM_MAP):
            _only_bools([expr.body])
        elif may_be_large(expr.body.type):
            raise NotColumnar  # it pays for all its entries
        if expr.where is not None:
            _only_bools([expr.where])
        body = inner.lower(expr.body)
        where = None if expr.where is None else inner.lower(expr.where)
        slots = tuple(variable.slot for variable in expr.variables)
        if not is_numbers:
            return listed.comprehension(expr.macro, iterable, slots, where, body)
        # The value is held in the batch: several threads may evaluate one closure.
        held = -1 - slots[-1]
        shared = listed.comprehension(expr.macro, lambda batch: batch.columns[held], slots, where, body)

        def over(batch: Batch) -> ColumnValue:
            value = numbers_of(iterable(batch))
            if isinstance(value, (Numbers, CardLists)):
                return over_numbers(expr.macro, value, slots, where, body, batch)
            batch.columns[held] = value
            return shared(batch)

        return over

    def _within(self, slots: Iterable[int]) -> Lowering:
        """Return a lowering for the inside of a macro, whose variables may hold columns."""
        captured = self._captured.union(slots)
        return Lowering(self._rule, self._shared, captured, self._node, self._in_fn, self._depth)

    def _is_uniform(self, expr: TypedExpr) -> bool:
        """Return whether a list has the same items for all rows, except for items absent in some."""
        match expr:
            case Var(slot=slot) if slot in self._captured:
                return True
            case Var(slot=slot) if not self._in_fn and (value := self._rule.definition(slot)) is not None:
                return self._is_uniform(value)
            case Comprehension(iterable=iterable, macro=macro):
                return macro in _LISTS and self._is_uniform(iterable)
            case Const() | ListOf():
                return True
            case FieldOf(operand=Var(slot=slot)) if slot in self._captured:
                return True
        return not self._in_fn and self._rule.shared_closure(expr, self._shared) is not None

    def _bind(self, expr: Bind) -> ColumnClosure:
        slot, value = expr.variable.slot, self.lower(expr.value)
        body = self._within([slot]).lower(expr.body)
        is_eager = expr.macro == EAGER

        def bind(batch: Batch) -> ColumnValue:
            bound = batch.columns[slot] = value(batch)
            return with_bad(body(batch), bad_of(bound) if is_eager else None)

        return bind


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


def _has_few_values(args: Iterable[ColumnValue]) -> bool:
    """Return whether a function is faster by value than by row: only one argument varies, over few values."""
    coded = [arg for arg in args if not isinstance(arg, Same)]
    return len(coded) == 1 and isinstance(coded[0], Coded) and len(coded[0].values) <= MAX_VALUES


def _only_bools(conditions: Iterable[TypedExpr]) -> None:
    """Raise NotColumnar if a condition may not be a bool."""
    if any(condition.type != BOOL for condition in conditions):
        raise NotColumnar


def _is_open(type_: Type) -> bool:
    """Return whether the values of a type may have different types."""
    return type_.name in ("dyn", "error", "nothing") or any(map(_is_open, type_.args))
