"""The volumes that are free for a claim, found by the labels of a node.

The node affinity of a local volume names its node, so that nearly all volumes are out of reach of a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from typing import Final, TypeAlias

from kdsl.cluster.objects.selectors import Operator, SelectorTerm
from kdsl.cluster.objects.volumes import VolumeInfo

MAX_VALUES: Final = 64
"""A condition with more values of a label does not serve to find volumes: it costs more than it saves."""

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Labels of which a node has one where a condition holds."""


class FreeVolumes:
    """Volumes, smallest first, each under labels of which every node that can reach it has one."""

    def __init__(self, volumes: Iterable[VolumeInfo]) -> None:
        self.in_order = tuple(sorted(volumes, key=lambda volume: (volume.capacity.nanos, volume.name)))
        self._by_label: dict[tuple[str, str], list[int]] = {}
        # Volumes that may be in reach of any node.
        self._others: list[int] = []
        choices = [_choices(volume) for volume in self.in_order]
        counts = Counter(label for terms in choices for term in terms for labels in term for label in labels)

        def count(labels: Labels) -> int:
            return sum([counts[label] for label in labels])

        for place, terms in enumerate(choices):
            if not all(terms):
                self._others.append(place)
                continue
            # By the condition that the fewest volumes have, the fewest are found in vain.
            for label in {label for term in terms for label in min(term, key=count)}:
                self._by_label.setdefault(label, []).append(place)

    def near(self, labels: Mapping[str, str]) -> Iterator[VolumeInfo]:
        """Yield, in order, the volumes that a node with `labels` may reach, each once."""
        found = [places for label in labels.items() if (places := self._by_label.get(label))]
        last = -1
        for place in merge(self._others, *found):
            if place != last:
                yield self.in_order[place]
            last = place


def _choices(volume: VolumeInfo) -> list[list[Labels]]:
    """Return, for each term of a volume's affinity, the labels of each condition that serves to find it.

    A volume without affinity has one term without conditions; one that no node can reach has no terms.
    """
    return [[]] if volume.node_affinity is None else [_labels(term) for term in volume.node_affinity.terms]


def _labels(term: SelectorTerm) -> list[Labels]:
    return [
        tuple([(one.key, value) for value in one.values])
        for one in term.labels
        if one.operator is Operator.IN and len(one.values) <= MAX_VALUES
    ]
