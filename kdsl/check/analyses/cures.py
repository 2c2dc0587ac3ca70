"""The events that can cure a rejection, derived from what a rule reads: nobody writes them by hand.

`facts` says which facts would have to change and in which direction, `kdsl/check/views/*.events.yaml` which
events change them. What the file does not know may be changed by anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kdsl.base.events import EVERYTHING, EventPattern, Resource, merged, read_pattern
from kdsl.check.analyses.facts import Direction, Fact, FactFinder, Owner, predicate_facts
from kdsl.check.model.rule_set import CheckedFn, CheckedPredicate, CheckedQueue, ExternalFn
from kdsl.check.views.data_files import read_views_file
from kdsl.check.views.view import Views, load_views

Patterns = tuple[EventPattern, ...]
Fns = Mapping[str, CheckedFn | ExternalFn]

NODE_ADDED: Final = read_pattern("Node/ADD")
_LOCAL_WORDS: Final = frozenset({"node.static", "node.usage"})
_NOT_LOCAL: Final = frozenset({"Node.images"})
"""What the cache fills in when it makes a snapshot, after the event."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What makes a fact more, and what makes it less."""

    rises: Patterns
    falls: Patterns

    def towards(self, direction: Direction) -> Patterns:
        """Return what can move the fact in a direction."""
        return (self.rises if direction & Direction.UP else ()) + (
            self.falls if direction & Direction.DOWN else ()
        )


@dataclass(frozen=True, slots=True)
class EventTable:
    """The events file of one Kubernetes minor. `words` are (always, otherwise)."""

    facts: Mapping[str, Changes]
    words: Mapping[str, tuple[Patterns, Patterns]]

    def always(self, word: str) -> Patterns:
        """Return what a rule that reads the word may be cured by, whatever of it it reads."""
        return self.words.get(_word(word), ((), ()))[0]

    def otherwise(self, word: str, direction: Direction) -> Patterns:
        """Return what changes the word as a whole: for a field of the pod, what changes that."""
        view, _, field = word.partition(".")
        if view == "pod" and f"Pod.{field}" in self.facts:
            return self.facts[f"Pod.{field}"].towards(direction)
        found = self.words.get(_word(word))
        return EVERYTHING if found is None else found[0] + found[1]


@dataclass(frozen=True, slots=True)
class Cures:
    """The events that can make a rule change its mind about a pod it rejected.

    `is_local`: the answer for a node follows from that node and the pod alone, so that asking the rule about
    the node that changed decides exactly.
    """

    patterns: Patterns
    is_local: bool


def predicate_cures(rule: CheckedPredicate, fns: Fns, views: Views | None = None) -> Cures:
    """Derive the events for a predicate by itself: those of its tightenings are theirs."""
    views = views or load_views()
    facts = predicate_facts(rule, views, fns)
    patterns = _patterns(facts, rule.reads, views)
    if rule.narrow is not None:
        patterns = merged((*patterns, NODE_ADDED))
    words = {word for word in rule.reads if not word.startswith("pod.")}
    is_local = words <= _LOCAL_WORDS and not any(fact.name in _NOT_LOCAL for fact in facts)
    return Cures(patterns, is_local)


def queue_cures(rule: CheckedQueue, fns: Fns, views: Views | None = None) -> Cures:
    """Derive the events that can let a gated pod into the queue."""
    views = views or load_views()
    finder = FactFinder(views, fns, rule.scope)
    for each in rule.lets:
        finder.let(each.variable, each.value)
    for admit in rule.admit:
        finder.seek(admit.condition, Direction.UP)
    return Cures(_patterns(finder.found, frozenset(), views), False)


def _patterns(facts: Mapping[Fact, Direction], reads: Iterable[str], views: Views) -> Patterns:
    table = load_events(views.minor)
    found: list[EventPattern] = []
    for word in sorted(reads):
        found.extend(table.always(word))
    for fact, direction in facts.items():
        changes = table.facts.get(fact.name)
        if changes is not None:
            patterns = changes.towards(direction)
        else:
            patterns = tuple(
                pattern
                for word in _words_of(fact.name, views)
                for pattern in table.otherwise(word, direction)
            )
        is_pod = any(pattern.resource is Resource.TARGET_POD for pattern in patterns)
        found.extend(_of_owner(patterns, fact.owner) if is_pod else patterns)
    return merged(found)


def _words_of(name: str, views: Views) -> tuple[str, ...]:
    """Return the words that a fact reads; a fact that is a word is that word."""
    view, _, member = name.rpartition(".")
    found = views.types.get(view)
    if found is None:
        return (name,)
    reads = found.fields[member].reads if member in found.fields else found.methods[member].reads
    return tuple(sorted(reads))


def _of_owner(patterns: Patterns, owner: Owner) -> Iterator[EventPattern]:
    for pattern in patterns:
        if pattern.resource is not Resource.TARGET_POD:
            yield pattern
            continue
        if owner & Owner.SELF:
            yield pattern
        if owner & Owner.OTHER:
            yield EventPattern(Resource.ASSIGNED_POD, pattern.actions)


def _word(word: str) -> str:
    return "pod" if word.startswith("pod.") else word


@cache
def load_events(minor: str = "1.36") -> EventTable:
    """Return the events file of a Kubernetes minor; each is read once."""
    return read_events(read_views_file(minor, "events"), load_views(minor))


def read_events(data: Any, views: Views) -> EventTable:
    """Convert a parsed events file; a fact that the views do not have raises ValueError naming it."""
    for name in data["facts"]:
        view, _, member = name.rpartition(".")
        found = views.types.get(view)
        if found is None or (member not in found.fields and member not in found.methods):
            raise ValueError(f"facts: the views have no {name!r}")
    words = {
        word: (_read(spec.get("always", ())), _read(spec.get("otherwise", ())))
        for word, spec in data["words"].items()
    }
    return EventTable({name: _changes(spec) for name, spec in data["facts"].items()}, words)


def _changes(spec: Any) -> Changes:
    if isinstance(spec, dict):
        return Changes(_read(spec["rises"]), _read(spec["falls"]))
    patterns = _read(spec)
    return Changes(patterns, patterns)


def _read(texts: Iterable[str]) -> Patterns:
    return tuple(map(read_pattern, texts))
