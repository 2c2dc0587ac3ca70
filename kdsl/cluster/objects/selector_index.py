"""Items with label selectors, by the labels that the selectors require: labels find the items that may match.

Items are affinity terms, or the keys of services and workloads. Items about the pods of some namespaces are
also found by namespace.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Generic, Self, TypeAlias, TypeVar

from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.selectors import Operator

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo

T = TypeVar("T", bound=Hashable)

RequiredLabel: TypeAlias = tuple[str, str] | None
"""A label that every matching pod has; None if there is no such label, so any pod may match."""
RequiredLabels: TypeAlias = tuple[RequiredLabel, ...]
"""Labels of which every matching pod has one; None among them if any pod may match. Empty if no pod can."""
Scope: TypeAlias = str | tuple[str, str] | None
"""The name or a label of a namespace; None stands for all namespaces."""

EVERYWHERE: Final[tuple[Scope, ...]] = (None,)
MAX_SCOPES: Final = 16
"""The most namespaces by which an item is found; one with more is found by its labels alone."""


class SelectorIndex(Generic[T]):
    """Distinct items, each under the labels of which every pod that it matches has one."""

    def __init__(self) -> None:
        # The items by label (None: those that name no value of a label), then by scope.
        self._by_label: dict[RequiredLabel, dict[Scope, dict[T, None]]] = {}
        self._required: dict[T, tuple[RequiredLabels, Collection[Scope]]] = {}

    def copy(self) -> Self:
        """Return an independent index of the same items."""
        other = type(self)()
        other._by_label = {
            label: {scope: dict(items) for scope, items in scopes.items()}
            for label, scopes in self._by_label.items()
        }
        other._required = dict(self._required)
        return other

    def put(self, item: T, selector: LabelSelector | None, scopes: Collection[Scope] = EVERYWHERE) -> None:
        """Add an item with its selector; None matches no pod. What it matches is in one of the scopes."""
        required = _required(selector)
        self._required[item] = required, scopes
        for label in required:
            by_scope = self._by_label.setdefault(label, {})
            for scope in scopes:
                by_scope.setdefault(scope, {})[item] = None

    def drop(self, item: T) -> None:
        """Forget an item."""
        required, scopes = self._required.pop(item, ((), ()))
        for label in required:
            by_scope = self._by_label[label]
            for scope in scopes:
                items = by_scope[scope]
                del items[item]
                if not items:
                    del by_scope[scope]
            if not by_scope:
                del self._by_label[label]

    def clear(self) -> None:
        """Forget all items."""
        self._by_label.clear()
        self._required.clear()

    def matching(self, labels: Mapping[str, str], scopes: Collection[Scope] = EVERYWHERE) -> Iterable[T]:
        """Return the items that may match a pod with these labels, in one of these scopes, each once."""
        found: dict[T, None] = {}
        for label in (None, *labels.items()):
            by_scope = self._by_label.get(label)
            if by_scope is not None:
                for scope in scopes:
                    if scope in by_scope:
                        found.update(by_scope[scope])
        return found

    def required_by(self, item: T) -> tuple[RequiredLabels, Collection[Scope]]:
        """Return the labels that an item requires, and its scopes."""
        return self._required[item]


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


def scopes_of(names: Collection[str], selector: LabelSelector | None) -> Collection[Scope]:
    """Return the scopes of an item about the named namespaces and those that a selector selects."""
    if selector is None:
        return names if len(names) <= MAX_SCOPES else EVERYWHERE
    found: set[Scope] = {*names, *_required(selector)}
    return EVERYWHERE if None in found or len(found) > MAX_SCOPES else found


def scopes_of_pod(pod: PodInfo) -> tuple[Scope, ...]:
    """Return all scopes of a pod's namespace."""
    return (None, pod.namespace, *pod.namespace_labels.items())


def _required(selector: LabelSelector | None) -> RequiredLabels:
    """Return labels of which a selected pod has exactly one. A missing selector matches no pod."""
    if selector is None:
        return ()
    equal = [each for each in selector.requirements if each.operator is Operator.IN]
    if not equal:
        return (None,)
    narrowest = equal[0]
    if len(equal) > 1:
        # Ties are broken the same way each time.
        narrowest = min(equal, key=lambda each: (len(each.values), each.key, sorted(each.values)))
    return tuple([(narrowest.key, value) for value in narrowest.values])
