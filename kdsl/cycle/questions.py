"""The questions of events to hints: each is asked about one of the pods of which it reads equal values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.hooks.wake import HintAnswer, QueueingHint, Wake

Kind = tuple[Hashable, ...]
"""The values that the hint of each plugin reads of a pod."""

Answers = dict[tuple[QueueingHint, Hashable], HintAnswer]
"""The answers of hints about one event, by the values that they read of a pod."""

_MAX_LATER: Final = 64
"""The most pods that are asked apart from those that were arranged together."""
_FEW: Final = 8
"""The least number of pods that may have gone, or came later, before all are arranged again."""


class Question:
    """The kinds of a group's pods, by the value at one `place`. A hint is asked about one pod of each.

    A hint may arrange the pods for its answers. So they stay the same tuple while few come or go: pods that
    come are asked apart from it, and the answers for pods that have gone are not read.
    """

    def __init__(self, place: int) -> None:
        self._place = place
        self._numbers: dict[Hashable, int] = {}
        # By number, with those that have gone.
        self._values: list[Hashable] = []
        self._pods: list[PodInfo] = []
        self._kinds: list[dict[Kind, None]] = []
        # The pods as tuples: those that were arranged together, and later ones, None if some came since.
        self._arranged: tuple[PodInfo, ...] = ()
        self._later: tuple[PodInfo, ...] | None = ()

    def add(self, kind: Kind, pod: PodInfo) -> None:
        """Add a kind, with one of its pods."""
        value = kind[self._place]
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._pods)
            self._values.append(value)
            self._pods.append(pod)
            self._kinds.append({})
            self._later = None
        self._kinds[number][kind] = None

    def remove(self, kind: Kind) -> None:
        """Remove a kind."""
        value = kind[self._place]
        kinds = self._kinds[self._numbers[value]]
        del kinds[kind]
        if not kinds:
            # A later kind with this value has a new number, and its own pod: this one may have changed.
            del self._numbers[value]
            if len(self._pods) - len(self._numbers) > self._spare:
                self._arrange()

    def helped(self, wake: Wake, event: ClusterEvent, known: Answers) -> list[tuple[Kind, HintAnswer]]:
        """Return the kinds for which an event is worth another attempt, with the answers of the hint. `known`
        has the answers of hints about the same event in other groups.
        """
        if wake.hints is None:
            return [
                (kind, yes)
                for value, pod, kinds in zip(self._values, self._pods, self._kinds, strict=True)
                if kinds and (yes := _answer(wake, value, pod, event, known))
                for kind in kinds
            ]
        answers = [yes for pods in self._parts() for yes in wake.are_worth_it(pods, event)]
        if not any(answers):
            return []
        return [(kind, yes) for kinds, yes in zip(self._kinds, answers, strict=True) if yes for kind in kinds]

    @property
    def _spare(self) -> int:
        """The most pods that have gone, or came later, before all are arranged again: a hint that asks one by
        one is asked about all of them.
        """
        return len(self._numbers) // 4 + _FEW

    def _parts(self) -> list[tuple[PodInfo, ...]]:
        """Return the pods by number, in tuples that are the same as long as possible."""
        if len(self._pods) - len(self._arranged) > min(_MAX_LATER, self._spare):
            self._arrange()
        if self._later is None:
            self._later = tuple(self._pods[len(self._arranged) :])
        return [pods for pods in (self._arranged, self._later) if pods]

    def _arrange(self) -> None:
        """Forget the pods that have gone, and put the others into one tuple."""
        numbers = [number for number, kinds in enumerate(self._kinds) if kinds]
        self._values = [self._values[number] for number in numbers]
        self._pods = [self._pods[number] for number in numbers]
        self._kinds = [self._kinds[number] for number in numbers]
        self._numbers = {value: number for number, value in enumerate(self._values)}
        self._arranged, self._later = tuple(self._pods), ()


def _answer(wake: Wake, value: Hashable, pod: PodInfo, event: ClusterEvent, known: Answers) -> HintAnswer:
    """Return whether an event is worth another attempt for pods of which the hint reads this value."""
    if wake.hint is None:
        return True
    found = known.get((wake.hint, value))
    if found is None:
        found = known[wake.hint, value] = wake.is_worth_it(pod, event)
    return found
