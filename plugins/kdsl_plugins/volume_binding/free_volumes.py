"""The volumes that are free for claims, found by the labels of a node.

The node affinity of a local volume names its node, so that nearly all volumes are out of reach of a node.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Final, TypeAlias

from kdsl.base.counts import change_count
from kdsl.cluster.objects.selectors import LabelRequirement, Operator, SelectorTerm
from kdsl.cluster.objects.volumes import VolumeInfo

MAX_VALUES: Final = 64
"""A condition with more values of a label does not serve to find volumes: it costs more than it saves."""

Label: TypeAlias = tuple[str, str]
Labels: TypeAlias = tuple[Label, ...]
"""Labels of which a node has one where a condition holds."""
Entry: TypeAlias = tuple[int, str, VolumeInfo]
"""A volume after its capacity, in billionths of bytes, and its name, which no other volume has."""


class FreeVolumes:
    """Volumes, smallest first, each under labels of which every node that can reach it has one."""

    def __init__(self, volumes: Iterable[VolumeInfo] = ()) -> None:
        # The entry of each volume by name, with its labels; None if it may be in reach of any node.
        self._entries: dict[str, tuple[Entry, Collection[Label] | None]] = {}
        self._by_label: dict[Label, list[Entry]] = {}
        self._others: list[Entry] = []
        # The number of conditions that name a value of a label, and of other conditions on a label.
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._unlisted: Counter[str] = Counter()
        self._label_keys: Counter[str] = Counter()
        added = list(volumes)
        for volume in added:
            self._count(volume, 1)
        for volume in added:
            self._add(volume)

    @property
    def label_keys(self) -> Collection[str]:
        """The labels of nodes that decide about the volumes."""
        return self._label_keys.keys()

    def named(self, key: str) -> Collection[str] | None:
        """Return the values of a label that decide; all others are alike. None if any value may decide."""
        return None if key in self._unlisted else self._counts.get(key, {}).keys()

    def put(self, volume: VolumeInfo) -> None:
        """Add a volume, which must not be there."""
        self._count(volume, 1)
        self._add(volume)

    def _add(self, volume: VolumeInfo) -> None:
        entry, terms = (volume.capacity.nanos, volume.name, volume), _choices(volume)
        # By the condition that the fewest volumes have, the fewest are found in vain.
        labels = {label for term in terms for label in min(term, key=self._uses)} if all(terms) else None
        self._entries[volume.name] = entry, labels
        self._label_keys.update(volume.node_label_keys)
        if labels is None:
            insort(self._others, entry)
            return
        for label in labels:
            insort(self._by_label.setdefault(label, []), entry)

    def remove(self, name: str) -> None:
        """Remove a volume, if it is there."""
        entry, labels = self._entries.pop(name, (None, None))
        if entry is None:
            return
        volume = entry[2]
        self._count(volume, -1)
        for key in volume.node_label_keys:
            change_count(self._label_keys, key, -1)
        if labels is None:
            _drop(self._others, entry)
            return
        for label in labels:
            _drop(self._by_label[label], entry)
            if not self._by_label[label]:
                del self._by_label[label]

    def near(self, labels: Mapping[str, str]) -> Iterable[VolumeInfo]:
        """Return, in order, the volumes that a node with `labels` may reach, each once."""
        by_label = self._by_label
        found = [entries for label in labels.items() if (entries := by_label.get(label))]
        if self._others:
            found.append(self._others)
        # Most often of all: no other node reaches the volumes of a node.
        return [entry[2] for entry in found[0]] if len(found) == 1 else _merged(found)

    def _count(self, volume: VolumeInfo, by: int) -> None:
        """Count the conditions of a volume."""
        for term in () if volume.node_affinity is None else volume.node_affinity.terms:
            for one in term.labels:
                if not _is_listed(one):
                    change_count(self._unlisted, one.key, by)
                    continue
                for value in one.values:
                    change_count(self._counts[one.key], value, by)

    def _uses(self, labels: Labels) -> int:
        return sum([self._counts[key][value] for key, value in labels])


def _merged(found: Sequence[Iterable[Entry]]) -> Iterator[VolumeInfo]:
    """Yield the volumes of several lists in order, each once."""
    last = None
    for _, _, volume in merge(*found):
        if volume is not last:
            yield volume
        last = volume


def _drop(entries: list[Entry], entry: Entry) -> None:
    del entries[bisect_left(entries, entry[:2])]


def _choices(volume: VolumeInfo) -> list[list[Labels]]:
    """Return, for each term of a volume's affinity, the labels of each condition that serves to find it.

    A volume without affinity has one term without conditions; one that no node can reach has no terms.
    """
    return [[]] if volume.node_affinity is None else [_labels(term) for term in volume.node_affinity.terms]


def _labels(term: SelectorTerm) -> list[Labels]:
    return [tuple([(one.key, value) for value in one.values]) for one in term.labels if _is_listed(one)]


def _is_listed(condition: LabelRequirement) -> bool:
    """Return whether a condition lists few values of a label."""
    return condition.operator is Operator.IN and len(condition.values) <= MAX_VALUES
