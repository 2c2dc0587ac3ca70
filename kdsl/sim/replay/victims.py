"""The victims of one side of a cumulative replay: each stays on its node until it ends.

A victim of the record ends when it ended there. A victim that only the side chooses ends after the usual time
of the record.
"""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.base.clock import Clock
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Condition
from kdsl.sim.replay.effects import RecordedEffects
from kdsl.sim.replay.survey import Identity, Survey, identity
from kdsl.sim.run import SimulatedEvictor


@dataclass(frozen=True, slots=True)
class _Ending:
    """A victim on its way out. `due` is the clock's time of its end, None where the record has the end."""

    preemptor: Identity
    due: int | None


class CourseEvictor:
    """Evicts pods from the cluster of a side, at once or later."""

    def __init__(self, cluster: ClusterCache, clock: Clock, survey: Survey) -> None:
        self._cluster, self._clock, self._survey = cluster, clock, survey
        self._evictor = SimulatedEvictor(cluster)
        self._ending: dict[str, _Ending] = {}
        self.recorded = RecordedEffects()

    def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
        """Evict a victim; one that is ending already is not evicted again."""
        key, recorded, survey = victim.key, self.recorded, self._survey
        chosen = recorded.evicted_at(key)
        end = None if chosen is None else survey.ends.get((key, chosen))
        if (chosen == recorded.step and end == chosen + 1) or (chosen is None and not survey.usual_delay):
            self._end(victim)
        elif key in self._ending or victim.is_terminating:
            return
        elif chosen is not None and (end is not None or chosen == recorded.step):
            self._ending[key] = _Ending(identity(preemptor), None)
            if recorded.is_terminating(key):
                self._mark(victim)
        else:
            self._ending[key] = _Ending(identity(preemptor), self._clock.now() + survey.usual_delay)
            self._mark(victim)

    def is_ending(self, key: str) -> bool:
        """Return whether the pod `namespace/name` is a victim here that is still on its node."""
        return key in self._ending

    def holds(self, preemptor: Identity) -> bool:
        """Return whether the deletion of a victim of this pod has not begun, so that the pod is not tried."""
        return any(
            each.preemptor == preemptor and (pod := self._cluster.pod(key)) and not pod.is_terminating
            for key, each in self._ending.items()
        )

    def end(self, key: str) -> None:
        """Remove a victim that has ended in the record."""
        pod = self._cluster.pod(key)
        if pod is not None:
            self._end(pod)

    def forget(self, key: str) -> None:
        """Forget a victim that has lost its node for another reason."""
        self._ending.pop(key, None)

    def end_due(self) -> None:
        """Remove the victims whose time is over."""
        now = self._clock.now()
        for key, each in list(self._ending.items()):
            if each.due is not None and each.due <= now:
                self.end(key)

    def end_all(self) -> None:
        """Remove all victims."""
        for key in list(self._ending):
            self.end(key)

    def take_returned(self) -> list[PodInfo]:
        """Return the pods that returned since the last call, in the order of their ends."""
        return self._evictor.take_returned()

    def _mark(self, victim: PodInfo) -> None:
        """Show a victim as terminating."""
        time = victim.deletion_timestamp or max(self._clock.now(), 1)
        self._cluster.add_pod(victim.with_fields(deletion_timestamp=time, being_preempted=True))

    def _end(self, victim: PodInfo) -> None:
        self._ending.pop(victim.key, None)
        # Without the marks of its end: it returns as a new pod.
        clean = victim.with_fields(deletion_timestamp=0, being_preempted=False)
        self._evictor.evict(clean, _NO_CONDITION, clean)


_NO_CONDITION = Condition("", "", "", "")
