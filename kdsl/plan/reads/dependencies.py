"""The dependencies of a rule's answers, from its reads.

The `pod.*` reads are the signature: pods with equal values get equal answers. The `node.*` reads give the
changes of a node that matter. If a rule reads anything else, or a field that no two pods share, its answers
are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedPredicate,
    CheckedRequire,
    CheckedScore,
    CheckedStatement,
)
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import FieldOf, HasField, TypedExpr, Var
from kdsl.cluster.objects.label_selectors import SELECTED_KEYS
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.catalog import CatalogWord
from kdsl.cluster.snapshot.node_classes import NODE_CLASS_FIELDS
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.pod_keys import PodFact, PodFacts, whole_if_many
from kdsl.eval.views import attribute_of
from kdsl.plan.reads.signature_reads import split_word

_POD: Final = "pod."
_USAGE: Final = "node.usage"
_IMAGES: Final = "cluster.images"
_NODES: Final = "cluster.nodes"
_CATALOG: Final = frozenset(CatalogWord)
_KNOWN: Final = frozenset(("node.static", _USAGE, _IMAGES, _NODES, *_CATALOG))
_UNIQUE: Final = frozenset(("pod.uid", "pod.name"))


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The dependencies of a rule's answers.

    `pod_facts` are attributes of `PodInfo`, or values of maps at a key; `catalog` are parts of the catalog.
    `versions` returns the versions of the parts of the cluster that the rule reads.
    """

    pod_facts: tuple[PodFact, ...]
    on_usage: bool
    on_images: bool
    on_nodes: bool
    catalog: tuple[str, ...] = ()
    versions: Callable[[Snapshot], tuple[int, ...]] = field(init=False, compare=False, repr=False)
    signature: Callable[[PodInfo], Hashable] = field(init=False, compare=False, repr=False)
    """Returns a pod's signature. It includes the order of maps, which a loop shows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "signature", _signature(self.pod_facts))
        object.__setattr__(self, "versions", _versions(self.on_images, self.on_nodes, self.catalog))

    @classmethod
    def of(cls, reads: frozenset[str]) -> Dependencies | None:
        """Return the dependencies of a rule with these reads; None if its answers cannot be shared."""
        pod = {word for word in reads if word.startswith(_POD)}
        if reads - pod - _KNOWN or reads & _UNIQUE:
            return None
        facts = whole_if_many([*map(_fact, sorted(pod))])
        catalog = tuple(sorted(reads & _CATALOG))
        return cls(facts, _USAGE in reads, _IMAGES in reads, _NODES in reads, catalog)


def _fact(word: str) -> PodFact:
    name, key = split_word(word.removeprefix(_POD))
    return PodFact(attribute_of(name), key)


def reads_of(conditions: Iterable[TypedExpr]) -> frozenset[str]:
    """Return the reads of several expressions together."""
    return frozenset().union(*(each.reads for each in conditions))


def _reader(fields: tuple[str, ...]) -> Callable[[object], tuple[Any, ...]]:
    match fields:
        case ():
            return lambda thing: ()
        case (only,):
            read = attrgetter(only)
            return lambda thing: (read(thing),)
    return attrgetter(*fields)


def _signature(facts: tuple[PodFact, ...]) -> Callable[[PodInfo], Hashable]:
    """Return a reader of the signature with these facts of pods."""
    fields = [fact.attribute for fact in facts if fact.key is None]
    keys = PodFacts(tuple([fact for fact in facts if fact.key is not None and fact.attribute not in fields]))
    reads_selected_labels = "selected_labels" in fields
    maps = [each for each in fields if isinstance(getattr(PodInfo(""), each), FrozenMap)]
    read = _reader(tuple([each for each in fields if each not in maps]))
    contents = [attrgetter(f"{each}.entries") for each in maps]

    def signature(pod: PodInfo) -> Hashable:
        # Pods that differ in a label which no selector names have one signature, until one names it: equal
        # values meant less before another version.
        version = SELECTED_KEYS.version if reads_selected_labels else 0
        return version, read(pod), tuple([tuple(content(pod).items()) for content in contents])

    # The hot path: the values are the signature, even a single one.
    is_plain = fields and not (maps or reads_selected_labels)
    of_fields: Callable[[PodInfo], Hashable] = attrgetter(*fields) if is_plain else signature
    return (lambda pod: (of_fields(pod), keys(pod))) if keys.facts else of_fields


def _versions(
    on_images: bool, on_nodes: bool, catalog: tuple[str, ...]
) -> Callable[[Snapshot], tuple[int, ...]]:
    """Return a reader of the versions of parts of the cluster."""
    versions = _reader(("images_version",) * on_images + ("nodes_version",) * on_nodes)
    if not catalog:
        return versions
    return lambda snapshot: (*versions(snapshot), *map(snapshot.catalog.version, catalog))


def reads_node_class_only(rule: CheckedPredicate | CheckedScore) -> bool:
    """Return whether a rule's reads of a node are all in `NODE_CLASS_FIELDS`."""
    node = rule.scope["node"].slot
    return all(_reads_class_fields(expr, node) for expr in expressions_of_rule(rule))


def _reads_class_fields(expr: TypedExpr, node: int) -> bool:
    match expr:
        case Var(slot=slot):
            return slot != node
        case FieldOf(operand=Var(slot=slot), field=name) | HasField(operand=Var(slot=slot), field=name):
            if slot == node:
                return attribute_of(name) in NODE_CLASS_FIELDS
    return all(_reads_class_fields(child, node) for child in children(expr))


def expressions_of_rule(rule: CheckedPredicate | CheckedScore) -> Iterable[TypedExpr]:
    """Yield the expressions of a rule."""
    yield from rule.applies
    if rule.on_error is not None and rule.on_error.reason is not None:
        yield from rule.on_error.reason.holes
    if isinstance(rule, CheckedScore):
        yield from (each.value for each in rule.lets)
        yield from rule.ignores
        yield rule.value
        if rule.normalize.by is not None:
            yield rule.normalize.by
        return
    if rule.narrow is not None:
        # `narrow to` rejects nodes by name.
        yield rule.scope["node"]
        yield rule.narrow.names
        yield from rule.narrow.reason.holes
    yield from expressions_of_body(rule.body)


def expressions_of_body(statements: Iterable[CheckedStatement]) -> Iterable[TypedExpr]:
    """Yield the expressions of statements."""
    for statement in statements:
        match statement:
            case CheckedLet(value=value):
                yield value
            case CheckedRequire(condition=condition, reason=reason):
                yield condition
                yield from reason.holes
            case CheckedForEach(iterable=iterable, where=where, body=body):
                yield iterable
                if where is not None:
                    yield where
                yield from expressions_of_body(body)
