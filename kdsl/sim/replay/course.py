"""One side of the mode `cumulative`: a cluster with the side's own placements, on which the run takes its
course.

The record gives everything that the scheduler does not decide: arrivals, ends of pods, nodes, other objects,
and the order of the attempts. Effects of the recorded decisions are left out, since the side has its own:
placements, evictions, and the binding of claims of placed pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from kdsl.base.clock import ManualClock
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Decision, Detail
from kdsl.cycle.engine import Engine
from kdsl.hooks.specs import QueuedPod
from kdsl.records.steps import (
    Attempt,
    NodeGone,
    PodGone,
    PodPlaced,
    Step,
    StepChange,
    apply,
)
from kdsl.sim.replay.side import GivenAnnotations, set_clock
from kdsl.sim.replay.survey import Identity, Survey, identity
from kdsl.sim.replay.victims import CourseEvictor

MOST_RETRIES = 10
"""The most attempts of a pod beside the recorded ones."""


class Course:
    """A run that goes on; `decisions` are all of its decisions in their order.

    The decisions about pods in `verdict_nodes` contain the verdicts about these nodes.
    """

    def __init__(
        self,
        engine: Engine,
        cluster: ClusterCache,
        clock: ManualClock,
        evictor: CourseEvictor,
        annotations: GivenAnnotations,
        survey: Survey,
        verdict_nodes: Mapping[str, Collection[str]],
        on_decision: Callable[[Decision], None],
    ) -> None:
        self._engine, self._cluster, self._clock = engine, cluster, clock
        self._evictor, self._annotations, self._survey = evictor, annotations, survey
        self._verdict_nodes, self._on_decision = verdict_nodes, on_decision
        self._left = Counter(survey.attempts)
        self._retries: Counter[Identity] = Counter()
        self._seen: set[Identity] = set()
        self._recorded = evictor.recorded
        # The last attempt of the record, and the pods that may be nominated there.
        self._last: Attempt | None = None
        self._promised: dict[Identity, PodInfo] = {}
        self.decisions: list[Decision] = []
        if survey.options is not None:
            engine.continue_from(survey.options)

    @property
    def given(self) -> Mapping[str, Mapping[str, str]]:
        """Return the annotations that pods got with their last node, by key."""
        return self._annotations.given

    def take(self, step: Step) -> None:
        """Apply the changes of a step that are not effects of recorded decisions; then decide."""
        for change in self._recorded.others(step):
            self._apply(change)
        if step.attempt is not None:
            set_clock(self._clock, step.attempt.time)
            self._evictor.end_due()
            self._return_victims()
            self._attempt(step.attempt)
        if step.settled is not None:
            self._settle()
        self._retry()

    def end(self) -> None:
        """Settle held pods, as a simulation does at its end, and let the last victims end."""
        self._settle()
        self._evictor.end_all()
        self._return_victims()
        self._retry()

    # ---- changes -----------------------------------------------------------------------------------------

    def _apply(self, change: StepChange) -> None:
        match change:
            case PodPlaced(pod):
                self._take_placed(pod)
            case PodGone(pod):
                self._lose(pod)
            case NodeGone(name):
                info = self._cluster.snapshot().node(name)
                apply(change, self._cluster)
                for pod in () if info is None else info.pods:
                    self._leave_node(pod, name)
            case _:
                apply(change, self._cluster)

    def _take_placed(self, pod: PodInfo) -> None:
        """Take a pod that something else placed, or the changed fields of one that has a node here."""
        mine = self._cluster.pod(pod.key)
        if mine is not None and identity(mine) == identity(pod):
            is_ending = self._evictor.is_ending(pod.key)
            if self._recorded.is_of_victim and pod.is_terminating and not is_ending:
                # It is not evicted here.
                return
            # Node and cards are those that it got here.
            own = mine.annotations if self._recorded.is_tried(pod) else pod.annotations
            changed = pod.with_fields(node_name=mine.node_name, annotations=own)
            if is_ending and mine.is_terminating and not pod.is_terminating:
                changed = changed.with_fields(
                    deletion_timestamp=mine.deletion_timestamp, being_preempted=mine.being_preempted
                )
            self._cluster.add_pod(changed)
        elif not self._recorded.is_known(pod):
            self._engine.give_up(pod)
            self._cluster.add_pod(pod)

    def _leave_node(self, pod: PodInfo, node: str) -> None:
        """Take a pod from a node that is gone, unless it is on that node in the record: there it ends, or the
        node returns.
        """
        if self._recorded.node(pod) != node:
            self._cluster.remove_pod(pod.key)
            self._evictor.forget(pod.key)
            self._come_back(pod.with_fields(node_name="", nominated_node_name="", start_time=0))

    def _lose(self, pod: PodInfo) -> None:
        """Forget a pod that has ended or was deleted."""
        placed = self._cluster.pod(pod.key)
        if placed is not None and identity(placed) == identity(pod):
            if self._evictor.is_ending(pod.key):
                self._evictor.end(pod.key)
                self._return_victims()
            elif not self._recorded.is_of_victim:
                self._cluster.remove_pod(pod.key)
        elif placed is None and not self._recorded.is_of_victim:
            self._engine.give_up(pod)

    # ---- attempts ----------------------------------------------------------------------------------------

    def _attempt(self, attempt: Attempt) -> None:
        """Decide about a pod when the record does, unless it has a node here."""
        pod, mine = attempt.pod, identity(attempt.pod)
        self._left[mine] -= 1
        self._lose_nominated(attempt)
        for other in attempt.promised:
            if identity(other) not in self._seen:
                self._engine.nominator.add(other)
        is_new = mine not in self._seen
        self._seen.add(mine)
        placed = self._cluster.pod(pod.key)
        if placed is not None and identity(placed) != mine:
            self._cluster.remove_pod(pod.key)
            self._evictor.forget(pod.key)
        elif placed is not None or pod.key in self._engine.waiting:
            return
        gated = self._engine.enqueue(pod if is_new else pod.with_fields(nominated_node_name=""))
        if gated is not None:
            self._keep(gated)
            return
        queued = self._take_from_queue(pod.key)
        if queued is not None:
            self._decide(queued)

    def _lose_nominated(self, attempt: Attempt) -> None:
        """Forget pods that were nominated in the record before, and are not at this attempt.

        The record has no deletions of waiting pods; a nomination that ends without a decision is one. Where
        pods of lower priority may have lost the node to another one, the engine knows.
        """
        promised = {identity(each) for each in attempt.promised}
        before, self._promised = self._promised, {identity(each): each for each in attempt.promised}
        last, self._last = self._last, attempt
        for mine, pod in before.items():
            if mine in promised or mine == identity(attempt.pod) or attempt.dropped or last is None:
                continue
            node = last.decision.nominated
            is_gone = bool(node) if mine == identity(last.pod) else pod.nominated_node_name != node
            if is_gone and self._cluster.pod(pod.key) is None:
                self._engine.nominator.delete(pod)
                if not self._left[mine]:
                    self._engine.give_up(pod)
        self._promised[identity(attempt.pod)] = attempt.pod

    def _take_from_queue(self, key: str) -> QueuedPod | None:
        """Take a pod from the queue. Others that may be tried stay there."""
        queue, others, found = self._engine.queue, list[QueuedPod](), None
        while (queued := queue.pop()) is not None:
            if queued.pod.key == key:
                found = queued
                break
            if self._is_open(queued.pod):
                others.append(queued)
            else:
                queue.delete(queued.pod.key)
        for queued in others:
            queue.put_back(queued)
        return found

    def _retry(self) -> None:
        """Try pods that an event woke, that the record does not try again, and that have a node there or are
        nominated here only.

        Another pod leaves the queue: the record brings it back, or it is not tried any more. So a pod is
        taken from the queue once for each event that wakes it.
        """
        queue, held = self._engine.queue, list[QueuedPod]()
        while (queued := queue.pop()) is not None:
            if not self._is_open(queued.pod):
                queue.delete(queued.pod.key)
            elif self._evictor.holds(identity(queued.pod)):
                held.append(queued)
            else:
                self._retries[identity(queued.pod)] += 1
                self._decide(queued)
        for queued in held:
            queue.put_back(queued)

    def _is_open(self, pod: PodInfo) -> bool:
        mine = identity(pod)
        if self._left[mine] > 0 or self._retries[mine] >= MOST_RETRIES:
            return False
        # One that still waits for its victims at the end of the record waits here, too.
        is_nominated = bool(self._engine.nominator.node_of(pod))
        return mine in self._survey.placed or (is_nominated and mine not in self._survey.nominated)

    def _decide(self, queued: QueuedPod) -> None:
        pod = queued.pod
        is_full = pod.key in self._verdict_nodes
        decision = self._engine.schedule_one(queued, Detail.FULL if is_full else None)
        if not decision.given_node:
            self._annotations.given.pop(pod.key, None)
        self._keep(decision)
        is_room_made = not any(self._evictor.is_ending(each.pod) for each in decision.victims)
        if decision.victims and is_room_made and not self._left[identity(pod)]:
            self._engine.queue.add(pod)
        self._return_victims()

    def _return_victims(self) -> None:
        for victim in self._evictor.take_returned():
            self._come_back(victim)

    def _come_back(self, pod: PodInfo) -> None:
        """Queue a pod that lost its node here, unless the record tries it again or it has no node there."""
        if self._is_open(pod):
            gated = self._engine.enqueue(pod)
            if gated is not None:
                self._keep(gated)

    def _settle(self) -> None:
        for decision in self._engine.settle():
            self._keep(decision)

    def _keep(self, decision: Decision) -> None:
        if decision.verdicts:
            nodes = self._verdict_nodes[decision.pod]
            kept = tuple(verdict for verdict in decision.verdicts if verdict.node in nodes)
            decision = decision.with_fields(verdicts=kept)
        self.decisions.append(decision)
        self._on_decision(decision)
