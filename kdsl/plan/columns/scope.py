"""The scope of an expression for the column back end: the values that all rows share, the parts left to the
scalar back end, and the surroundings, which decide whether an expression has a form over columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final, Self

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.typed import (
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    ListOf,
    Macro,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import BOOL, Type
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar import Closure
from kdsl.eval.scalar.access import CARDS, DEVICE
from kdsl.eval.scalar.frame import Compile
from kdsl.eval.scalar.over_nodes import Needs
from kdsl.plan.columns.column import DTYPES, NotColumnar
from kdsl.plan.columns.fallback import NodeSlots
from kdsl.plan.columns.fields import has_list_column
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.columns.numbers import NUMBERS
from kdsl.plan.columns.tape import RuleTapes
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.compile.stability import is_stable

NO_NODE: Final = -2
"""The slot of the node where there is none: no variable has this slot."""


@dataclass(frozen=True, slots=True)
class ScalarPart:
    """A part of a rule that the scalar back end evaluates: once per distinct combination of `facts`, or for
    each node if they are None.
    """

    span: Span
    facts: tuple[str, ...] | None


@dataclass(slots=True)
class Lowered:
    """The lowered parts so far: `let`s by slot and loop variables, functions by name and node parameter. Each
    has the depth at which it was lowered. `is_of_macro` holds for those of a macro over nodes, not of a rule.
    """

    lets: dict[tuple[int, frozenset[int]], tuple[ColumnClosure, int]] = field(default_factory=dict)
    bodies: dict[tuple[str, int], tuple[ColumnClosure, int]] = field(default_factory=dict)
    scalar_parts: list[ScalarPart] = field(default_factory=list)
    is_of_macro: bool = False


class ColumnScope(ABC):
    """The scope for lowering. `closure` compiles an expression, or a part of one, by the scalar back end;
    `needs` returns the variables that one reads, directly or through hoisted parts. `definitions` are the
    values of the `let`s that belong to the node.
    """

    def __init__(
        self,
        functions: CompiledFunctions,
        slots: NodeSlots,
        closure: Compile,
        needs: Needs,
        definitions: Mapping[int, TypedExpr],
    ) -> None:
        self.functions = functions
        self.slots = slots
        self.closure = closure
        self.needs = needs
        self.definitions = definitions
        self.lowered = Lowered()

    def is_fixed(self, expr: TypedExpr) -> bool:
        """Return whether an expression that all rows share stays the same from one attempt of a signature to
        the next, apart from the numbers of counts.
        """
        return is_stable(expr)

    @abstractmethod
    def _is_shared(self, expr: TypedExpr, shared: frozenset[int]) -> bool:
        """Return whether an expression is the same for all rows, as the variables `shared` are."""

    def shared_closure(self, expr: TypedExpr, shared: frozenset[int]) -> Closure | None:
        """Return the closure of an expression that is the same for all rows; None for others."""
        return self.closure(expr) if self._is_shared(expr, shared) else None

    @property
    def scalar_parts(self) -> list[ScalarPart]:
        """The parts that are left to the scalar back end."""
        return self.lowered.scalar_parts

    def reads_node(self, slots: frozenset[int]) -> bool:
        """Return whether some of these variables differ by node."""
        return self.slots.node in slots or not slots.isdisjoint(self.definitions)

    def in_fn(self, fn: CheckedFn, node: int) -> BodyColumns:
        """Return the scope of the body of a function; `node` is the parameter that receives the node."""
        inner, compile = frozenset(range(fn.slots)), self.functions.compiler().compile
        scope = BodyColumns(self.functions, node, inner, compile, free_slots)
        scope.lowered = self.lowered
        return scope

    def call(self, expr: CallFn) -> tuple[CheckedFn, int, list[tuple[int, TypedExpr]]]:
        """Return the function of a call, its parameter that receives the node, `NO_NODE` without one, and its
        other parameters with their arguments. NotColumnar for a function of a plugin, and for two nodes.
        """
        fn = self.functions.fns[expr.fn]
        if not isinstance(fn, CheckedFn):
            raise NotColumnar
        given = [(param.slot, arg) for param, arg in zip(fn.params, expr.args, strict=True)]
        others = [(slot, arg) for slot, arg in given if not self.is_node(arg)]
        nodes = [slot for slot, arg in given if self.is_node(arg)]
        if len(nodes) > 1:
            raise NotColumnar
        return fn, nodes[0] if nodes else NO_NODE, others

    def is_node(self, expr: TypedExpr) -> bool:
        """Return whether an expression is the node itself."""
        return isinstance(expr, Var) and expr.slot == self.slots.node


class RuleColumns(ColumnScope):
    """The scope of one rule. `node` is the slot of the node that it judges, `resets` are those of its lazy
    variables.
    """

    def __init__(
        self, scope: RuleScope, functions: CompiledFunctions, node: int, resets: Sequence[int]
    ) -> None:
        slots = NodeSlots(node, tuple(resets))
        super().__init__(functions, slots, scope.closure, scope.needs, scope.definitions)
        self._scope = scope
        self.tapes = RuleTapes(scope.new_frame, scope.slot_of("pod"), scope.slot_of("cluster"))

    def is_fixed(self, expr: TypedExpr) -> bool:
        return self._scope.is_fixed(expr)

    def resetting(self, slots: Iterable[int]) -> Self:
        """Return this scope with further lazy variables of the node, from a loop."""
        other = copy(self)
        other.slots = NodeSlots(self.slots.node, (*self.slots.resets, *slots))
        return other

    def _is_shared(self, expr: TypedExpr, shared: frozenset[int]) -> bool:
        needs = self.needs(expr)
        # A variable of a macro over a filtered list has the binding time of the filter.
        is_lasting = expr.time.is_lasting or not needs.isdisjoint(shared)
        return is_lasting and needs <= self._scope.lasting | shared


class BodyColumns(ColumnScope):
    """The scope of the body of a function, or of a macro over nodes. `inner` are its own variables, the node
    included.
    """

    def __init__(
        self, functions: CompiledFunctions, node: int, inner: frozenset[int], compile: Compile, needs: Needs
    ) -> None:
        super().__init__(functions, NodeSlots(node, ()), compile, needs, {})
        self._inner = inner

    def _is_shared(self, expr: TypedExpr, shared: frozenset[int]) -> bool:
        return self._inner.isdisjoint(self.needs(expr) - shared)


_LISTS = (Macro.FILTER, Macro.MAP, Macro.TRANSFORM_LIST, Macro.TRANSFORM_MAP)


@dataclass(frozen=True, slots=True)
class Context:
    """The place of an expression in its scope.

    `shared` are the slots of loop variables with one value for all rows, `captured` those of macros and
    functions, which hold columns.
    """

    scope: ColumnScope
    shared: frozenset[int]
    captured: frozenset[int]

    @property
    def node(self) -> int:
        """The slot of the node."""
        return self.scope.slots.node

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
                definition = self.scope.definitions.get(slot)
                return definition is not None and self.is_node_list(definition)
        return False

    def is_uniform(self, expr: TypedExpr) -> bool:
        """Return whether a list has the same items for all rows, except for items absent in some."""
        match expr:
            case Var(slot=slot) if slot in self.captured:
                return True
            case Var(slot=slot) if (value := self.scope.definitions.get(slot)) is not None:
                return self.is_uniform(value)
            case Comprehension(iterable=iterable, macro=macro):
                return macro in _LISTS and self.is_uniform(iterable)
            case Const() | ListOf():
                return True
            case FieldOf(operand=Var(slot=slot)) if slot in self.captured:
                return True
        return self.scope.shared_closure(expr, self.shared) is not None


def only_bools(conditions: Iterable[TypedExpr]) -> None:
    """Raise NotColumnar if a condition may not be a bool."""
    if any(condition.type != BOOL for condition in conditions):
        raise NotColumnar


def is_open(type_: Type) -> bool:
    """Return whether the values of a type may have different types."""
    return type_.name in ("dyn", "error", "nothing") or any(map(is_open, type_.args))
