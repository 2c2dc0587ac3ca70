"""The surroundings of an expression in a rule, which decide whether it has a form over columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kdsl.check.model.typed import CallOf, Comprehension, Const, FieldOf, ListOf, Macro, TypedExpr, Var
from kdsl.check.model.types import BOOL, Type
from kdsl.eval.scalar.access import CARDS, DEVICE
from kdsl.plan.columns.atoms import has_list_column
from kdsl.plan.columns.column import DTYPES, NotColumnar
from kdsl.plan.columns.numbers import NUMBERS
from kdsl.plan.columns.rule import ColumnScope

_LISTS = (Macro.FILTER, Macro.MAP, Macro.TRANSFORM_LIST, Macro.TRANSFORM_MAP)


@dataclass(frozen=True, slots=True)
class Context:
    """The place of an expression in a rule.

    `shared` are the slots of loop variables with one value for all rows, `captured` those of macros and
    functions, which hold columns.
    """

    rule: ColumnScope
    shared: frozenset[int]
    captured: frozenset[int]

    @property
    def node(self) -> int:
        """The slot of the node."""
        return self.rule.slots.node

    def is_numbers(self, arg: TypedExpr, call: CallOf | None = None) -> bool:
        """Return whether `call` takes the expression, a list of numbers or the cards of the node."""
        if call is not None and call.overload not in NUMBERS:
            return False
        if arg.type.name != "list":
            return False
        if arg.type.args[0].name == DEVICE:
            is_given = isinstance(arg, Var) and arg.slot in self.captured
            return is_given or (isinstance(arg, FieldOf) and arg.field == CARDS)
        return arg.type.args[0] in DTYPES

    def is_node_list(self, expr: TypedExpr) -> bool:
        """Return whether an expression is a list of the node's facts or usage, or a filtered one."""
        match expr:
            case FieldOf(operand=Var(slot=slot)) if slot == self.node:
                return expr.type.name == "list" and has_list_column(expr)
            case Comprehension(macro=Macro.FILTER, iterable=iterable):
                return self.is_node_list(iterable)
            case Var(slot=slot) if slot not in self.captured:
                definition = self.rule.definitions.get(slot)
                return definition is not None and self.is_node_list(definition)
        return False

    def is_uniform(self, expr: TypedExpr) -> bool:
        """Return whether a list has the same items for all rows, except for items absent in some."""
        match expr:
            case Var(slot=slot) if slot in self.captured:
                return True
            case Var(slot=slot) if (value := self.rule.definitions.get(slot)) is not None:
                return self.is_uniform(value)
            case Comprehension(iterable=iterable, macro=macro):
                return macro in _LISTS and self.is_uniform(iterable)
            case Const() | ListOf():
                return True
            case FieldOf(operand=Var(slot=slot)) if slot in self.captured:
                return True
        return self.rule.shared_closure(expr, self.shared) is not None


def only_bools(conditions: Iterable[TypedExpr]) -> None:
    """Raise NotColumnar if a condition may not be a bool."""
    if any(condition.type != BOOL for condition in conditions):
        raise NotColumnar


def is_open(type_: Type) -> bool:
    """Return whether the values of a type may have different types."""
    return type_.name in ("dyn", "error", "nothing") or any(map(is_open, type_.args))
