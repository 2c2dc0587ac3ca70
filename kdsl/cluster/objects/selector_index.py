"""Items with label selectors, by the labels that the selectors require: labels find the items that may match.

Items are affinity terms, or the keys of services and workloads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, Self, TypeAlias, TypeVar

from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.selectors import Operator

T = TypeVar("T", bound=Hashable)

RequiredLabel: TypeAlias = tuple[str, str] | None
"""A label that every matching pod has; None if there is no such label, so any pod may match."""
RequiredLabels: TypeAlias = tuple[RequiredLabel, ...]
"""Labels of which every matching pod has one; None among them if any pod may match. Empty if no pod can."""


class SelectorIndex(Generic[T]):
    """Distinct items, each under the labels of which every pod that it matches has one."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], dict[T, None]] = {}
        # Items that name no value of a label.
        self._others: dict[T, None] = {}
        self._required: dict[T, RequiredLabels] = {}

    def copy(self) -> Self:
        """Return an independent index of the same items."""
        other = type(self)()
        other._by_label = {label: dict(items) for label, items in self._by_label.items()}
        other._others, other._required = dict(self._others), dict(self._required)
        return other

    def put(self, item: T, selector: LabelSelector | None) -> None:
        """Add an item with its selector; None matches no pod."""
        required = self._required[item] = _required(selector)
        for label in required:
            self._items(label)[item] = None

    def drop(self, item: T) -> None:
        """Forget an item."""
        for label in self._required.pop(item, ()):
            items = self._items(label)
            items.pop(item, None)
            if not items and label is not None:
                del self._by_label[label]

    def clear(self) -> None:
        """Forget all items."""
        self._by_label.clear()
        self._required.clear()
        self._others.clear()

    def matching(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Yield the items that may match a pod with these labels, each once."""
        yield from self._others
        for label in labels.items():
            yield from self._by_label.get(label, ())

    def required_by(self, item: T) -> RequiredLabels:
        """Return the labels that an item requires."""
        return self._required[item]

    def _items(self, label: RequiredLabel) -> dict[T, None]:
        return self._others if label is None else self._by_label.setdefault(label, {})


class Selectors:
    """The label selectors of the objects of one namespace, by key and in the order of their addition."""

    def __init__(self) -> None:
        # The place of each object in the order, and its selector.
        self._known: dict[str, tuple[int, LabelSelector | None]] = {}
        self._next = 0
        self._index: SelectorIndex[str] = SelectorIndex()

    def __len__(self) -> int:
        return len(self._known)

    def copy(self) -> Selectors:
        """Return an independent collection of the same selectors."""
        other = Selectors()
        other._known, other._next, other._index = dict(self._known), self._next, self._index.copy()
        return other

    def get(self, key: str) -> LabelSelector | None:
        """Return the selector of an object; None if there is none."""
        return self._known.get(key, (0, None))[1]

    def put(self, key: str, selector: LabelSelector | None) -> None:
        """Set the selector of an object, which keeps its place; None selects no pods."""
        place = self._known.get(key, (self._next, None))[0]
        self._next = max(self._next, place + 1)
        self._index.drop(key)
        self._index.put(key, selector)
        self._known[key] = place, selector

    def drop(self, key: str) -> None:
        """Forget an object."""
        self._index.drop(key)
        self._known.pop(key, None)

    def matching(self, labels: Mapping[str, str]) -> list[LabelSelector]:
        """Return the selectors that match these labels."""
        found = sorted([self._known[key] for key in self._index.matching(labels)], key=lambda each: each[0])
        return [one for _, one in found if one is not None and one.matches(labels)]


def _required(selector: LabelSelector | None) -> RequiredLabels:
    """Return labels of which a selected pod has exactly one. A missing selector matches no pod."""
    if selector is None:
        return ()
    equal = [each for each in selector.requirements if each.operator is Operator.IN]
    if not equal:
        return (None,)
    # Ties are broken the same way each time.
    narrowest = min(equal, key=lambda each: (len(each.values), each.key, sorted(each.values)))
    return tuple([(narrowest.key, value) for value in narrowest.values])
