"""Pod keys: the values that the body of a macro reads of the pod it is asked about, or of one that it
captures.

Pods with equal keys get equal answers, for equal steps. So do bodies that capture pods with equal keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple, Self, TypeAlias

from msgspec import Struct

from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.rule_set import ExternalFn, Fns
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import CallFn, CallOf, Const, FieldOf, HasField, TypedExpr, Var
from kdsl.check.model.types import Type
from kdsl.cluster.objects.label_selectors import SELECTED_KEYS
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.eval.ir import looked_up
from kdsl.eval.values import Value
from kdsl.eval.views import READ_OF_PODS, attribute_of

PodKey: TypeAlias = Callable[[PodInfo], Hashable]
"""Returns the key of a pod."""

PodKeyOf: TypeAlias = Callable[[Iterable[Value]], PodKey]
"""Returns the key of a pod, given the values with selectors that a body captures."""

MAX_MAP_KEYS: Final = 32
"""The most keys of a map whose values are facts of their own: a pod has fewer labels than rules may read."""
MAX_LABEL_KEYS: Final = 8
"""The most label keys of a narrow pod key."""
MAX_NARROW_KEYS: Final = 256
"""The most narrow pod keys of a body that are kept."""

_POD: Final = "pod."
_NOBODY: Final = PodInfo("")
_SELECTING: Final = frozenset(("PodAffinityTerm", "SpreadConstraint", "PodGroup"))
_UNIQUE: Final = frozenset(("name", "uid"))
_SELECTED: Final = {"labels": "selected_labels"}
"""Fields of which the methods in `READ_OF_PODS` read no more than another field has."""


class PodFact(NamedTuple):
    """A fact of a pod: an attribute with a hashable value, or the value at a key of a map."""

    attribute: str
    key: str | None = None

    @property
    def reader(self) -> Callable[[PodInfo], Value]:
        """The function that returns the fact of a pod, None if the map does not have the key."""
        if self.key is None:
            return attrgetter(self.attribute)
        key, map_of = self.key, attrgetter(self.attribute)
        return lambda pod: map_of(pod).entries.get(key)


def whole_if_many(facts: Sequence[PodFact]) -> tuple[PodFact, ...]:
    """Return facts with a map as a whole in place of its values at more than `MAX_MAP_KEYS` keys."""
    number = Counter([fact.attribute for fact in facts])
    bounded = [fact if number[fact.attribute] <= MAX_MAP_KEYS else PodFact(fact.attribute) for fact in facts]
    return tuple(dict.fromkeys(bounded))


class PodFacts(Struct, frozen=True):
    """The pod key that consists of some facts."""

    facts: tuple[PodFact, ...]

    def __call__(self, pod: PodInfo) -> Hashable:
        # As each `PodFact`: the hot path.
        return tuple(
            [
                getattr(pod, name) if key is None else getattr(pod, name).entries.get(key)
                for name, key in self.facts
            ]
        )


def pod_key_of(body: TypedExpr, slot: int, fns: Fns) -> PodKeyOf | None:
    """Return the pod key of a body with the pod in `slot`; None if unknown, or if no two pods share one.

    If the body reads labels only by the selectors of what it captures, the key has the labels that they name.
    Else it has the labels that any selector names, or all of them. So as many pods as possible share a key.
    """
    reads = _Reads.of(body, slot, fns)
    if reads is None or _UNIQUE & (reads.by_field | reads.by_method):
        return None
    key = reads.key()
    if not reads.has_captured_selectors or "labels" not in reads.by_method - reads.by_field:
        return lambda captured: key
    reads.by_method.discard("labels")
    others = reads.key()

    @lru_cache(MAX_NARROW_KEYS)
    def narrow(keys: tuple[str, ...]) -> PodKey:
        def read(pod: PodInfo) -> Hashable:
            return others(pod), *map(pod.labels.entries.get, keys)

        return read

    def key_for(captured: Iterable[Value]) -> PodKey:
        label_keys = label_keys_of(captured)
        return key if label_keys is None else narrow(label_keys)

    return key_for


def label_keys_of(values: Iterable[Value]) -> tuple[str, ...] | None:
    """Return the keys that the selectors of terms and constraints, or of lists of them, name. None for other
    values, and for many keys.
    """
    keys: set[str] = set()
    for value in values:
        for each in value if value.__class__ is tuple else (value,):
            if each.__class__ is not PodAffinityTerm and each.__class__ is not SpreadConstraint:
                return None
            if each.selector is not None:
                keys.update([one.key for one in each.selector.requirements])
    return tuple(sorted(keys)) if len(keys) <= MAX_LABEL_KEYS else None


def may_select(type_: Type) -> bool:
    """Return whether values of a type have selectors, or hold values that do."""
    return type_.name in _SELECTING or any(map(may_select, type_.args))


def captured_key_of(body: TypedExpr, slot: int, fns: Fns) -> PodKey:
    """Return the key of the pod in `slot`, which a body captures."""
    reads = _Reads.of(body, slot, fns)
    if reads is None:
        # The fields of captured variables are among these.
        words = sorted(word for word in body.reads if word.startswith(_POD))
        return reader_of([attribute_of(word.removeprefix(_POD)) for word in words], ())
    key = reads.key()
    if "labels" not in reads.by_method:
        return key
    # A later term may name another label, in which two pods of one key differ. The version is read first: a
    # key that is too new for it is never found again, one that is too old might be.
    return lambda pod: (SELECTED_KEYS.version, key(pod))


class _UnknownReadError(Exception):
    """An expression uses a pod in another way than reading known fields."""


class _Reads:
    """The attributes of a pod that expressions read: `by_field` in rules, `by_method` in the methods of
    views, and `by_key` the values of maps at constant keys.
    """

    def __init__(self, fns: Fns) -> None:
        self.by_field: set[str] = set()
        self.by_method: set[str] = set()
        self.by_key: set[PodFact] = set()
        self._maps: set[str] = set()
        self.has_captured_selectors = True
        """Whether every selector in the body comes from a captured variable."""
        self._fns = fns
        self._followed: set[tuple[str, int | None]] = set()

    @classmethod
    def of(cls, body: TypedExpr, slot: int, fns: Fns) -> Self | None:
        """Return the reads of the pod in `slot` by a body; None if unknown."""
        reads = cls(fns)
        try:
            reads.add(body, slot)
        except _UnknownReadError:
            return None
        return reads

    def key(self) -> PodKey:
        """Return the key of a pod with these reads."""
        used = {_SELECTED.get(field, field) for field in self.by_method}
        fields = sorted(self.by_field | used)
        keys = whole_if_many(sorted([each for each in self.by_key if each.attribute not in self.by_field]))
        if not (self.by_field or keys):
            return attrgetter(*fields) if fields else lambda pod: None
        if used or self.by_field & self._maps:
            return reader_of(fields, keys)
        return PodFacts((*map(PodFact, fields), *keys))

    def add(self, expr: TypedExpr, slot: int | None) -> None:
        """Add the reads of the pod in `slot`; None if the expression does not get the pod."""
        if not isinstance(expr, Var) and may_select(expr.type):
            self.has_captured_selectors = False
        match looked_up(expr):
            case FieldOf(operand=Var() as pod) as table, Const(value=str(key)) if (
                pod.slot == slot and table.type.name == "map"
            ):
                self.by_key.add(PodFact(attribute_of(table.field), key))
                return
        match expr:
            case Var():
                if expr.slot == slot:
                    raise _UnknownReadError
            case FieldOf(operand=Var() as pod) | HasField(operand=Var() as pod) if pod.slot == slot:
                attribute = attribute_of(expr.field)
                self.by_field.add(attribute)
                if expr.type.name == "map":
                    self._maps.add(attribute)
            case CallOf(args=(receiver, Var() as pod, *others)) if (
                pod.slot == slot and expr.function in READ_OF_PODS
            ):
                self.by_method.update(READ_OF_PODS[expr.function])
                for each in (receiver, *others):
                    self.add(each, slot)
            case CallFn():
                self._follow(expr, slot)
            case _:
                for child in children(expr):
                    self.add(child, slot)

    def _follow(self, call: CallFn, slot: int | None) -> None:
        fn = self._fns[call.fn]
        if isinstance(fn, ExternalFn):
            raise _UnknownReadError  # a plugin may return anything
        inside: list[int | None] = [None]
        for param, arg in zip(fn.params, call.args, strict=True):
            if isinstance(arg, Var) and arg.slot == slot:
                inside.append(param.slot)
            else:
                self.add(arg, slot)
        for each in inside:
            if (call.fn, each) not in self._followed:
                self._followed.add((call.fn, each))
                self.add(fn.body, each)


def reader_of(fields: Sequence[str], keys: Sequence[PodFact]) -> PodKey:
    """Return a reader of attributes, with the order of maps, which a loop shows, and of facts."""
    facts = PodFacts(tuple(keys))
    if not fields:
        return facts
    maps = [each for each in fields if isinstance(getattr(_NOBODY, each), FrozenMap)]
    # The hot path: the values are the key, even a single one.
    of_fields: PodKey = attrgetter(*[f"{each}.ordered" if each in maps else each for each in fields])
    return (lambda pod: (of_fields(pod), facts(pod))) if keys else of_fields
