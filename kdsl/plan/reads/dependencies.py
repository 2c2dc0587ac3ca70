"""The dependencies of a rule's answers, from its reads.

The `pod.*` reads are the signature: pods with equal values get equal answers. The `node.*` reads give the
changes of a node that matter. If a rule reads anything else, or a field that no two pods share, its answers
are not kept.

The epoch of a rule is the versions of the shared parts of the cluster that it reads. Kept answers are valid
while it is equal. Nodes have logs of changes instead, see `ChangedRows`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kdsl.check.model.rule_set import CheckedPredicate, CheckedScore
from kdsl.check.model.traversal import expressions_of
from kdsl.check.model.typed import TypedExpr
from kdsl.cluster.objects.label_selectors import SELECTED_KEYS
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.catalog import CatalogWord
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot, SharedState
from kdsl.cluster.snapshot.node_classes import NODE_CLASS_FIELDS
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.ir import fields_of
from kdsl.eval.scalar.pod_keys import PodFact, reader_of, whole_if_many
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

    `pod_facts` are attributes of `PodInfo`, or values of maps at a key. `versions` returns the versions of
    the parts of the cluster that the rule reads; `on_nodes` says whether it reads the set of nodes.
    """

    pod_facts: tuple[PodFact, ...]
    on_nodes: bool
    versions: Callable[[Snapshot], tuple[int, ...]]
    signature: Callable[[PodInfo], Hashable]
    """Returns a pod's signature. It includes the order of maps, which a loop shows."""

    @classmethod
    def of(cls, reads: frozenset[str]) -> Dependencies | None:
        """Return the dependencies of a rule with these reads; None if its answers cannot be shared."""
        pod = {word for word in reads if word.startswith(_POD)}
        if reads - pod - _KNOWN or reads & _UNIQUE:
            return None
        facts = whole_if_many([*map(_fact, sorted(pod))])
        versions = _versions(_IMAGES in reads, _NODES in reads, tuple(sorted(reads & _CATALOG)))
        return cls(facts, _NODES in reads, versions, _signature(facts))


def _fact(word: str) -> PodFact:
    name, key = split_word(word.removeprefix(_POD))
    return PodFact(attribute_of(name), key)


def reads_of(conditions: Iterable[TypedExpr]) -> frozenset[str]:
    """Return the reads of several expressions together."""
    return frozenset().union(*(each.reads for each in conditions))


def _signature(facts: tuple[PodFact, ...]) -> Callable[[PodInfo], Hashable]:
    """Return a reader of the signature with these facts of pods."""
    fields = [fact.attribute for fact in facts if fact.key is None]
    keys = [fact for fact in facts if fact.key is not None and fact.attribute not in fields]
    read = reader_of(fields, keys)
    if "selected_labels" not in fields:
        return read
    # Pods that differ in a label which no selector names have one signature, until one names it: equal values
    # meant less before another version.
    return lambda pod: (SELECTED_KEYS.version, read(pod))


def _versions(
    on_images: bool, on_nodes: bool, catalog: tuple[str, ...]
) -> Callable[[Snapshot], tuple[int, ...]]:
    """Return a reader of the versions of parts of the cluster."""
    names = ("images_version",) * on_images + ("nodes_version",) * on_nodes
    return lambda snapshot: (
        *[getattr(snapshot, name) for name in names],
        *map(snapshot.catalog.version, catalog),
    )


def reads_node_class_only(rule: CheckedPredicate | CheckedScore) -> bool:
    """Return whether a rule's reads of a node are all in `NODE_CLASS_FIELDS`."""
    node = rule.scope["node"].slot
    read = [fields_of(expr, node) for expr in expressions_of_rule(rule)]
    return None not in read and all(
        attribute_of(each.field) in NODE_CLASS_FIELDS for fields in read if fields for each in fields
    )


def expressions_of_rule(rule: CheckedPredicate | CheckedScore) -> Iterable[TypedExpr]:
    """Yield the expressions of a rule."""
    if isinstance(rule, CheckedScore):
        return expressions_of(
            (rule.applies, rule.on_error, rule.lets, rule.ignores, rule.value, rule.normalize)
        )
    # `narrow to` rejects nodes by name.
    narrow = () if rule.narrow is None else (rule.scope["node"], rule.narrow)
    return expressions_of((rule.applies, rule.on_error, narrow, rule.body))


VersionsOf = Callable[[LiveSnapshot], tuple[int, ...]]
"""Returns the versions of the parts of the cluster that a rule reads."""


class Epoch(NamedTuple):
    """A snapshot, and the versions of parts of the cluster in it."""

    snapshot: LiveSnapshot
    versions: tuple[int, ...]


class Epochs(dict[SharedState, Epoch]):
    """The epochs of a rule: the latest one, by the state of the parts that all nodes share. The versions are
    read again only if that state is another one.
    """

    def __init__(self, versions_of: VersionsOf) -> None:
        super().__init__()
        self._versions_of = versions_of

    def __missing__(self, state: SharedState) -> Epoch:
        live = state.snapshot
        epoch = Epoch(live, self._versions_of(live))
        # Other threads may find nothing meanwhile, and get an equal epoch.
        self.clear()
        self[state] = epoch
        return epoch
