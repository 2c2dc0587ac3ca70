"""Label selectors: the pods, or namespaces, that a labelSelector of the API selects.

Terms of pod affinity, spread constraints and disruption budgets contain them. An empty selector selects all
objects; a missing selector of the API is None and selects none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

from msgspec import Struct

from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.api.objects import LabelSelectorSpec
from kdsl.cluster.objects.selectors import LabelRequirement, Operator

MAX_KEYS: Final = 4096
"""The most label keys that are tracked; beyond that all keys count as selected."""


class SelectedKeys:
    """The label keys that selectors name. Labels with other keys cannot matter to a selector.

    The keys only grow, and `version` rises with each, so one set serves all clusters of a process.
    """

    def __init__(self) -> None:
        self.version = 0
        self._keys: set[str] = set()
        self._lock = Lock()

    def add(self, requirements: Iterable[LabelRequirement]) -> None:
        """Add the keys of a selector."""
        for one in requirements:
            if one.key not in self._keys and len(self._keys) <= MAX_KEYS:
                with self._lock:
                    self._keys.add(one.key)
                    self.version += 1

    def among(self, labels: FrozenMap[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the labels that a selector may name, in their order. They are kept with the map."""
        known: _Selected | None = labels.derived
        if known is not None and known.keys is self and known.version == self.version:
            return known.labels
        version, items = self.version, labels.items()
        if len(self._keys) <= MAX_KEYS:
            found = tuple([label for label in items if label[0] in self._keys])
        else:
            found = tuple(items)
        labels.derived = _Selected(self, version, found)
        return found


class _Selected(Struct, frozen=True, eq=False):
    """The labels that a selector may name, at a version of the keys."""

    keys: SelectedKeys
    version: int
    labels: tuple[tuple[str, str], ...]


SELECTED_KEYS: Final = SelectedKeys()


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions on labels that must all hold. Selectors of the same conditions are equal."""

    requirements: frozenset[LabelRequirement] = frozenset()

    def __post_init__(self) -> None:
        SELECTED_KEYS.add(self.requirements)

    def __reduce__(self) -> tuple[type[LabelSelector], tuple[frozenset[LabelRequirement]]]:
        # By its constructor: its keys count in another process, too.
        return LabelSelector, (self.requirements,)

    @staticmethod
    def of(spec: LabelSelectorSpec) -> LabelSelector:
        """Convert a valid selector of the API."""
        written = (
            LabelRequirement(one.key, Operator(one.operator), frozenset(one.values))
            for one in spec.match_expressions
        )
        return LabelSelector(frozenset((*own_labels(spec.match_labels, spec.match_labels), *written)))

    @staticmethod
    def of_labels(labels: Mapping[str, str]) -> LabelSelector:
        """Return the selector that requires these labels, as services and replication controllers do."""
        return LabelSelector(frozenset(own_labels(labels, labels)))

    @property
    def text(self) -> str:
        """Return the conditions as `kubectl get --selector` takes them, in the order of their texts."""
        return ",".join(sorted(one.text for one in self.requirements))

    @property
    def selects_everything(self) -> bool:
        """Return whether there are no conditions."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether all conditions hold for `labels`."""
        for one in self.requirements:  # noqa: SIM110 - few, and often asked
            if not one.holds(labels):
                return False
        return True

    def merged(self, others: Iterable[LabelRequirement]) -> LabelSelector:
        """Return this selector with further conditions."""
        return LabelSelector(self.requirements.union(others))


EVERYTHING: Final = LabelSelector()


def own_labels(
    labels: Mapping[str, str], keys: Iterable[str], operator: Operator = Operator.IN
) -> Iterable[LabelRequirement]:
    """Return, for each of `keys` that `labels` has, the condition that the label is, or is not, this value.

    The API server writes these conditions into the selector for matchLabelKeys and mismatchLabelKeys.
    """
    return (LabelRequirement(key, operator, frozenset((labels[key],))) for key in keys if key in labels)


def read_selector(spec: LabelSelectorSpec | None) -> LabelSelector | None:
    """Convert a selector of the API; None, which selects nothing, for a missing one."""
    return None if spec is None else LabelSelector.of(spec)
