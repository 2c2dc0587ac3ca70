"""Makes room for a pod that fits on no node: PostFilter, nomination, and the eviction of victims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from kdsl.cycle.attempt import Attempt
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.judging import Judge
from kdsl.cycle.nominator import Nominator
from kdsl.cycle.placing import Placer
from kdsl.cycle.ports import ClusterSource, Evictor
from kdsl.cycle.postfilter import MakeRoom, run_post_filters
from kdsl.cycle.preemption.budgets import DisruptionBudgets
from kdsl.cycle.preemption.preempt import Preemption
from kdsl.cycle.record import AttemptRecord
from kdsl.cycle.search import rivals_by_row
from kdsl.hooks.errors import ask
from kdsl.hooks.specs import Nominated
from kdsl.hooks.table import Calls


@dataclass(frozen=True, slots=True)
class RoomMaker:
    """Makes room for the pods of one engine; `draws` returns the random generator of the present attempt.

    `took_room_of` is called with a pod `namespace/name` whose room goes to another pod, which evicts more.
    """

    cluster: ClusterSource
    nominator: Nominator
    placer: Placer
    draws: Callable[[], Random]
    evictor: Evictor | None = None
    took_room_of: Callable[[str], None] = lambda key: None

    def make_room(self, attempt: Attempt, record: AttemptRecord) -> Decision:
        """Run PostFilter for a pod without a feasible node; the pod stays unschedulable, perhaps
        nominated.
        """
        diagnosis = record.diagnosis
        record.postfilter = result = run_post_filters(attempt, diagnosis, self._preemption(attempt))
        if result.nominated is not None:
            self._nominate(attempt, result.nominated)
        message = replace(diagnosis, postfilter_message=result.message).message()
        decision = record.decision(Outcome.UNSCHEDULABLE, message=message)
        self._evict(attempt, decision)
        return decision

    def _preemption(self, attempt: Attempt) -> Calls[MakeRoom]:
        """Return the preemption hook for the pod; empty where its profile has no preemption."""
        hooks, pod = attempt.table.preemption, attempt.pod
        if hooks is None:
            return ()
        preemption = Preemption(
            attempt,
            hooks,
            Judge.of(attempt, rivals_by_row(attempt, self.nominator.rivals(pod))),
            DisruptionBudgets.of(attempt.snapshot.catalog.budgets),
            self.draws(),
            self.nominator.node_of(pod),
        )
        return ((hooks.plugin, preemption.run),)

    def _nominate(self, attempt: Attempt, nominated: Nominated) -> None:
        """Nominate the pod for a node, or withdraw its nomination where there is none.

        Pods nominated for the node that this pod could preempt lose their nomination. The pod fits beside
        those of its own priority: if it ended their nominations, the pods could take turns for ever.
        """
        pod, hooks, node = attempt.pod, attempt.table.preemption, nominated.node
        if not node:
            self.nominator.clear(pod)
            return
        if hooks is not None:
            weaker = [each for each in self.nominator.pods_of(node) if each.priority < pod.priority]
            others = ask(hooks.plugin, "find_victims", hooks.find_victims, pod, weaker)
            evicts = any(self._stays(victim) for victim in nominated.victims)
            for other in others:
                self.nominator.clear(other)
                # Without further victims, the same pods leave as before, and `other` is tried when they have.
                if evicts:
                    self.took_room_of(other.key)
        self.nominator.add(pod, node)

    def _stays(self, victim: str) -> bool:
        pod = self.cluster.pod(victim)
        return pod is not None and not pod.is_terminating

    def _evict(self, attempt: Attempt, decision: Decision) -> None:
        """Evict the victims of a decision; a victim that a Permit hook holds is only sent back.

        Without an evictor, the decision has no effect on the cluster.
        """
        if self.evictor is None:
            return
        for victim in decision.victims:
            pod = self.cluster.pod(victim.pod)
            # One that another client has bound meanwhile is not assumed any more, and would stay.
            if pod is not None and not (self.cluster.is_assumed(victim.pod) and self._stop(victim.pod)):
                self.evictor.evict(pod, victim.condition, attempt.pod)

    def _stop(self, victim: str) -> bool:
        """Send back a victim that is not bound yet; return False where it is bound, or will be."""
        reserved = self.placer.under_way.get(victim)
        if reserved is not None:
            return self.placer.bindings.stop(reserved)
        return self.placer.waiting.reject(victim, "preemption", "preempted")
