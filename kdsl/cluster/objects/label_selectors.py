"""Label selectors: which pods, or namespaces, a labelSelector of the API means.

Terms of pod affinity, spread constraints and disruption budgets are made of them. An empty selector selects
everything; where the API has no selector at all there is None, which selects nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.api.objects import LabelSelectorSpec
from kdsl.cluster.objects.selectors import LabelRequirement, Operator


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions on labels that must all hold. Selectors of the same conditions are equal."""

    requirements: frozenset[LabelRequirement] = frozenset()

    @staticmethod
    def of(spec: LabelSelectorSpec) -> LabelSelector:
        """Read a selector of the API that was found valid."""
        written = (
            LabelRequirement(one.key, Operator(one.operator), frozenset(one.values))
            for one in spec.match_expressions
        )
        return LabelSelector(frozenset((*own_labels(spec.match_labels, spec.match_labels), *written)))

    @staticmethod
    def of_labels(labels: Mapping[str, str]) -> LabelSelector:
        """Return what selects by equal labels, as services and replication controllers do."""
        return LabelSelector(frozenset(own_labels(labels, labels)))

    @property
    def selects_everything(self) -> bool:
        """Tell whether there are no conditions."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether all conditions hold for `labels`."""
        return all([one.holds(labels) for one in self.requirements])  # noqa: C419 - few, and often asked

    def merged(self, others: Iterable[LabelRequirement]) -> LabelSelector:
        """Return this selector with further conditions."""
        return LabelSelector(self.requirements.union(others))


EVERYTHING: Final = LabelSelector()


def own_labels(
    labels: Mapping[str, str], keys: Iterable[str], operator: Operator = Operator.IN
) -> Iterable[LabelRequirement]:
    """Return the conditions that a label is one of `labels`, or is not, for those of `keys` that it has.

    The API server writes them into the selector for matchLabelKeys and mismatchLabelKeys.
    """
    return (LabelRequirement(key, operator, frozenset((labels[key],))) for key in keys if key in labels)


def read_selector(spec: LabelSelectorSpec | None) -> LabelSelector | None:
    """Read a selector of the API; None, which selects nothing, where there is none."""
    return None if spec is None else LabelSelector.of(spec)
