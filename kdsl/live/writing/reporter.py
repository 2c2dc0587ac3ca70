"""The visible results of a decision: the condition of the pod, its nominated node, and events.

Texts equal kube-scheduler's byte for byte, so that tools which read them keep working. The FailedScheduling
event has an annotation, `kdsl.dev/rules`, with the rules that rejected nodes, each with its file and line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.base.frozen_map import NO_STRINGS
from kdsl.base.visible import visible
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Condition, Decision, Outcome, Rejection
from kdsl.live.watching.changes import LivePod
from kdsl.live.writing.conditions import StatusWish
from kdsl.live.writing.events import Event, EventType, Reference, cut

RULES: Final = "kdsl.dev/rules"
"""The annotation of an event that lists the rejecting rules."""
_MAX_RULES: Final = 2048
_MAX_MESSAGE: Final = 1 << 16
_IN_MEMORY: Final = " (in kube-scheduler memory)."


@dataclass(frozen=True, slots=True)
class Report:
    """The visible results of a decision; None for no change."""

    event: Event
    wish: StatusWish | None = None


class Reporter:
    """Makes the texts of decisions; `host` is the host of this scheduler."""

    def __init__(self, host: str) -> None:
        self._host = host

    def placed(self, pod: LivePod, node: str, scheduler: str) -> Event:
        """Report that a pod was bound."""
        note = f"Successfully assigned {pod.info.key} to {node}"
        return self._event(scheduler, pod, EventType.NORMAL, "Scheduled", "Binding", note)

    def failed(self, decision: Decision, pod: LivePod, nominated: str) -> Report | None:
        """Report why a pod was not placed; return None if the decision is no failure.

        `nominated` is the node nominated by the decision, empty for none.
        """
        match decision.outcome:
            case Outcome.UNSCHEDULABLE:
                reason = "Unschedulable"
            case Outcome.ERROR:
                reason = "SchedulerError"
            case Outcome.SKIPPED if pod.info.is_terminating:
                return Report(self._failure(decision, pod))
            case _:
                return None
        message = cut(decision.message, _MAX_MESSAGE)
        condition = Condition("PodScheduled", "False", reason, message)
        return Report(self._failure(decision, pod), StatusWish(condition, nominated))

    def preempted(
        self, victim: LivePod, preemptor: PodInfo, node: str, scheduler: str, *, in_memory: bool = False
    ) -> Event:
        """Report a victim; `in_memory`: it was not bound yet, and is only sent back."""
        note = f"Preempted by pod {preemptor.uid} on node {node}{_IN_MEMORY if in_memory else ''}"
        return self._event(scheduler, victim, EventType.NORMAL, "Preempted", "Preempting", note)

    def _failure(self, decision: Decision, pod: LivePod) -> Event:
        rules = rule_lines(decision.rejections)
        annotations = {RULES: rules} if rules else NO_STRINGS
        scheduler = pod.info.scheduler_name
        kind, reason, action = EventType.WARNING, "FailedScheduling", "Scheduling"
        return self._event(scheduler, pod, kind, reason, action, decision.message, annotations)

    def _event(
        self,
        scheduler: str,
        pod: LivePod,
        kind: EventType,
        reason: str,
        action: str,
        note: str,
        annotations: Mapping[str, str] = NO_STRINGS,
    ) -> Event:
        return Event.of(
            reference_to(pod),
            kind,
            reason,
            action,
            note,
            controller=scheduler,
            host=self._host,
            annotations=annotations,
        )


def reference_to(pod: LivePod) -> Reference:
    """Return the reference of an event to its pod."""
    info = pod.info
    return Reference("Pod", info.namespace, info.name, info.uid, pod.version)


def rule_lines(rejections: Iterable[Rejection]) -> str:
    """Return the rules that rejected nodes, one per line: `3 NodeResourcesFit fit.kdsl:12`.

    Rules without a line in a file, such as plugins, are only named; long texts are cut.
    """
    nodes: dict[tuple[str, str], int] = {}
    for each in rejections:
        if each.plugin:
            nodes[each.plugin, each.site] = nodes.get((each.plugin, each.site), 0) + each.nodes
    lines = (f"{count} {plugin} {site}".rstrip() for (plugin, site), count in nodes.items())
    return cut("\n".join(map(visible, lines)), _MAX_RULES)
