"""The facts that would have to change, with their directions, for an expression to change in one direction.

A bool rises when it becomes true, a list when it gains an item. `amount <= node.allocatable[r] -
node.requested[r]` becomes true only where `allocatable` rises, or `requested` or `amount` falls. The
operators listed here pass a direction on or reverse it; with every other operator, both directions matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import reduce
from operator import or_
from typing import Final

from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedPredicate,
    CheckedRequire,
    CheckedStatement,
    ExternalFn,
    Fns,
)
from kdsl.check.model.traversal import children, walk
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
    Macro,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import BYTES, RESOURCES, STRING, Type
from kdsl.check.views.view import Method, Views


class Direction(IntFlag):
    """The direction in which a value changes."""

    NONE = 0
    UP = 1
    DOWN = 2
    EITHER = 3

    @property
    def reversed(self) -> Direction:
        """The direction of the operand that moves its negation in this direction."""
        return self if self in (Direction.NONE, Direction.EITHER) else Direction.EITHER ^ self


class FieldOwner(IntFlag):
    """The pod that a field belongs to: the waiting pod, another pod, or an unknown one."""

    SELF = 1
    OTHER = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Fact:
    """A field or method of a view, as `View.name`, or a word of `reads` where no field is more exact."""

    name: str
    owner: FieldOwner = FieldOwner.OTHER


FactDirections = Mapping[Fact, Direction]

_SAME: Final = frozenset(
    {
        "_&&_",
        "_||_",
        "size",
        "asInteger",
        "asApproximateFloat",
        "math.least",
        "math.greatest",
        "double",
        "int",
    }
)
_COUNTS_BY_DOMAIN: Final = frozenset({"TopologyCount", "PodTermCount"})
_COUNTS: Final = frozenset(
    {"size", "Cluster.users", *(f"{view}.{name}" for view in _COUNTS_BY_DOMAIN for name in ("here", "total"))}
)
"""Functions that never return less than 0. For sums over pods, no direction is sought."""
TERMS_OF_PODS: Final = {
    "requiredAffinityTerms": "requiredAffinity",
    "requiredAntiAffinityTerms": "requiredAntiAffinity",
}
"""The fields of the cluster with the terms of all pods, and those of a pod with its own."""
_OTHERS: Final = frozenset({"cluster.pods", "node.usage", "undeclared"})
"""The words for whatever reads other pods."""
_LESS: Final = frozenset({"_<_", "_<=_", "isLessThan"})
_GREATER: Final = frozenset({"_>_", "_>=_", "isGreaterThan"})

PodCounts = Mapping[int, tuple[Aggregate, Direction]]
"""Counts of pods, or of their terms, by identity, with the directions in which they may cure a rejection."""


def pod_counts(rule: CheckedPredicate, views: Views, fns: Fns) -> tuple[PodCounts, FactDirections]:
    """Return the counts of a predicate that ask each placed pod by itself, and the other facts of the rule:
    what a pod changes beside these, it changes in no other way.
    """
    finder = FactFinder(views, fns, rule.scope, counts={})
    finder.predicate(rule)
    return finder.counts or {}, finder.found


def predicate_facts(rule: CheckedPredicate, views: Views, fns: Fns) -> FactDirections:
    """Return the facts that can make a predicate accept a node that it rejects, without its tightenings."""
    finder = FactFinder(views, fns, rule.scope)
    finder.predicate(rule)
    return finder.found


class FactFinder:
    """Collects the facts behind expressions of one rule in `found`, each with its directions.

    With `has_parts` they include fields of values that are parts of others, such as the cards of a node. With
    `counts`, counts of pods are collected there instead of their facts.
    """

    def __init__(
        self,
        views: Views,
        fns: Fns,
        scope: Mapping[str, Var],
        *,
        has_parts: bool = False,
        counts: dict[int, tuple[Aggregate, Direction]] | None = None,
    ) -> None:
        self._has_parts = has_parts
        self.counts = counts
        self.found: dict[Fact, Direction] = {}
        self._views = views
        self._fns = fns
        self._scope = {variable.slot for variable in scope.values()}
        self._pod = scope["pod"].slot if "pod" in scope else None
        # Of the parameters of a function.
        self._owners: Mapping[int, FieldOwner] = {}
        self._lets: dict[int, TypedExpr] = {}
        self._items: dict[int, tuple[TypedExpr, Direction]] = {}
        self._done: set[tuple[int | str, Direction]] = set()

    def predicate(self, rule: CheckedPredicate) -> None:
        """Add the facts that can make a predicate accept a node that it rejects."""
        # Before the conditions that use them: what is sought in a name is sought once.
        self.all_lets(each for each in rule.body if isinstance(each, CheckedLet))
        for condition in rule.applies:
            self.seek(condition, Direction.DOWN)
        if rule.narrow is not None:
            self.seek(rule.narrow.names, Direction.EITHER)
        self.statements(rule.body)

    def statements(self, body: Iterable[CheckedStatement]) -> None:
        """Add the facts that can make every `require` of a body hold."""
        for statement in body:
            match statement:
                case CheckedLet(variable=variable, value=value):
                    self.let(variable, value)
                case CheckedRequire(condition=condition):
                    self.seek(condition, Direction.UP)
                case CheckedForEach(variables=variables, iterable=iterable, where=where, body=inner):
                    self._bind_items(variables, iterable)
                    self.seek(iterable, Direction.DOWN)
                    if where is not None:
                        self.seek(where, Direction.DOWN)
                    self.statements(inner)

    def let(self, variable: Var, value: TypedExpr) -> None:
        """Record the value of a name; its facts count where the name is used."""
        self._lets[variable.slot] = value

    def all_lets(self, lets: Iterable[CheckedLet]) -> None:
        """Record the values of all names of a rule or section."""
        for each in lets:
            self.let(each.variable, each.value)

    def seek(self, expr: TypedExpr, goal: Direction) -> None:
        """Add the facts that can move an expression in the direction of `goal`."""
        match expr:
            case Var(slot=slot):
                self._variable(slot, goal)
            case FieldOf() | HasField():
                self._field(expr, goal if isinstance(expr, FieldOf) else Direction.EITHER)
            case KeyOf(operand=operand):
                self.seek(operand, goal if operand.type == RESOURCES else Direction.EITHER)
            case CallFn(fn=fn, args=args):
                self._any(args)
                self._function(fn, args)
            case CallOf():
                self._call(expr, goal)
            case Comprehension():
                self._comprehension(expr, goal)
            case Aggregate(target=target) if self.counts is not None and self._asks_pods(expr):
                _, known = self.counts.get(id(expr), (expr, Direction.NONE))
                self.counts[id(expr)] = expr, known | goal
                if not isinstance(target, FieldOf):
                    self.seek(target, Direction.EITHER)
            case Aggregate(target=target, variable=variable, body=body):
                self._items[variable.slot] = target, Direction.NONE
                self._any((target, body))
                self._words(sorted(expr.reads - target.reads - body.reads))
            case Bind(variable=variable, value=value, body=body):
                self.let(variable, value)
                self.seek(body, goal)
            case _:
                self._any(children(expr))

    def _asks_pods(self, expr: Aggregate) -> bool:
        """Return whether a count asks each placed pod by itself: about that pod, or about its terms."""
        target, own = expr.target, expr.variable.slot
        if expr.macro != "count" or not (
            expr.variable.type.name == "PlacedPod"
            or (expr.view == "PodTerms" and isinstance(target, FieldOf) and target.field in TERMS_OF_PODS)
        ):
            return False
        for part in walk(expr.body):
            match part:
                case Aggregate():
                    return False
                case Var(slot=slot, reads=reads):
                    is_of_others = slot != own and bool(reads & _OTHERS)
                case FieldOf(view=view, field=field) | HasField(view=view, field=field):
                    is_of_others = bool(self._views.types[view].fields[field].reads & _OTHERS)
                case CallFn(fn=name):
                    fn = self._fns[name]
                    is_of_others = bool((fn.reads if isinstance(fn, ExternalFn) else fn.body.reads) & _OTHERS)
                case CallOf(function=function):
                    method = self._method(function)
                    is_of_others = method is not None and bool(method.reads & _OTHERS)
                case _:
                    continue
            if is_of_others:
                return False
        return True

    def _any(self, parts: Iterable[TypedExpr]) -> None:
        for part in parts:
            self.seek(part, Direction.EITHER)

    def _add(self, name: str, goal: Direction, owner: FieldOwner) -> None:
        fact = Fact(name, owner)
        self.found[fact] = self.found.get(fact, Direction.NONE) | goal

    def _variable(self, slot: int, goal: Direction) -> None:
        if (slot, goal) in self._done:
            return
        self._done.add((slot, goal))
        if slot in self._lets:
            self.seek(self._lets[slot], goal)
        elif slot in self._items:
            iterable, direction = self._items[slot]
            if direction:
                self.seek(iterable, goal & direction if iterable.type == RESOURCES else direction)

    def _field(self, expr: FieldOf | HasField, goal: Direction) -> None:
        field = self._views.types[expr.view].fields[expr.field]
        if field.reads or self._has_parts:
            self._add(f"{field.view}.{field.name}", goal, self._owner(expr.operand))
        self._any((expr.operand,))

    def _owner(self, expr: TypedExpr) -> FieldOwner:
        """Return the owner of the pod that an expression evaluates to."""
        if isinstance(expr, Var):
            if expr.slot == self._pod:
                return FieldOwner.SELF
            if expr.slot in self._owners:
                return self._owners[expr.slot]
            if expr.slot in self._lets:
                return self._owner(self._lets[expr.slot])
            if expr.slot in self._items or expr.slot in self._scope:
                return FieldOwner.OTHER
        return FieldOwner.UNKNOWN

    def _function(self, name: str, args: Sequence[TypedExpr]) -> None:
        """Add the reads of a function's body. Of its arguments only pods are traced: whose they are."""
        fn = self._fns.get(name)
        if fn is None:
            return
        owners = [self._owner(arg) for arg in args]
        call = f"{name} {owners}"
        if (call, Direction.EITHER) in self._done:
            return
        self._done.add((call, Direction.EITHER))
        if isinstance(fn, ExternalFn):
            self._words(fn.reads)
            for arg in args:
                self._parts(arg.type, arg.reads)
            return
        inner = FactFinder(self._views, self._fns, {}, has_parts=self._has_parts)
        inner._owners = {param.slot: owner for param, owner in zip(fn.params, owners, strict=True)}
        inner.found, inner._done = self.found, {key for key in self._done if isinstance(key[0], str)}
        inner.seek(fn.body, Direction.EITHER)
        self._done |= {key for key in inner._done if isinstance(key[0], str)}

    def _parts(self, kind: Type, reads: frozenset[str]) -> None:
        """Add the fields of a value whose facts belong to those of the value, as the volume of a claim: a
        plugin that takes the value reads them without declaring it.
        """
        view = self._views.types.get(kind.name)
        for field in view.fields.values() if view is not None else ():
            if field.reads and field.reads <= reads:
                self._add(f"{field.view}.{field.name}", Direction.EITHER, FieldOwner.UNKNOWN)
        for part in kind.args:
            self._parts(part, reads)

    def _words(self, words: Iterable[str]) -> None:
        for word in words:
            self._add(word, Direction.EITHER, FieldOwner.UNKNOWN)

    def _call(self, expr: CallOf, goal: Direction) -> None:
        method = self._method(expr.function)
        if method is not None:
            if method.reads:
                owners = [self._owner(arg) for arg in expr.args if self._views.is_a(arg.type.name, "Pod")]
                owner = reduce(or_, owners) if owners else FieldOwner.UNKNOWN
                self._add(f"{method.view}.{method.name}", goal, owner)
            args = expr.args
            if method.view in _COUNTS_BY_DOMAIN:
                self.seek(expr.args[0], goal)
                args = expr.args[1:]
            self._any(args)
            return
        for arg, direction in self._directions(expr, goal):
            self.seek(arg, direction)
        if expr.function not in self._fns:
            own = expr.reads.difference(*(arg.reads for arg in expr.args))
            self._words(sorted(own))

    def _method(self, function: str) -> Method | None:
        view, _, name = function.rpartition(".")
        found = self._views.types.get(view)
        return None if found is None else found.methods.get(name)

    def _directions(self, expr: CallOf, goal: Direction) -> Iterator[tuple[TypedExpr, Direction]]:
        """Pair each argument with the direction that can move the call's result towards `goal`."""
        args, function = expr.args, expr.function
        either = Direction.EITHER
        if function in _SAME:
            wanted = [goal] * len(args)
        elif function in ("!_", "-_"):
            wanted = [goal.reversed]
        elif function in _LESS or function in _GREATER:
            up = goal if function in _GREATER else goal.reversed
            wanted = [up, up.reversed]
        elif function in ("_==_", "_!=_") and _is_count(args[0]) and _is_zero(args[1]):
            wanted = [goal if function == "_!=_" else goal.reversed, either]
        elif function in ("_+_", "add") and expr.type not in (STRING, BYTES):
            wanted = [goal, goal]
        elif function in ("_-_", "sub"):
            wanted = [goal, goal.reversed]
        elif function in ("_*_", "_/_") and _is_positive(args[1]):
            wanted = [goal, either]
        elif function == "_*_" and _is_positive(args[0]):
            wanted = [either, goal]
        elif function == "_?_:_":
            wanted = [either, goal, goal]
        elif function == "@in":
            wanted = [either, goal]
        elif expr.overload == "index_resources":
            wanted = [goal, either]
        else:
            wanted = [either] * len(args)
        yield from zip(args, wanted, strict=True)

    def _comprehension(self, expr: Comprehension, goal: Direction) -> None:
        self._bind_items(expr.variables, expr.iterable)
        either = Direction.EITHER
        iterable, body = either, either
        if expr.macro is Macro.ALL:
            iterable, body = goal.reversed, goal
        elif expr.macro in (Macro.EXISTS, Macro.FILTER):
            iterable, body = goal, goal
        self.seek(expr.iterable, iterable)
        if expr.where is not None:
            self.seek(expr.where, either)
        self.seek(expr.body, body)

    def _bind_items(self, variables: tuple[Var, ...], iterable: TypedExpr) -> None:
        """Record the values that loop variables range over.

        A changed item of a list counts as one removed and one added item: the direction of the list covers
        both. The value of a map changes in place.
        """
        for variable in variables:
            self._items[variable.slot] = iterable, Direction.NONE
        if len(variables) == 2 and iterable.type.name != "list":
            self._items[variables[1].slot] = iterable, Direction.EITHER


def _is_positive(expr: TypedExpr) -> bool:
    return isinstance(expr, Const) and isinstance(expr.value, int | float) and expr.value > 0


def _is_zero(expr: TypedExpr) -> bool:
    return isinstance(expr, Const) and type(expr.value) is int and expr.value == 0


def _is_count(expr: TypedExpr) -> bool:
    return isinstance(expr, CallOf) and expr.function in _COUNTS
