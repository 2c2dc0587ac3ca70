"""Signatures of pods for all rules of a profile, computed together once per pod.

A signature consists of numbers here, equal for pods with equal values of the fields that a rule reads. So a
memo look-up does not hash labels, requests and so on again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from operator import itemgetter
from typing import Final

from kdsl.cluster.objects.label_selectors import SELECTED_KEYS
from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan.reads.dependencies import Dependencies

MAX_SIGNATURES: Final = 8192
"""The most distinct pods whose values are numbered; beyond that numbering starts over."""

SignatureOf = Callable[[PodInfo], Hashable]
"""Returns the signature of a pod for a rule."""


Pick = Callable[[Sequence[int]], Hashable]
"""Returns the numbers of some fields."""


class Signatures:
    """The signatures of pods for several rules: the numbers of the values of the fields that a rule reads."""

    def __init__(self) -> None:
        # The fields of each rule.
        self._rules: list[tuple[str, ...]] = []
        self._picks: list[Pick] = []
        self._all_fields = Dependencies.on_pods(())
        # The number of each value of a field; a new value gets one at look-up. No number is ever reused.
        self._numbers: list[defaultdict[Hashable, int]] = []
        # The signatures by the values of all fields, alone in a list.
        self._known: dict[Hashable, list[tuple[Hashable, ...]]] = {}
        self._latest: tuple[PodInfo | None, tuple[Hashable, ...]] = (None, ())
        # Pods that differ in a label which no selector names have one signature.
        self._version = SELECTED_KEYS.version

    def signature(self, dependencies: Dependencies) -> SignatureOf:
        """Return the signature function for a rule with these dependencies."""
        if dependencies.pod_fields not in self._rules:
            self._rules.append(dependencies.pod_fields)
            fields = tuple(sorted(frozenset().union(*self._rules)))
            self._all_fields = Dependencies.on_pods(fields)
            self._numbers = [defaultdict(count().__next__) for _ in fields]
            self._picks = [_picker([fields.index(each) for each in rule]) for rule in self._rules]
            self._known.clear()
            self._latest = (None, ())
        place = self._rules.index(dependencies.pod_fields)

        def signature(pod: PodInfo) -> Hashable:
            # Pods are immutable, and many rules in a row ask about one pod.
            latest, signatures = self._latest
            if latest is pod and self._version == SELECTED_KEYS.version:
                return signatures[place]
            return self._compute(pod)[place]

        return signature

    def _compute(self, pod: PodInfo) -> tuple[Hashable, ...]:
        version = SELECTED_KEYS.version
        # Equal values meant less before another version.
        if self._version != version or len(self._known) >= MAX_SIGNATURES:
            self._version = version
            self._known.clear()
            for numbers in self._numbers:
                numbers.clear()
        values = self._all_fields.signature(pod)
        # A new pod's values are hashed once less than by looking them up before they are stored.
        known = self._known.setdefault(values, [])
        if not known:
            of_fields = [numbers[value] for numbers, value in zip(self._numbers, values, strict=True)]
            known.append(tuple([pick(of_fields) for pick in self._picks]))
        self._latest = (pod, known[0])
        return known[0]


def _picker(places: Sequence[int]) -> Pick:
    return itemgetter(*places) if places else lambda numbers: ()
