"""What rules see of pods, looked at once per pod: signatures for all rules of a profile are taken at once.

A signature is a number here, the same one for pods of which the rules in question see the same. So what is
kept by signature is found without another look at labels, requests and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan.reads.dependencies import Dependencies

MAX_SIGHTS: Final = 8192
"""The most different sights of pods that are known by number; beyond that they are numbered anew."""

Signature = Callable[[PodInfo], int]


class _Numbers:
    """Numbers for values, the same for equal ones. Numbers are never given again."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._next = count()

    def of(self, value: Hashable) -> int:
        number = self._known.get(value)
        if number is None:
            if len(self._known) >= MAX_SIGHTS:
                self._known.clear()
            number = self._known[value] = next(self._next)
        return number


class Likenesses:
    """The signatures of pods for several rules."""

    def __init__(self) -> None:
        self._rules: list[tuple[Dependencies, _Numbers]] = []
        self._whole = Dependencies.on_pods(())
        self._known: dict[Hashable, tuple[int, ...]] = {}
        self._latest: tuple[PodInfo | None, tuple[int, ...]] = (None, ())

    def signature(self, dependencies: Dependencies) -> Signature:
        """Return what gives the signature of a pod for a rule with these dependencies."""
        fields = [each.pod_fields for each, _ in self._rules]
        if dependencies.pod_fields not in fields:
            fields.append(dependencies.pod_fields)
            self._rules.append((dependencies, _Numbers()))
            self._whole = Dependencies.on_pods(_union(fields))
            self._known.clear()
            self._latest = (None, ())
        place = fields.index(dependencies.pod_fields)

        def signature(pod: PodInfo) -> int:
            # Pods never change, and one pod is asked about by many rules in a row.
            latest, signatures = self._latest
            return signatures[place] if latest is pod else self._look(pod)[place]

        return signature

    def _look(self, pod: PodInfo) -> tuple[int, ...]:
        whole = self._whole.signature(pod)
        found = self._known.get(whole)
        if found is None:
            if len(self._known) >= MAX_SIGHTS:
                self._known.clear()
            found = tuple([numbers.of(each.signature(pod)) for each, numbers in self._rules])
            self._known[whole] = found
        self._latest = (pod, found)
        return found


def _union(fields: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted(frozenset().union(*fields)))
