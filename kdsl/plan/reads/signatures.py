"""Signatures of pods for all rules of a profile, computed together once per pod.

A signature is a number here, equal for pods with equal values of the fields that a rule reads. So a memo
look-up does not hash labels, requests and so on again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import Final

from kdsl.cluster.objects.label_selectors import SELECTED_KEYS
from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan.reads.dependencies import Dependencies

MAX_SIGNATURES: Final = 8192
"""The most distinct values that are numbered; beyond that numbering starts over."""

SignatureOf = Callable[[PodInfo], Hashable]
"""Returns the signature of a pod for a rule."""


class _Numbers:
    """Numbers for values, the same for equal values. A number is never reused."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._next = count()

    def clear(self) -> None:
        """Forget all values."""
        self._known.clear()

    def of(self, value: Hashable) -> int:
        number = self._known.get(value)
        if number is None:
            if len(self._known) >= MAX_SIGNATURES:
                self._known.clear()
            number = self._known[value] = next(self._next)
        return number


class Signatures:
    """The signatures of pods for several rules."""

    def __init__(self) -> None:
        self._rules: list[tuple[Dependencies, _Numbers]] = []
        self._all_fields = Dependencies.on_pods(())
        self._known: dict[Hashable, tuple[int, ...]] = {}
        self._latest: tuple[PodInfo | None, tuple[int, ...]] = (None, ())
        # Pods that differ in a label which no selector names have one signature.
        self._version = SELECTED_KEYS.version

    def signature(self, dependencies: Dependencies) -> SignatureOf:
        """Return the signature function for a rule with these dependencies."""
        fields = [each.pod_fields for each, _ in self._rules]
        if dependencies.pod_fields not in fields:
            fields.append(dependencies.pod_fields)
            self._rules.append((dependencies, _Numbers()))
            self._all_fields = Dependencies.on_pods(_union(fields))
            self._known.clear()
            self._latest = (None, ())
        place = fields.index(dependencies.pod_fields)

        def signature(pod: PodInfo) -> int:
            # Pods are immutable, and many rules in a row ask about one pod.
            latest, signatures = self._latest
            if latest is pod and self._version == SELECTED_KEYS.version:
                return signatures[place]
            return self._compute(pod)[place]

        return signature

    def _compute(self, pod: PodInfo) -> tuple[int, ...]:
        version = SELECTED_KEYS.version
        if self._version != version:
            # Equal values meant less before.
            self._version = version
            self._known.clear()
            for _, numbers in self._rules:
                numbers.clear()
        values = self._all_fields.signature(pod)
        found = self._known.get(values)
        if found is None:
            if len(self._known) >= MAX_SIGNATURES:
                self._known.clear()
            found = tuple([numbers.of(each.signature(pod)) for each, numbers in self._rules])
            self._known[values] = found
        self._latest = (pod, found)
        return found


def _union(fields: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted(frozenset().union(*fields)))
