"""The changes of a record that are effects of its own decisions."""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.catalog import key_of
from kdsl.cycle.decision import Decision, Outcome
from kdsl.records.steps import ObjectGone, ObjectPut, PodGone, PodPlaced, Step, StepChange
from kdsl.sim.replay.survey import identity


class RecordedEffects:
    """Finds the changes that are effects of recorded decisions, and follows where pods are in the record."""

    def __init__(self) -> None:
        # The pods that are on a node in the record; `_before` is the pod of the present change before it.
        self._here: dict[str, PodInfo] = {}
        self._before: PodInfo | None = None
        # The pods whose last decision gave them a node.
        self._given: set[str] = set()
        # The victims that have not ended, with the last step that evicted them.
        self._victims: dict[str, int] = {}
        self._is_victim = False
        self.step = -1
        self._claims: set[str] = set()
        # The pod of the decision before a step, if it has no node: a placement of it was undone.
        self._undone = ""
        self._pods: dict[str, PodInfo] = {}

    def is_tried(self, pod: PodInfo) -> bool:
        """Return whether the record has an attempt of the pod so far."""
        return pod.key in self._pods

    def is_known(self, pod: PodInfo) -> bool:
        """Return whether the pod was on a node in the record before the change that `others` yielded last."""
        return self._before is not None and identity(self._before) == identity(pod)

    def node(self, pod: PodInfo) -> str:
        """Return the pod's node in the record after the change that `others` yielded last, "" for none."""
        here = self._here.get(pod.key)
        return here.node_name if here is not None and identity(here) == identity(pod) else ""

    def evicted_at(self, key: str) -> int | None:
        """Return the last step that evicted a pod in the record, None if it has ended or none did."""
        return self._victims.get(key)

    def is_terminating(self, key: str) -> bool:
        """Return whether a pod that is on a node in the record terminates there."""
        return key in self._here and self._here[key].is_terminating

    @property
    def is_of_victim(self) -> bool:
        """Return whether the change that `others` yielded last is one of a victim of the record."""
        return self._is_victim

    def others(self, step: Step) -> Iterator[StepChange]:
        """Yield the changes of a step that are no effects; the decision of the step counts from then on.

        The changes of victims are among them: whether they are effects depends on the side.
        """
        self.step += 1
        undone = {self._undone} if self._undone else set()
        if step.settled is not None and not step.settled.given_node:
            undone.add(step.settled.pod)
        for change in step.changes:
            self._follow(change)
            self._is_victim = isinstance(change, PodPlaced | PodGone) and change.pod.key in self._victims
            if isinstance(change, PodGone):
                self._victims.pop(change.pod.key, None)
            if not self._is_effect(change, undone):
                yield change
        self._undone = ""
        if step.attempt is not None:
            self._pods[step.attempt.pod.key] = step.attempt.pod
            self._note(step.attempt.decision)
        if step.settled is not None:
            self._note(step.settled)

    def _follow(self, change: StepChange) -> None:
        if isinstance(change, PodPlaced | PodGone):
            key = change.pod.key
            self._before = self._here.pop(key, None)
            if isinstance(change, PodPlaced):
                self._here[key] = change.pod

    def _note(self, decision: Decision) -> None:
        if decision.given_node:
            pod = self._pods.get(decision.pod)
            names = () if pod is None else pod.claim_names
            namespace = decision.pod.partition("/")[0]
            self._claims.update(f"{namespace}/{name}" for name in names)
            self._given.add(decision.pod)
        elif decision.outcome is not Outcome.SKIPPED:
            self._undone = decision.pod
            self._given.discard(decision.pod)
        for victim in decision.victims:
            here = self._here.get(victim.pod)
            # Something else ends a pod that terminates already.
            if victim.pod in self._victims or here is None or not here.is_terminating:
                self._victims[victim.pod] = self.step

    def _is_effect(self, change: StepChange, undone: set[str]) -> bool:
        match change:
            case PodPlaced(pod):
                # The placement itself; what changes later is no effect.
                return pod.key in self._given and not self.is_known(pod)
            case PodGone(pod):
                return pod.key in undone and not self._is_victim
            case ObjectPut(PersistentVolumeClaim() as claim):
                return key_of(claim) in self._claims
            case ObjectPut(PersistentVolume() as volume):
                reference = volume.spec.claim_ref
                return reference is not None and f"{reference.namespace}/{reference.name}" in self._claims
            case ObjectGone(PersistentVolumeClaim.KIND, key):
                # A claim that is gone frees its name.
                self._claims.discard(key)
        return False
