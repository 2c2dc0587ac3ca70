"""Events that justify another attempt for a rejected pod, plugin by plugin, by a profile's hooks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from kdsl.base.containment import describe
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.events import EVERYTHING, EventPattern, merged
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Backoff

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.events import ClusterEvent
    from kdsl.hooks.manager import Registration

HintAnswer = bool | Fault
"""Whether an event is worth another attempt. An error of a hint is an answer, and counts as yes."""
QueueingHint = Callable[["PodInfo", "ClusterEvent"], HintAnswer]
QueueingHints = Callable[[tuple["PodInfo", ...], "ClusterEvent"], Sequence[HintAnswer]]


@dataclass(frozen=True, slots=True)
class Wake:
    """The events that can change one plugin's answer, and its hint about them; without a hint all of them
    count. `signature` returns the values of a pod that the hint reads; `hints` asks about several pods. An
    error in one of them is the fault of `plugin`.
    """

    patterns: tuple[EventPattern, ...] = EVERYTHING
    hint: QueueingHint | None = None
    signature: Callable[[PodInfo], Hashable] | None = None
    hints: QueueingHints | None = None
    plugin: str = field(default="", compare=False)

    def concerns(self, event: ClusterEvent) -> bool:
        """Return whether the event matches one of the patterns."""
        return any(pattern.matches(event.resource, event.actions) for pattern in self.patterns)

    def is_worth_it(self, pod: PodInfo, event: ClusterEvent) -> HintAnswer:
        """Return whether the plugin should run again for `pod`."""
        if self.hint is None:
            return True
        try:
            return self.hint(pod, event)
        except Exception as cause:  # noqa: BLE001 - an attempt too many does no harm, a pod left asleep does
            is_own = self.hints is None or not isinstance(self.hint, partial)
            return self._fault("queueing_hint" if is_own else "queueing_hints", cause)

    def are_worth_it(self, pods: tuple[PodInfo, ...], event: ClusterEvent) -> Sequence[HintAnswer]:
        """Return the answers of `hints`; an error, or too few answers, is the answer for all pods."""
        assert self.hints is not None
        try:
            answers = self.hints(pods, event)
            if len(answers) != len(pods):
                raise ValueError(f"{len(answers)} answers for {len(pods)} pods")
            return answers
        except Exception as cause:  # noqa: BLE001 - an attempt too many does no harm, a pod left asleep does
            return (self._fault("queueing_hints", cause),) * len(pods)

    def kind_of(self, pod: PodInfo, faults: list[Fault]) -> Hashable:
        """Return a value that is equal for pods about which the hint has equal answers; add an error to
        `faults`.
        """
        if self.hint is None:
            return None
        try:
            found = None if self.signature is None else self.signature(pod)
            hash(found)
        except Exception as cause:  # noqa: BLE001 - a pod by itself costs time only
            faults.append(self._fault("hint_signature", cause))
            found = None
        return pod.key if found is None else found

    def _fault(self, point: str, cause: Exception) -> Fault:
        return PluginError.raised(self.plugin, point, cause).fault


UNDECLARED = Wake()
"""The record of a plugin that declares no events."""

_REJECTING = frozenset(
    (
        *("events", "pre_enqueue", "pre_filter", "filter", "filter_node", "filter_feasible"),
        *("post_filter", "trim_candidates", "reserve", "permit", "pre_bind_pre_flight", "pre_bind", "bind"),
    )
)
"""Hooks of plugins that can keep a pod waiting."""

_HINTS = ("queueing_hint", "hint_signature", "queueing_hints")

Wakes = Mapping[str, tuple[Wake, ...]]
"""By the name in verdicts: rules of two packages may share one."""


def wakes_of(entries: Iterable[Registration]) -> tuple[Wakes, tuple[Diagnostic, ...]]:
    """Return the events of a profile's plugins; K1023 for a plugin with an invalid declaration."""
    found: dict[str, tuple[Wake, ...]] = {}
    problems: list[Diagnostic] = []
    for entry in entries:
        if not _REJECTING & entry.hooks.keys():
            continue  # a score never rejects, and may share its name with a predicate that declares events
        wake = UNDECLARED
        try:
            patterns = merged(entry.hook("events")()) if "events" in entry.hooks else EVERYTHING
        except Exception as cause:  # noqa: BLE001 - a plugin may raise anything
            problems.append(unusable(entry.name, "events", cause))
        else:
            hint, signature, hints = map(entry.optional_hook, _HINTS)
            if hint is None and hints is not None:
                hint = partial(_hint_alone, hints)
            wake = Wake(patterns, hint, signature if hint else None, hints, entry.name)
        found[entry.name] = (*found.get(entry.name, ()), wake)
    return found, tuple(problems)


def _hint_alone(hints: QueueingHints, pod: PodInfo, event: ClusterEvent) -> HintAnswer:
    """Ask the hint about several pods for one."""
    (answer,) = hints((pod,), event)
    return answer


def backoff_of(queue: Registration | None) -> tuple[Backoff, tuple[Diagnostic, ...]]:
    """Return the backoff of the queue's plugin; kube-scheduler's where it declares none."""
    if queue is None or "backoff" not in queue.hooks:
        return Backoff(), ()
    try:
        answer: Backoff = queue.hook("backoff")()
    except Exception as cause:  # noqa: BLE001 - a plugin may raise anything
        return Backoff(), (unusable(queue.name, "backoff", cause),)
    return answer, ()


def unusable(plugin: str, point: str, cause: Exception) -> Diagnostic:
    """Return the diagnostic of a plugin's invalid declaration."""
    title = f"plugin `{plugin}` declares no `{point}` that can be used: {describe(cause)}"
    return Diagnostic(PluginCode.DECLARATION, title, where=f"plugins.{plugin}")
