"""When a rejected pod is worth another attempt, plugin by plugin: what a profile's hooks say about events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.events import EVERYTHING, EventPattern, merged
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.containment import describe
from kdsl.hooks.specs import Backoff

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.events import ClusterEvent
    from kdsl.hooks.manager import Registration

QueueingHint = Callable[["PodInfo", "ClusterEvent"], bool]


@dataclass(frozen=True, slots=True)
class Wake:
    """The events that can make one plugin change its mind, and what it says of them; without a hint all
    count.
    """

    patterns: tuple[EventPattern, ...] = EVERYTHING
    hint: QueueingHint | None = None

    def concerns(self, event: ClusterEvent) -> bool:
        """Tell whether the event is one of those."""
        return any(pattern.matches(event.resource, event.actions) for pattern in self.patterns)

    def is_worth_it(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Tell whether the plugin should be asked again about `pod`. A hint that raises counts as yes."""
        if self.hint is None:
            return True
        try:
            return bool(self.hint(pod, event))
        except Exception:  # noqa: BLE001 - an attempt too many does no harm, a pod left asleep does
            return True


UNDECLARED = Wake()
"""What stands for a plugin that names no events."""

_REJECTING = frozenset(
    (
        *("events", "pre_enqueue", "pre_filter", "filter", "filter_node", "filter_feasible"),
        *("post_filter", "reserve", "permit", "pre_bind_pre_flight", "pre_bind", "bind"),
    )
)
"""Hooks of plugins that can keep a pod waiting."""

Wakes = Mapping[str, tuple[Wake, ...]]
"""By the name that verdicts show: rules of two packages may share one."""


def wakes_of(entries: Iterable[Registration]) -> tuple[Wakes, tuple[Diagnostic, ...]]:
    """Ask the plugins of a profile which events they wait for; K1023 for one whose answer is of no use."""
    found: dict[str, tuple[Wake, ...]] = {}
    problems: list[Diagnostic] = []
    for entry in entries:
        if not _REJECTING & entry.hooks.keys():
            continue  # a score rejects nobody, and may share the name of a predicate that says when to wake
        wake = UNDECLARED
        if "events" in entry.hooks:
            try:
                hint = entry.hook("queueing_hint") if "queueing_hint" in entry.hooks else None
                wake = Wake(merged(entry.hook("events")()), hint)
            except Exception as cause:  # noqa: BLE001 - a plugin may raise anything
                problems.append(unusable(entry.name, "events", cause))
        found[entry.name] = (*found.get(entry.name, ()), wake)
    return found, tuple(problems)


def backoff_of(queue: Registration | None) -> tuple[Backoff, tuple[Diagnostic, ...]]:
    """Ask what orders the queue how long pods wait; kube-scheduler's waits where it does not say."""
    if queue is None or "backoff" not in queue.hooks:
        return Backoff(), ()
    try:
        answer: Backoff = queue.hook("backoff")()
    except Exception as cause:  # noqa: BLE001 - a plugin may raise anything
        return Backoff(), (unusable(queue.name, "backoff", cause),)
    return answer, ()


def unusable(plugin: str, point: str, cause: Exception) -> Diagnostic:
    """Say that what a plugin declares cannot be used."""
    title = f"plugin `{plugin}` declares no `{point}` that can be used: {describe(cause)}"
    return Diagnostic(PluginCode.DECLARATION, title, where=f"plugins.{plugin}")


def waking_events(wakes: Wakes, plugins: Iterable[str]) -> tuple[str, ...]:
    """Say in words which events would give a pod that these plugins rejected another attempt."""
    patterns = merged(
        pattern for name in plugins for wake in wakes.get(name, (UNDECLARED,)) for pattern in wake.patterns
    )
    return tuple(text for pattern in patterns for text in pattern.words())
