"""The scope of an expression for the column back end: the values that all rows share, and the parts left to
the scalar back end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final, Self

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.typed import TypedExpr
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar import Closure
from kdsl.eval.scalar.frame import Compile
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.distinct import NodeSlots
from kdsl.plan.columns.logic import Operand
from kdsl.plan.columns.tape import RuleTapes
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.compile.stability import is_stable

NO_NODE: Final = -2
"""In place of a slot; no variable has it."""


@dataclass(frozen=True, slots=True)
class ScalarPart:
    """A part of a rule that the scalar back end evaluates: once per distinct combination of `facts`, or for
    each node if they are None.
    """

    span: Span
    facts: tuple[str, ...] | None


@dataclass(slots=True)
class Lowered:
    """The lowered parts so far: `let`s by slot and loop variables, functions by name and node parameter.

    Each has its height; `deepest` is the largest depth so far. They keep evaluation below `MAX_DEPTH`.
    """

    lets: dict[tuple[int, frozenset[int]], tuple[Operand, int]] = field(default_factory=dict)
    bodies: dict[tuple[str, int | None], tuple[Operand, int]] = field(default_factory=dict)
    scalar_parts: list[ScalarPart] = field(default_factory=list)
    deepest: int = 0


class ColumnScope(ABC):
    """The scope for lowering. `node` is the slot of the node, `NO_NODE` in functions without one; `resets`
    are those of its lazy variables.
    """

    def __init__(self, functions: CompiledFunctions, node: int, resets: Sequence[int]) -> None:
        self.functions = functions
        self.slots = NodeSlots(node, tuple(resets))
        self.lowered = Lowered()

    @abstractmethod
    def closure(self, expr: TypedExpr) -> Closure:
        """Compile an expression, or a part of one, by the scalar back end."""

    @abstractmethod
    def needs(self, expr: TypedExpr) -> frozenset[int]:
        """Return the variables that an expression reads, directly or through hoisted parts."""

    @abstractmethod
    def definition(self, slot: int) -> TypedExpr | None:
        """Return the value of a `let` that belongs to the node; None for other variables."""

    def is_fixed(self, expr: TypedExpr) -> bool:
        """Return whether an expression that all rows share stays the same from one attempt of a signature to
        the next, apart from the numbers of counts.
        """
        return is_stable(expr)

    @abstractmethod
    def shared_closure(self, expr: TypedExpr, shared: frozenset[int]) -> Closure | None:
        """Return the closure of an expression that is the same for all rows; None for others."""

    @property
    def scalar_parts(self) -> list[ScalarPart]:
        """The parts that are left to the scalar back end."""
        return self.lowered.scalar_parts

    def reads_node(self, slots: frozenset[int]) -> bool:
        """Return whether some of these variables differ by node."""
        return self.slots.node in slots

    def in_fn(self, fn: CheckedFn, node: int) -> BodyColumns:
        """Return the scope of the body of a function; `node` is the parameter that receives the node."""
        inner, compile = frozenset(range(fn.slots)), self.functions.compiler().compile
        scope = BodyColumns(self.functions, node, inner, compile, free_slots)
        scope.lowered = self.lowered
        return scope

    def fn(self, name: str) -> CheckedFn:
        """Return a function of a rule file; NotColumnar for a plugin's."""
        fn = self.functions.fns[name]
        if not isinstance(fn, CheckedFn):
            raise NotColumnar
        return fn


class RuleColumns(ColumnScope):
    """The scope of one rule: the node is the one that it judges."""

    def __init__(
        self, scope: RuleScope, functions: CompiledFunctions, node: int, resets: Sequence[int]
    ) -> None:
        super().__init__(functions, node, resets)
        self._scope = scope
        self.tapes = RuleTapes(scope.new_frame, scope.slot_of("pod"), scope.slot_of("cluster"))

    def resetting(self, slots: Iterable[int]) -> Self:
        """Return this scope with further lazy variables of the node, from a loop."""
        other = copy(self)
        other.slots = NodeSlots(self.slots.node, (*self.slots.resets, *slots))
        return other

    def closure(self, expr: TypedExpr) -> Closure:
        return self._scope.closure(expr)

    def needs(self, expr: TypedExpr) -> frozenset[int]:
        return self._scope.needs(expr)

    def definition(self, slot: int) -> TypedExpr | None:
        return self._scope.definitions.get(slot)

    def is_fixed(self, expr: TypedExpr) -> bool:
        return self._scope.is_fixed(expr)

    def shared_closure(self, expr: TypedExpr, shared: frozenset[int]) -> Closure | None:
        needs = self.needs(expr)
        # A variable of a macro over a filtered list has the binding time of the filter.
        is_lasting = expr.time.is_lasting or not needs.isdisjoint(shared)
        return self.closure(expr) if is_lasting and needs <= self._scope.lasting | shared else None

    def reads_node(self, slots: frozenset[int]) -> bool:
        return super().reads_node(slots) or not slots.isdisjoint(self._scope.definitions)


class BodyColumns(ColumnScope):
    """The scope of the body of a function, or of a macro over nodes. `inner` are its own variables, the node
    included.
    """

    def __init__(
        self,
        functions: CompiledFunctions,
        node: int,
        inner: frozenset[int],
        compile: Compile,
        needs: Callable[[TypedExpr], frozenset[int]],
    ) -> None:
        super().__init__(functions, node, ())
        self._inner = inner
        self._compile = compile
        self._needs = needs

    def closure(self, expr: TypedExpr) -> Closure:
        return self._compile(expr)

    def needs(self, expr: TypedExpr) -> frozenset[int]:
        return self._needs(expr)

    def definition(self, slot: int) -> None:
        return None

    def shared_closure(self, expr: TypedExpr, shared: frozenset[int]) -> Closure | None:
        return self._compile(expr) if self._inner.isdisjoint(self._needs(expr) - shared) else None
