"""The evidence for a property: how often each condition that it depends on was true and false.

A law without a relevant generated pod is not shown to hold. It is proven where every condition of the rules
that could break it was both true and false in some case, and unproven otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from kdsl.check.model.rule_set import CheckedProfile
from kdsl.check.model.traversal import expressions_of, walk
from kdsl.check.model.typed import Const, TypedExpr
from kdsl.check.model.types import BOOL
from kdsl.eval.scalar.frame import Closure, Frame
from kdsl.eval.values import Value
from kdsl.lang.tree import File
from kdsl.testing.cases import LawKind
from kdsl.testing.coverage import CoveragePoint, Key, Seen, key_of, points_of
from kdsl.testing.settled import SettledConditions

Outcome = tuple[Key, bool]
"""A condition and its value."""

_BOTH: Final = {Seen.TRUE, Seen.FALSE}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition and how often it was true and false while a property was tried."""

    point: CoveragePoint
    true: int
    false: int

    @property
    def never(self) -> tuple[bool, ...]:
        """Return the values that it never had."""
        counts = ((True, self.true), (False, self.false))
        return tuple(value for value, count in counts if not count)

    @property
    def text(self) -> str:
        return " ".join(self.point.span.text.split())


@dataclass(frozen=True, slots=True)
class Proof:
    """The evidence for a property: the number of generated pods, and the conditions that they met.

    `unfinished`: the time limit came before the planned number of pods.
    """

    tried: int
    conditions: tuple[Condition, ...]
    unfinished: bool = False

    @property
    def open(self) -> tuple[Condition, ...]:
        """Return the conditions that always had one value, or none at all."""
        return tuple(each for each in self.conditions if each.never)


@dataclass(slots=True)
class ConditionProbe:
    """A probe that counts how often conditions are true and false, by their places in the text.

    A condition that the parameters of a profile settle is compiled to a constant, or not at all: it is not
    among the `compiled` ones, and no pod can change it.
    """

    compiled: set[Key] = field(default_factory=set)
    counts: dict[Outcome, int] = field(default_factory=dict)

    def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
        """Count the values of a condition."""
        if expr.type != BOOL or isinstance(expr, Const):
            return closure
        key, counts = key_of(expr.span), self.counts
        self.compiled.add(key)

        def watched(frame: Frame) -> Value:
            value = closure(frame)
            if isinstance(value, bool):
                counts[key, value] = counts.get((key, value), 0) + 1
            return value

        return watched

    def proof(self, tried: int, points: Iterable[CoveragePoint], *, unfinished: bool) -> Proof:
        """Return the counts of some conditions as a proof."""
        counts = self.counts
        conditions = (
            Condition(point, counts.get((point.key, True), 0), counts.get((point.key, False), 0))
            for point in points
            if point.key in self.compiled
        )
        return Proof(tried, tuple(conditions), unfinished)


def parts_of(kind: LawKind, profiles: Iterable[CheckedProfile]) -> list[object]:
    """Return the rules of profiles that a law can depend on.

    For a comparison, a rule that is equal in both profiles does not count: it answers the same in both, so
    its rejections break no law.
    """
    sides = [_judging(profile) for profile in profiles]
    match kind:
        case LawKind.SUBSET | LawKind.EQUAL:
            first, second = sides
            return [*_without(first, second), *_without(second, first)]
        case LawKind.ORDER_INDEPENDENT:
            return [*sides[0], *(scored.score for profile in profiles for scored in profile.scores)]
    return [
        *sides[0],
        *(part for profile in profiles for part in (profile.queue, profile.preemption) if part is not None),
        *(scored.score for profile in profiles for scored in profile.scores),
    ]


def _judging(profile: CheckedProfile) -> list[object]:
    """Return the rules that decide which nodes are feasible."""
    devices = profile.sharing.devices if profile.sharing is not None else ()
    # A profile's tightenings of a rule count by themselves: the rule may be the same elsewhere.
    tightenings = (each for rule in profile.predicates for each in rule.tightenings)
    return [*(replace(rule, tightenings=()) for rule in profile.predicates), *tightenings, *devices]


def _without(parts: Iterable[object], others: list[object]) -> Iterator[object]:
    return (part for part in parts if part not in others)


def keys_of(part: object) -> Iterator[Key]:
    """Yield the places of all expressions in a checked rule."""
    return (key_of(inner.span) for expr in expressions_of(part) for inner in walk(expr))


def conditions_of(parts: Iterable[object], files: Iterable[File]) -> list[CoveragePoint]:
    """Return the conditions of checked rules that pods and nodes decide, in the order of their texts."""
    keys: dict[Key, None] = {}
    for whole in parts:
        fixed = {key_of(expr.span) for expr in SettledConditions.of(whole).settled(whole)}
        keys.update(dict.fromkeys(key for key in keys_of(whole) if key not in fixed))
    distinct = {file.span.source.path: file for file in files}
    points = (point for file in distinct.values() for point in points_of(file))
    return [point for point in points if set(point.wanted) >= _BOTH and point.key in keys]
