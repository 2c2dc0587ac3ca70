"""Affinity terms by the labels that they require: the labels of a pod give the terms that may match it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selectors import Operator

_Terms: TypeAlias = dict[PodAffinityTerm, None]
RequiredLabel: TypeAlias = tuple[str, str] | None
"""A label that every matching pod has; None if there is no such label, so any pod may match."""
RequiredLabels: TypeAlias = tuple[RequiredLabel, ...]
"""Labels of which every matching pod has one; None among them if any pod may match. Empty if no pod can."""


class TermLabels:
    """Distinct terms, each under a label that every matching pod has."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], _Terms] = {}
        # Terms that name no value of a label.
        self._others: _Terms = {}
        self._required: dict[PodAffinityTerm, RequiredLabels] = {}

    def put(self, term: PodAffinityTerm) -> None:
        """Add a term."""
        required = self._required[term] = _required(term.selector)
        for label in required:
            self._terms(label)[term] = None

    def drop(self, term: PodAffinityTerm) -> None:
        """Forget a term."""
        for label in self._required.pop(term, ()):
            terms = self._terms(label)
            terms.pop(term, None)
            if not terms and label is not None:
                del self._by_label[label]

    def clear(self) -> None:
        """Forget all terms."""
        self._by_label.clear()
        self._required.clear()
        self._others.clear()

    def matching(self, labels: Mapping[str, str]) -> Iterator[PodAffinityTerm]:
        """Yield the terms that may match a pod with these labels, each once."""
        yield from self._others
        for label in labels.items():
            yield from self._by_label.get(label, ())

    def required_by(self, term: PodAffinityTerm) -> RequiredLabels:
        """Return the labels that a term requires."""
        return self._required[term]

    def _terms(self, label: RequiredLabel) -> _Terms:
        return self._others if label is None else self._by_label.setdefault(label, {})


def _required(selector: LabelSelector | None) -> RequiredLabels:
    """Return labels of which a selected pod has exactly one. A term without a selector matches no pod."""
    if selector is None:
        return ()
    equal = [each for each in selector.requirements if each.operator is Operator.IN]
    if not equal:
        return (None,)
    # Ties are broken the same way each time.
    narrowest = min(equal, key=lambda each: (len(each.values), each.key, sorted(each.values)))
    return tuple([(narrowest.key, value) for value in narrowest.values])
