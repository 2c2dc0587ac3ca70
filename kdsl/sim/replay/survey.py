"""The facts of a whole record about its pods: read once, before anything is decided again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median_low

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.files import InputFile
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.engine_options import EngineOptions
from kdsl.records.steps import Attempt, PodGone, PodPlaced, Reading, Step

Identity = tuple[str, str]
"""The `namespace/name` of a pod and its uid, which another pod of that name does not have."""


def identity(pod: PodInfo) -> Identity:
    """Return the identity of a pod."""
    return pod.key, pod.uid


@dataclass(slots=True)
class Survey:
    """The pods of a record. `attempts` counts the recorded attempts of each, `cycles` has the number of the
    first one by key, `homes` the nodes of pods at the start.

    `placed` are the pods that have a node when the record ends, or ended with one, `nominated` those that
    are nominated then. `ends` has the step in which a victim ended, by its key and the step that evicted it;
    steps are counted from 0. `options` are those of the first attempt, None in a record without attempts.
    `settled` counts the results of pods that a Permit plugin held.
    """

    attempts: Counter[Identity] = field(default_factory=Counter)
    cycles: dict[str, int] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    placed: set[Identity] = field(default_factory=set)
    nominated: set[Identity] = field(default_factory=set)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    schedulers: set[str] = field(default_factory=set)
    options: EngineOptions | None = None
    rules: str = ""
    is_whole: bool = False
    dropped: int = 0
    settled: int = 0
    _pods: dict[str, PodInfo] = field(default_factory=dict)
    _held: set[str] = field(default_factory=set)
    # The steps that evicted a pod that has not ended, and the time of the first one.
    _evicted: dict[str, list[int]] = field(default_factory=dict)
    _since: dict[str, int] = field(default_factory=dict)
    # The times of the evictions whose victims ended since the last attempt, and the delays of the others.
    _ended: list[int] = field(default_factory=list)
    _delays: list[int] = field(default_factory=list)

    @property
    def usual_delay(self) -> int:
        """Return the median time from the eviction of a victim to its end, in nanoseconds; 0 without any."""
        return max(0, median_low(self._delays)) if self._delays else 0

    @staticmethod
    def of(file: InputFile) -> Survey:
        """Read a record to its end; raise InvalidInputError at the first line with mistakes."""
        survey, reading = Survey(), Reading(file)
        for number, step in enumerate(reading.steps()):
            survey._take(step, number)
        survey.rules, survey.is_whole = reading.rules, reading.is_whole
        survey.dropped += reading.dropped_last
        return survey

    def _take(self, step: Step, number: int) -> None:
        for change in step.changes:
            if isinstance(change, PodPlaced):
                pod = change.pod
                self._pods[pod.key] = pod
                # A victim may select another scheduler when it returns.
                self.schedulers.add(pod.scheduler_name)
                if number == 0:
                    self.homes[pod.key] = pod.node_name
                    self.placed.add(identity(pod))
            elif isinstance(change, PodGone):
                self._note_end(change.pod.key, number)
        if step.attempt is not None:
            self._note(step.attempt)
            self._note_victims(step.attempt, number)
        if step.settled is not None:
            # A binding that took time has a result as well.
            self.settled += step.settled.pod in self._held
            self._end(step.settled)

    def _note(self, attempt: Attempt) -> None:
        pod = attempt.pod
        self._pods[pod.key] = pod
        self.attempts[identity(pod)] += 1
        self.cycles.setdefault(pod.key, attempt.number)
        self.schedulers.add(pod.scheduler_name)
        self.options = self.options or attempt.options
        self.dropped += attempt.dropped
        self._end(attempt.decision)

    def _note_end(self, key: str, number: int) -> None:
        for evicted in self._evicted.pop(key, ()):
            self.ends[key, evicted] = number
        if key in self._since:
            self._ended.append(self._since.pop(key))

    def _note_victims(self, attempt: Attempt, number: int) -> None:
        self._delays += (attempt.time - since for since in self._ended)
        self._ended.clear()
        decision = attempt.decision
        for victim in decision.victims:
            self._evicted.setdefault(victim.pod, []).append(number)
            self._since.setdefault(victim.pod, attempt.time)
        self.nominated = {identity(each) for each in attempt.promised}
        if not decision.given_node and (decision.nominated or attempt.pod.nominated_node_name):
            # A decision without room keeps the nomination; where it does not, the next attempt shows it.
            self.nominated.add(identity(attempt.pod))

    def _end(self, decision: Decision) -> None:
        pod = self._pods.get(decision.pod)
        if pod is None:
            return
        if decision.outcome is Outcome.WAITING:
            self._held.add(decision.pod)
        else:
            self._held.discard(decision.pod)
        if decision.given_node:
            self.placed.add(identity(pod))
        elif decision.outcome is not Outcome.SKIPPED:
            self.placed.discard(identity(pod))
        for victim in decision.victims:
            evicted = self._pods.get(victim.pod)
            if evicted is not None:
                self.placed.discard(identity(evicted))
