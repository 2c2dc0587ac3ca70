"""Placed pods by label and namespace: the pods of a selector are found at a cost that grows with their
number.

A label key is indexed when a selector first uses it, by one pass over all pods, and updated from then on. So
is the namespace, as soon as the labels of a selector leave many pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeAlias

from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.selectors import LabelRequirement, Operator
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.scalar.pod_keys import PodKey
from kdsl.plan.counts.arrivals import Arrival, Pods
from kdsl.plan.counts.pod_classes import PodClasses

MAX_KEYS: Final = 64
"""The most label keys that are indexed; beyond that the index starts over."""
MAX_KEYS_OF_PODS: Final = 8
"""The most pod keys whose classes of pods are kept."""

MANY: Final = 64
"""The least number of pods for which those of some namespaces are looked for instead."""
_NAMESPACE: Final = None
"""The key of the namespace of pods, among the keys of labels."""

Posting: TypeAlias = dict[int, tuple[int, PodInfo]]
"""The pods that have a label, with their rows, by id: an id is valid as long as its pod is referenced."""


class PodIndex:
    """The pods of a live snapshot by key and value of their labels."""

    def __init__(self, live: LiveSnapshot) -> None:
        self._live = live
        self._keys: dict[str | None, dict[str, Posting]] = {}
        # The pods of each row at the last refresh.
        self._pods: dict[int, Pods] = {}
        self._classes: dict[PodKey, PodClasses] = {}

    def refresh(self, arrived: Sequence[Arrival] | None) -> None:
        """Apply the arrivals at rows; None means all rows."""
        if arrived is None:
            self._keys.clear()
            self._pods.clear()
            self._classes.clear()
            return
        if self._classes:
            for classes in self._classes.values():
                classes.stale.update([row for row, _ in arrived])
        if not self._keys:
            return
        live = self._live
        for row, pods in arrived:
            now = live.info(row).pods if live.names[row] else ()
            if pods is None:
                self._drop(self._pods.get(row, ()))
                pods = now
            self._pods[row] = now
            for key, values in self._keys.items():
                _put(values, key, row, pods)

    def matching(
        self, selector: LabelSelector, namespaces: Collection[str] | None = None
    ) -> list[tuple[int, PodInfo]] | None:
        """Return the pods that may match a selector, with their rows; None if that would be most pods.

        Only pods of some namespaces match, if they are given.
        """
        best: list[Posting] | None = None
        for requirement in selector.requirements:
            found = self._postings(requirement)
            if found is not None and (best is None or _size(found) < _size(best)):
                best = found
        if namespaces is not None and (best is None or _size(best) >= MANY):
            best = self._narrower(namespaces, best)
        if best is None:
            return None
        return [each for posting in best for each in posting.values()]

    def classes(self, key: PodKey) -> PodClasses | None:
        """Return all pods by class; None if there are too many classes."""
        classes = self._classes.pop(key, None)
        if classes is None or classes.is_outdated:
            if len(self._classes) >= MAX_KEYS_OF_PODS:
                del self._classes[next(iter(self._classes))]
            classes = PodClasses(self._live, key)
        # The least recently used is the first.
        self._classes[key] = classes
        return classes if classes.refresh() else None

    def _narrower(self, namespaces: Collection[str], best: list[Posting] | None) -> list[Posting] | None:
        """Return the pods of some namespaces, or `best` (None: all pods) if these are not far fewer."""
        values = self._values(_NAMESPACE)
        found = [values[name] for name in namespaces if name in values]
        most = _size(values.values() if best is None else best)
        return found if 2 * _size(found) <= most else best

    def _postings(self, requirement: LabelRequirement) -> list[Posting] | None:
        if requirement.operator is Operator.IN:
            values = self._values(requirement.key)
            return [values[value] for value in requirement.values if value in values]
        if requirement.operator is Operator.EXISTS:
            return list(self._values(requirement.key).values())
        return None

    def _values(self, key: str | None) -> dict[str, Posting]:
        values = self._keys.get(key)
        if values is None:
            if len(self._keys) >= MAX_KEYS:
                self._keys.clear()
                self._pods.clear()
            live = self._live
            values = self._keys[key] = {}
            for row in live.pod_counts.nonzero()[0].tolist():
                pods = self._pods[row] = live.info(row).pods
                _put(values, key, row, pods)
        return values

    def _drop(self, pods: Pods) -> None:
        for key, values in self._keys.items():
            for pod in pods:
                value = pod.namespace if key is None else pod.labels.get(key)
                posting = None if value is None else values.get(value)
                if value is not None and posting is not None:
                    posting.pop(id(pod), None)
                    if not posting:
                        del values[value]


def _put(values: dict[str, Posting], key: str | None, row: int, pods: Iterable[PodInfo]) -> None:
    for pod in pods:
        value = pod.namespace if key is None else pod.labels.get(key)
        if value is not None:
            values.setdefault(value, {})[id(pod)] = row, pod


def _size(postings: Iterable[Posting]) -> int:
    return sum(map(len, postings))
