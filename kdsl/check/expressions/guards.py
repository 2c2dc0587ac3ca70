"""Proofs that a key is present: they decide which map accesses cannot fail; all others are reported.

`m["k"]` is an error where `k` is missing. A rule proves its key first: by `"k" in m`, `has(m.k)` or
`m[?"k"].hasValue()` in the same condition or an earlier `require`, by ranging over the keys, or by a filter
with such a test. Expressions are pure, so two equal expressions have one value: a proof is a pair of
expressions. `resources` are total, and lists are checked at run time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.expressions.missing import missing_key
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import (
    Aggregate,
    Bind,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    KeyOf,
    Macro,
    MapOf,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import BOOL, ERROR, STRING, BindingTime


@dataclass(frozen=True, slots=True)
class HasKey:
    """`key` is a key of `map`."""

    map: TypedExpr
    key: TypedExpr


@dataclass(frozen=True, slots=True)
class EachIsKey:
    """Every item of the list `items`, or every key of the map `items`, is a key of `map`."""

    map: TypedExpr
    items: TypedExpr


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A condition with a reported error, which may be the proof of any key once it is right."""


KeyFact = HasKey | EachIsKey | Unreadable
KeyFacts = frozenset[KeyFact]

NO_FACTS: KeyFacts = frozenset()
_UNREADABLE: KeyFacts = frozenset({Unreadable()})
# An unknown function has no name here, and `m["k"]` may be meant as `"k" in m`.
_MAYBE_PROOFS = frozenset({"", "hasValue", "_[_]"})


