"""One rule as the column back end sees it: what all rows share, and what is left to the scalar back end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Self

from kdsl.base.span import Span
from kdsl.check.model import CheckedFn
from kdsl.check.typed import TypedExpr
from kdsl.plan.columns.atoms import Atom, Fact, facts_of
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.distinct import Fallback, NodeSlots
from kdsl.plan.columns.logic import Operand as ColumnClosure
from kdsl.plan.ir import free_slots
from kdsl.plan.scalar import Closure
from kdsl.plan.scope import Functions, RuleScope
from kdsl.plan.views import attribute_of


@dataclass(frozen=True, slots=True)
class Note:
    """A part of a rule that the scalar back end evaluates: once per distinct combination of `facts`, or for
    each node where they are None.
    """

    span: Span
    facts: tuple[Fact, ...] | None


@dataclass(slots=True)
class Lowered:
    """What was lowered of a rule so far: `let`s by slot and loop variables around them, functions by name.

    With each goes its height; `deepest` is the depth that was reached. They keep evaluation to `MAX_DEPTH`.
    """

    lets: dict[tuple[int, frozenset[int]], tuple[ColumnClosure, int]] = field(default_factory=dict)
    bodies: dict[str, tuple[ColumnClosure, int]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    deepest: int = 0


class ColumnScope:
    """What lowering needs to know of a rule. `node` is the slot of the node, `resets` those of its lazy
    variables.
    """

    def __init__(self, scope: RuleScope, functions: Functions, node: int, resets: Sequence[int]) -> None:
        self._scope = scope
        self._functions = functions
        self.slots = NodeSlots(node, tuple(resets))
        self.lowered = Lowered()

    def resetting(self, slots: Iterable[int]) -> Self:
        """Return this scope with further lazy variables of the node, those of a loop."""
        other = copy(self)
        other.slots = NodeSlots(self.slots.node, (*self.slots.resets, *slots))
        return other

    def facts(
        self, exprs: Iterable[TypedExpr], bound: frozenset[int] = frozenset()
    ) -> tuple[Fact, ...] | None:
        """Return the facts of a node that expressions read; None where there is more to it. No key of a fact
        may depend on a variable of `bound`.
        """
        found: dict[Fact, None] = {}
        for expr in exprs:
            facts = facts_of(expr, self.slots.node, self._scope.definitions.get, bound)
            if facts is None:
                return None
            found.update(dict.fromkeys(facts))
        return tuple(found)

    def atoms(self, facts: Iterable[Fact]) -> tuple[Atom, ...]:
        """Compile facts."""
        return tuple(
            Atom(attribute_of(fact.field), None, frozenset())
            if fact.key is None
            else Atom(attribute_of(fact.field), self._scope.closure(fact.key), self.needs(fact.key))
            for fact in facts
        )

    def needs(self, expr: TypedExpr) -> frozenset[int]:
        """Return the variables that an expression reads, with those that hoisted parts of it follow."""
        return self._scope.needs(expr)

    def shared_closure(self, expr: TypedExpr, shared: frozenset[int]) -> Closure | None:
        """Return what computes an expression that is the same for all rows; None where it is not."""
        is_lasting = expr.time.is_lasting and self.needs(expr) <= self._scope.lasting | shared
        return self._scope.closure(expr) if is_lasting else None

    def fallback(self, expr: TypedExpr, captured: frozenset[int]) -> ColumnClosure:
        """Return what evaluates an expression of the rule by the scalar back end."""
        needs = self.needs(expr)
        held = sorted(needs & captured)
        if not self._reads_node(needs):
            return Fallback(self._scope.closure(expr), expr.type, held, None, None)
        facts = self.facts([expr])
        atoms = None if facts is None else self.atoms(facts)
        return Fallback(self._scope.closure(expr), expr.type, held, self.slots, atoms)

    def fallback_in_fn(self, expr: TypedExpr, captured: frozenset[int]) -> ColumnClosure:
        """Return what evaluates a part of a function's body by the scalar back end."""
        closure = self._functions.compiler().compile(expr)
        return Fallback(closure, expr.type, sorted(free_slots(expr) & captured), None, None)

    @property
    def notes(self) -> list[Note]:
        """What is left to the scalar back end."""
        return self.lowered.notes

    def note(self, expr: TypedExpr) -> None:
        """Note that an expression of the rule is left to the scalar back end."""
        if self._reads_node(self.needs(expr)):
            self.notes.append(Note(expr.span, self.facts([expr])))

    def _reads_node(self, slots: frozenset[int]) -> bool:
        return self.slots.node in slots or not slots.isdisjoint(self._scope.definitions)

    def definition(self, slot: int) -> TypedExpr | None:
        return self._scope.definitions.get(slot)

    def fn(self, name: str) -> CheckedFn:
        """Return a function of a rule file; NotColumnar for a plugin's."""
        fn = self._functions.fns[name]
        if not isinstance(fn, CheckedFn):
            raise NotColumnar
        return fn
