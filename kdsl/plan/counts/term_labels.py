"""Affinity terms by the labels that they require: the labels of a pod give the terms that may match it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selectors import Operator

_Terms: TypeAlias = dict[PodAffinityTerm, None]


class TermLabels:
    """Distinct terms, each under a label that every matching pod has."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], _Terms] = {}
        # Terms that name no value of a label.
        self._others: _Terms = {}
        self._labels: dict[PodAffinityTerm, tuple[tuple[str, str] | None, ...]] = {}

    def put(self, term: PodAffinityTerm) -> None:
        """Add a term. One without a selector matches no pod."""
        if term.selector is not None:
            labels = self._labels[term] = _labels(term.selector)
            for label in labels:
                self._terms(label)[term] = None

    def drop(self, term: PodAffinityTerm) -> None:
        """Forget a term."""
        if term.selector is not None:
            for label in self._labels.pop(term, ()):
                terms = self._terms(label)
                terms.pop(term, None)
                if not terms and label is not None:
                    del self._by_label[label]

    def clear(self) -> None:
        """Forget all terms."""
        self._by_label.clear()
        self._labels.clear()
        self._others.clear()

    def matching(self, labels: Mapping[str, str]) -> Iterator[PodAffinityTerm]:
        """Yield the terms that may match a pod with these labels, each once."""
        yield from self._others
        for label in labels.items():
            yield from self._by_label.get(label, ())

    def may_match(self, term: PodAffinityTerm, labels: Mapping[str, str]) -> bool:
        """Return whether a term, also one that was dropped, may match a pod with these labels."""
        if term.selector is None:
            return False
        known = self._labels.get(term)
        for label in _labels(term.selector) if known is None else known:
            if label is None or labels.get(label[0]) == label[1]:
                return True
        return False

    def _terms(self, label: tuple[str, str] | None) -> _Terms:
        return self._others if label is None else self._by_label.setdefault(label, {})


def _labels(selector: LabelSelector) -> tuple[tuple[str, str] | None, ...]:
    """Return labels of which a selected pod has exactly one; None among them if any pod may be selected."""
    equal = [each for each in selector.requirements if each.operator is Operator.IN]
    if not equal:
        return (None,)
    # Ties are broken the same way each time.
    narrowest = min(equal, key=lambda each: (len(each.values), each.key, sorted(each.values)))
    return tuple([(narrowest.key, value) for value in narrowest.values])
