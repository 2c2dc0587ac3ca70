"""The events that can cure a rejection, derived from the reads of a rule: nobody writes them by hand.

`facts` finds the facts that would have to change, with their directions; `kdsl/check/views/*.events.yaml`
lists the events that change each fact. Every event may change a fact that is not in that file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from kdsl.base.events import EVERYTHING, EventPattern, Resource, merged, read_pattern
from kdsl.check.analyses.facts import (
    Direction,
    Fact,
    FactDirections,
    FactFinder,
    FieldOwner,
    PodCounts,
    pod_counts,
    predicate_facts,
)
from kdsl.check.model.devices import CheckedDevice, CheckedTest
from kdsl.check.model.rule_set import (
    CheckedLet,
    CheckedPredicate,
    CheckedPreemption,
    CheckedQueue,
    Fns,
)
from kdsl.check.model.traversal import expressions_of
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.check.views.view import Views, load_views, read_views_file

Patterns = tuple[EventPattern, ...]

NODE_ADDED: Final = read_pattern("Node/ADD")
_LOCAL_WORDS: Final = frozenset({"node.static", "node.usage"})
_CARD_USE: Final = frozenset({"Device.used", "Device.usedMemory", "Device.usedCores", "Device.tenants"})
_NOT_LOCAL: Final = frozenset({"Node.images"})
"""The words of `reads` that the cache fills in after the event, while it builds a snapshot."""
_OWN_CLAIMS: Final = frozenset({Fact("Cluster.claims", FieldOwner.SELF)})
_OF_VOLUMES: Final = frozenset(
    Fact(name, owner)
    for name in (
        *("Node.usedVolumes", "Cluster.users", "Cluster.mountedVolumes"),
        *("Cluster.usedVolumeCount", "Cluster.newVolumeCount"),
    )
    for owner in (FieldOwner.SELF, FieldOwner.OTHER, FieldOwner.UNKNOWN)
)


@dataclass(frozen=True, slots=True)
class FactEvents:
    """The events that raise a fact, and the events that lower it."""

    rises: Patterns
    falls: Patterns

    def towards(self, direction: Direction) -> Patterns:
        """Return the events that can move the fact in a direction."""
        return (self.rises if direction & Direction.UP else ()) + (
            self.falls if direction & Direction.DOWN else ()
        )


@dataclass(frozen=True, slots=True)
class EventTable:
    """The events file of one Kubernetes minor. A value of `words` is (always, otherwise); those of `exact`
    need no `always` for facts of the file.
    """

    facts: Mapping[str, FactEvents]
    words: Mapping[str, tuple[Patterns, Patterns]]
    exact: frozenset[str] = frozenset()

    def always(self, word: str) -> Patterns:
        """Return the events that may cure every rule that reads any part of the word."""
        return self.words.get(_word(word), ((), ()))[0]

    def otherwise(self, word: str, direction: Direction) -> Patterns:
        """Return the events that change the word as a whole, or the field of the pod that it names."""
        view, _, field = word.partition(".")
        if view == "pod" and f"Pod.{field}" in self.facts:
            return self.facts[f"Pod.{field}"].towards(direction)
        found = self.words.get(_word(word))
        return EVERYTHING if found is None else found[0] + found[1]


@dataclass(frozen=True, slots=True)
class Cures:
    """The events that can change a rule's answer for a pod that it rejected.

    With `is_local` the answer for a node depends on that node and the pod alone. Running the rule on the
    changed node then decides exactly. With `own_claims` only the pod's own PersistentVolumeClaims count, with
    `volumes_only` only those other pods that have volumes. With `counts` placed pods only matter for these.
    """

    patterns: Patterns
    is_local: bool
    own_claims: bool = False
    volumes_only: bool = False
    counts: PodCounts = field(default_factory=dict, compare=False)


def predicate_cures(rule: CheckedPredicate, fns: Fns) -> Cures:
    """Derive the events for a predicate, without those of its tightenings."""
    views = load_views()
    facts = predicate_facts(rule, views, fns)
    patterns = _patterns(facts, rule.reads, views)
    if rule.narrow is not None:
        patterns = merged((*patterns, NODE_ADDED))
    words = {word for word in rule.reads if not word.startswith("pod.")}
    is_local = words <= _LOCAL_WORDS and not any(fact.name in _NOT_LOCAL for fact in facts)
    own_claims = _come_from(_OWN_CLAIMS, Resource.PERSISTENT_VOLUME_CLAIM, facts, views)
    volumes_only = _come_from(_OF_VOLUMES, Resource.ASSIGNED_POD, facts, views)
    counts: PodCounts = {}
    if not is_local:
        asked, others = pod_counts(rule, views, fns)
        if _come_from(frozenset(), Resource.ASSIGNED_POD, others, views):
            counts = asked
    return Cures(patterns, is_local, own_claims, volumes_only, counts)


def _come_from(known: frozenset[Fact], resource: Resource, facts: FactDirections, views: Views) -> bool:
    """Return whether all facts that events of a resource change are among those of `known`."""
    return all(
        fact in known
        for fact, direction in facts.items()
        if any(pattern.resource in (resource, Resource.ANY) for pattern in _of_fact(fact, direction, views))
    )


def _facts_of(
    conditions: Iterable[TypedExpr],
    lets: Iterable[CheckedLet],
    scope: Mapping[str, Var],
    fns: Fns,
    has_parts: bool = False,
) -> FactDirections:
    """Return the facts that can make conditions true."""
    finder = FactFinder(load_views(), fns, scope, has_parts=has_parts)
    finder.all_lets(lets)
    for condition in conditions:
        finder.seek(condition, Direction.UP)
    return finder.found


def queue_cures(rule: CheckedQueue, fns: Fns) -> Cures:
    """Derive the events that can admit a gated pod to the queue."""
    facts = _facts_of([each.condition for each in rule.admit], rule.lets, rule.scope, fns)
    return Cures(_patterns(facts, frozenset(), load_views()), False)


def preemption_cures(rule: CheckedPreemption, fns: Fns) -> Patterns:
    """Derive the events that can let a pod preempt, or make other pods its victims."""
    conditions = [*(each.condition for each in rule.eligible), rule.victim]
    found = _facts_of(conditions, rule.lets, rule.scope, fns)
    # A pod keeps its priority, and nearly every preemption compares priorities.
    facts = {fact: direction for fact, direction in found.items() if fact.name != "Pod.priority"}
    return _patterns(facts, frozenset(), load_views())


def device_cures(device: CheckedDevice, fns: Fns) -> tuple[bool, bool]:
    """Return which pods on a node can make a device accept it, beside those with cards that leave.

    First whether new pods with cards can: a condition wants a card to be used. Then whether all pods count: a
    condition, the charge or the choice reads their requests. A condition for which it is unclear whether use
    helps or harms, as with `==`, counts as one that it harms: else each placement would wake all pods that
    wait for cards.
    """
    wants_use = False
    for section in (device.gates, device.fit):
        lets = [step for step in section.steps if isinstance(step, CheckedLet)]
        for test in section.steps:
            if not isinstance(test, CheckedTest):
                continue
            found = _facts_of([test.condition], lets, section.scope, fns, has_parts=True)
            for fact, direction in found.items():
                wants_use |= fact.name in _CARD_USE and direction is Direction.UP
    finder = FactFinder(load_views(), fns, {}, has_parts=True)
    for part in (device.gates, device.charge, device.order, device.fit, device.choosers):
        for expr in expressions_of(part):
            finder.seek(expr, Direction.EITHER)
    return wants_use, any(fact.name == "DeviceNode.requested" for fact in finder.found)


def _patterns(facts: FactDirections, reads: Iterable[str], views: Views) -> Patterns:
    table = load_events(views.minor)
    known = [_words_of(fact.name, views) for fact in facts if fact.name in table.facts]
    unknown = [_words_of(fact.name, views) for fact in facts if fact.name not in table.facts]
    found: list[EventPattern] = []
    for word in sorted(reads):
        is_exact = word in table.exact and any(word in each for each in known)
        if not is_exact or any(word in each for each in unknown):
            found.extend(table.always(word))
    for fact, direction in facts.items():
        found.extend(_of_fact(fact, direction, views))
    return merged(found)


def _of_fact(fact: Fact, direction: Direction, views: Views) -> Patterns:
    """Return the events that can move a fact in a direction."""
    table = load_events(views.minor)
    changes = table.facts.get(fact.name)
    if changes is not None:
        patterns = changes.towards(direction)
    else:
        patterns = tuple(
            pattern for word in _words_of(fact.name, views) for pattern in table.otherwise(word, direction)
        )
    is_pod = any(pattern.resource is Resource.TARGET_POD for pattern in patterns)
    return tuple(_of_owner(patterns, fact.owner)) if is_pod else patterns


def _words_of(name: str, views: Views) -> tuple[str, ...]:
    """Return the words of `reads` behind a fact; a fact that is such a word is its own."""
    view, _, member = name.rpartition(".")
    found = views.types.get(view)
    if found is None:
        return (name,)
    reads = found.fields[member].reads if member in found.fields else found.methods[member].reads
    return tuple(sorted(reads))


def _of_owner(patterns: Patterns, owner: FieldOwner) -> Iterator[EventPattern]:
    for pattern in patterns:
        if pattern.resource is not Resource.TARGET_POD:
            yield pattern
            continue
        if owner & FieldOwner.SELF:
            yield pattern
        if owner & FieldOwner.OTHER:
            yield EventPattern(Resource.ASSIGNED_POD, pattern.actions)


def _word(word: str) -> str:
    return "pod" if word.startswith("pod.") else word


@cache
def load_events(minor: str = "1.36") -> EventTable:
    """Return the events file of a Kubernetes minor, cached."""
    return read_events(read_views_file(minor, "events"), load_views(minor))


def read_events(data: Any, views: Views) -> EventTable:
    """Convert a parsed events file; raises ValueError naming a fact that the views do not have."""
    for name in data["facts"]:
        view, _, member = name.rpartition(".")
        found = views.types.get(view)
        if found is None or (member not in found.fields and member not in found.methods):
            raise ValueError(f"facts: the views have no {name!r}")
    words = {
        word: (_read(spec.get("always", ())), _read(spec.get("otherwise", ())))
        for word, spec in data["words"].items()
    }
    exact = frozenset(word for word, spec in data["words"].items() if spec.get("exact"))
    return EventTable({name: _changes(spec) for name, spec in data["facts"].items()}, words, exact)


def _changes(spec: Any) -> FactEvents:
    if isinstance(spec, dict):
        return FactEvents(_read(spec["rises"]), _read(spec["falls"]))
    patterns = _read(spec)
    return FactEvents(patterns, patterns)


def _read(texts: Iterable[str]) -> Patterns:
    return tuple(map(read_pattern, texts))
