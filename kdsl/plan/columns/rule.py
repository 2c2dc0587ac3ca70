"""The scope of an expression for the column back end: the values that all rows share, and the parts left to
the scalar back end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Self

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedFn, Fns
from kdsl.check.model.typed import TypedExpr
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar import Closure, Compiler
from kdsl.eval.views import attribute_of
from kdsl.plan.card_table import CardsOf
from kdsl.plan.columns.atoms import Atom, NodeFact, facts_of
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.distinct import Fallback, NodeSlots
from kdsl.plan.columns.logic import Operand as ColumnClosure
from kdsl.plan.columns.tape import RuleTapes
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope


@dataclass(frozen=True, slots=True)
class ScalarPart:
    """A part of a rule that the scalar back end evaluates: once per distinct combination of `facts`, or for
    each node if they are None.
    """

    span: Span
    facts: tuple[NodeFact, ...] | None


@dataclass(slots=True)
class Lowered:
    """The lowered parts so far: `let`s by slot and loop variables, functions by name and node parameter.

    Each has its height; `deepest` is the largest depth so far. They keep evaluation below `MAX_DEPTH`.
    """

    lets: dict[tuple[int, frozenset[int]], tuple[ColumnClosure, int]] = field(default_factory=dict)
    bodies: dict[tuple[str, int | None], tuple[ColumnClosure, int]] = field(default_factory=dict)
    scalar_parts: list[ScalarPart] = field(default_factory=list)
    deepest: int = 0


class ColumnScope(ABC):
    """The scope for lowering. `node` is the slot of the node, `resets` those of its lazy variables."""

    def __init__(self, functions: CompiledFunctions, node: int, resets: Sequence[int]) -> None:
        self._functions = functions
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

    @abstractmethod
    def shared_closure(self, expr: TypedExpr, shared: frozenset[int]) -> Closure | None:
        """Return the closure of an expression that is the same for all rows; None for others."""

    def facts(
        self, exprs: Iterable[TypedExpr], bound: frozenset[int] = frozenset()
    ) -> tuple[NodeFact, ...] | None:
        """Return the facts of a node that expressions read; None if they read more. No key of a fact may
        depend on a variable of `bound`.
        """
        found: dict[NodeFact, None] = {}
        for expr in exprs:
            facts = facts_of(expr, self.slots.node, self.definition, bound)
            if facts is None:
                return None
            found.update(dict.fromkeys(facts))
        return tuple(found)

    def atoms(self, facts: Iterable[NodeFact]) -> tuple[Atom, ...]:
        """Compile facts."""
        return _atoms(facts, self.closure, self.needs)

    def fallback(self, expr: TypedExpr, captured: frozenset[int]) -> ColumnClosure:
        """Return a column closure that evaluates an expression by the scalar back end."""
        needs = self.needs(expr)
        held = sorted(needs & captured)
        if not self.reads_node(needs):
            return Fallback(self.closure(expr), expr.type, held, None, None)
        facts = self.facts([expr])
        atoms = None if facts is None else self.atoms(facts)
        return Fallback(self.closure(expr), expr.type, held, self.slots, atoms)

    def fallback_in_fn(self, expr: TypedExpr, captured: frozenset[int], node: int | None) -> ColumnClosure:
        """Return a column closure that evaluates a part of a function's body by the scalar back end; `node`
        is the parameter that receives the node.
        """
        compiler, needs = self.fn_compiler(), free_slots(expr)
        slots, atoms = None, None
        if node is not None and node in needs:
            slots = NodeSlots(node, ())
            facts = _facts_in_fn(expr, node)
            atoms = None if facts is None else _atoms(facts, compiler.compile, free_slots)
        return Fallback(compiler.compile(expr), expr.type, sorted(needs & captured), slots, atoms)

    @property
    def scalar_parts(self) -> list[ScalarPart]:
        """The parts that are left to the scalar back end."""
        return self.lowered.scalar_parts

    def add_scalar_part(self, expr: TypedExpr, node: int | None, in_fn: bool) -> None:
        """Record that an expression is left to the scalar back end, if it reads the node."""
        if in_fn:
            if node is not None and node in free_slots(expr):
                self.scalar_parts.append(ScalarPart(expr.span, _facts_in_fn(expr, node)))
        elif self.reads_node(self.needs(expr)):
            self.scalar_parts.append(ScalarPart(expr.span, self.facts([expr])))

    def reads_node(self, slots: frozenset[int]) -> bool:
        """Return whether some of these variables differ by node."""
        return self.slots.node in slots

    def fn_compiler(self) -> Compiler:
        """Return a scalar compiler for parts of a function's body."""
        return self._functions.compiler()

    @property
    def cards_of(self) -> CardsOf:
        """The function that returns the cards of a node by the devices of the rule's profile."""
        return self._functions.cards_of

    @property
    def fns(self) -> Fns:
        """The functions that rules may call, by name."""
        return self._functions.fns

    def fn(self, name: str) -> CheckedFn:
        """Return a function of a rule file; NotColumnar for a plugin's."""
        fn = self._functions.fns[name]
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

    def shared_closure(self, expr: TypedExpr, shared: frozenset[int]) -> Closure | None:
        needs = self.needs(expr)
        # A variable of a macro over a filtered list has the binding time of the filter.
        is_lasting = expr.time.is_lasting or not needs.isdisjoint(shared)
        return self.closure(expr) if is_lasting and needs <= self._scope.lasting | shared else None

    def reads_node(self, slots: frozenset[int]) -> bool:
        return super().reads_node(slots) or not slots.isdisjoint(self._scope.definitions)


def _atoms(
    facts: Iterable[NodeFact],
    compile: Callable[[TypedExpr], Closure],
    needs: Callable[[TypedExpr], frozenset[int]],
) -> tuple[Atom, ...]:
    return tuple(
        Atom(attribute_of(fact.field), None, frozenset())
        if fact.key is None
        else Atom(attribute_of(fact.field), compile(fact.key), needs(fact.key))
        for fact in facts
    )


def _facts_in_fn(expr: TypedExpr, node: int) -> tuple[NodeFact, ...] | None:
    """Return the facts of the node that a part of a function's body reads; None if it reads more."""
    found = facts_of(expr, node, lambda slot: None)
    return None if found is None else tuple(dict.fromkeys(found))