@dataclass(slots=True)
class Guards:
    """Reports unproven accesses in the expressions of one rule. `lets` are the `let`s' values by slot."""

    diagnostics: list[Diagnostic]
    lets: dict[int, TypedExpr] = field(default_factory=dict)
    _facts_of_lets: dict[tuple[int, bool], KeyFacts] = field(default_factory=dict)

    def check(self, expr: TypedExpr, facts: KeyFacts, anchor: TypedExpr | None = None) -> None:
        """Report the accesses in `expr` that neither `facts` nor the expression's own guards prove.

        `anchor` is the condition around `expr` in front of which a guard could stand.
        """
        if expr.type == BOOL:
            anchor = anchor or expr
        match expr:
            case CallOf(function="_&&_", args=(left, right)):
                self.check(left, facts | self.when(right, True), anchor)
                self.check(right, facts | self.when(left, True), anchor)
            case CallOf(function="_||_", args=(left, right)):
                self.check(left, facts | self.when(right, False), anchor)
                self.check(right, facts | self.when(left, False), anchor)
            case CallOf(function="_?_:_", args=(condition, then, otherwise)):
                self.check(condition, facts, anchor)
                self.check(then, facts | self.when(condition, True), anchor)
                self.check(otherwise, facts | self.when(condition, False), anchor)
            case Comprehension():
                self._comprehension(expr, facts, anchor)
            case Aggregate(target=target, body=body):
                self.check(target, facts, anchor)
                self.check(body, facts)
            case Bind(variable=variable, value=value, body=body):
                self.check(value, facts, anchor)
                if expr.macro == "bind":
                    self.lets[variable.slot] = value
                # A guard for the body may use the variable, so it cannot stand further out than the body.
                self.check(body, facts)
            case _:
                for child in children(expr):
                    self.check(child, facts, anchor)
                self._access(expr, facts, anchor)

    def ranging(self, iterable: TypedExpr, variables: tuple[Var, ...], facts: KeyFacts) -> KeyFacts:
        """Return the facts about variables that range over `iterable`."""
        item = variables[0] if iterable.type.name == "map" else variables[-1]
        return frozenset(HasKey(map_, item) for map_ in self._maps_with_keys(iterable, facts))

    def when(self, expr: TypedExpr, holds: bool) -> KeyFacts:
        """Return the facts that hold where the condition is true, or where it is false."""
        match expr:
            case CallOf(function="!_", args=(operand,)):
                return self.when(operand, not holds)
            case CallOf(function=("_&&_" | "_||_") as function, args=(left, right)):
                one, other = self.when(left, holds), self.when(right, holds)
                return one | other if holds == (function == "_&&_") else one & other
            case Var(slot=slot) if slot in self.lets and expr.type != ERROR:
                if (slot, holds) not in self._facts_of_lets:
                    self._facts_of_lets[slot, holds] = self.when(self.lets[slot], holds)
                return self._facts_of_lets[slot, holds]
            case Comprehension(macro=Macro.ALL | Macro.EXISTS as macro, variables=(item,)):
                if holds != (macro is Macro.ALL):
                    return NO_FACTS
                inner = self.when(expr.body, holds)
                return inner & _UNREADABLE | frozenset(
                    EachIsKey(map_, self._canonical(expr.iterable)) for map_ in _maps_with_key(item, inner)
                )
            case _ if expr.type == ERROR:
                return NO_FACTS if _proves_nothing(expr) else _UNREADABLE
        return self._direct_facts(expr) if holds else NO_FACTS

    def _direct_facts(self, expr: TypedExpr) -> KeyFacts:
        match expr:
            case CallOf(function="@in", overload="in_map", args=(key, map_)):
                return frozenset({HasKey(self._canonical(map_), self._canonical(key))})
            case KeyOf(test=True, operand=operand, key=name):
                return frozenset({HasKey(self._canonical(operand), _text(name, expr))})
            case CallOf(function="hasValue", args=(CallOf(function="_[?_]", args=(map_, key)),)):
                return frozenset({HasKey(self._canonical(map_), self._canonical(key))})
            case CallOf(function="hasValue", args=(KeyOf(optional=True, operand=operand, key=name),)):
                return frozenset({HasKey(self._canonical(operand), _text(name, expr))})
        return NO_FACTS

    def _comprehension(self, expr: Comprehension, facts: KeyFacts, anchor: TypedExpr | None) -> None:
        self.check(expr.iterable, facts, anchor)
        inside = facts | self.ranging(expr.iterable, expr.variables, facts)
        if expr.where is not None:
            self.check(expr.where, inside)
            inside |= self.when(expr.where, True)
        self.check(expr.body, inside)

    def _maps_with_keys(self, items: TypedExpr, facts: KeyFacts) -> Iterator[TypedExpr]:
        """Yield the maps in which every item of the list, or every key of the map, is a key."""
        items = self._canonical(items)
        if items.type.name == "map":
            yield items
        for fact in facts:
            if isinstance(fact, EachIsKey) and fact.items == items:
                yield fact.map
        if not isinstance(items, Comprehension):
            return
        condition = items.body if items.macro is Macro.FILTER else items.where
        if items.macro in (Macro.FILTER, Macro.TRANSFORM_MAP):
            if condition is not None:
                inner = self.when(condition, True)
                yield from _maps_with_key(items.variables[0], inner)
            if items.macro is Macro.FILTER or items.iterable.type.name == "map":
                yield from self._maps_with_keys(items.iterable, facts)

    def _access(self, expr: TypedExpr, facts: KeyFacts, anchor: TypedExpr | None) -> None:
        match expr:
            case CallOf(overload="index_map", args=(map_, key)):
                pass
            case KeyOf(test=False, optional=False, operand=map_, key=name) if map_.type.name == "map":
                key = _text(name, expr)
            case _:
                return
        if not facts.isdisjoint(_UNREADABLE):
            return
        holder, wanted = self._canonical(map_), self._canonical(key)
        if HasKey(holder, wanted) not in facts and not _is_literal_key(holder, wanted):
            self.diagnostics.append(missing_key(expr, map_, key, anchor))

    def _canonical(self, expr: TypedExpr) -> TypedExpr:
        """Return the expression with `let`s replaced by their values, so that equal values compare equal."""
        match expr:
            case Var(slot=slot) if slot in self.lets:
                # A `let` of a part of a view stands for the view, wherever one of its fields is read.
                return replace(self._canonical(self.lets[slot]), type=expr.type)
            case FieldOf(operand=operand) | KeyOf(operand=operand):
                return replace(expr, operand=self._canonical(operand))
            case CallOf(function="_[_]", args=(operand, index)):
                return replace(expr, args=(self._canonical(operand), self._canonical(index)))
            case _:
                return expr


def _proves_nothing(expr: TypedExpr) -> bool:
    """Return whether an expression with an error is no proof of a key, whatever was meant."""
    match expr:
        case CallOf(function="@in", args=(_, container)):
            return container.type.name not in ("map", "error")
        case CallOf(function=function):
            return function not in _MAYBE_PROOFS
        case KeyOf(test=test):
            return not test
    return isinstance(expr, FieldOf)


def _maps_with_key(item: Var, facts: KeyFacts) -> Iterator[TypedExpr]:
    """Yield the maps in which `item` is proven to be a key, and which do not depend on it."""
    for fact in facts:
        if isinstance(fact, HasKey) and fact.key == item and not _reads_variable(fact.map, item):
            yield fact.map


def _reads_variable(expr: TypedExpr, variable: Var) -> bool:
    return expr == variable or any(_reads_variable(child, variable) for child in children(expr))


def _is_literal_key(map_: TypedExpr, key: TypedExpr) -> bool:
    """Return whether the map is a literal with that key."""
    return isinstance(map_, MapOf) and any(entry.key == key and not entry.optional for entry in map_.entries)


def _text(name: str, like: TypedExpr) -> Const:
    return Const(type=STRING, time=BindingTime.STATIC, reads=frozenset(), span=like.span, value=name)
