"""The pods that sleep until an event wakes them, grouped by the plugins that rejected them, and then by the
values that the hints of these plugins read of a pod.

An event is compared with the events of each group once, and a hint is asked once about pods that are equal to
it, however many they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from msgspec import Struct

from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.pending import PendingPod
from kdsl.cycle.questions import Answers, Kind, Question
from kdsl.cycle.waking import (
    Urgency,
    Waits,
    is_affected,
    is_left_by_victims,
    left_node,
    urgency_of,
    waits_of,
)
from kdsl.hooks.faults import Fault
from kdsl.hooks.table import HookTable
from kdsl.hooks.wake import HintAnswer


class _Group(Struct, eq=False):
    """The pods of a profile that the same plugins rejected or gated, by kind."""

    table: HookTable | None
    plugins: tuple[str, ...]
    waits: Waits
    kinds: dict[Kind, dict[str, PendingPod]] = {}
    # By the place of the hint in `waits`, from the first event on that concerns it.
    questions: dict[int, Question] = {}

    def add(self, kind: Kind, pending: PendingPod) -> None:
        pods = self.kinds.setdefault(kind, {})
        if not pods:
            for question in self.questions.values():
                question.add(kind, pending.queued.pod)
        pods[pending.key] = pending

    def remove(self, kind: Kind, key: str) -> PendingPod:
        pods = self.kinds[kind]
        pending = pods.pop(key)
        if not pods:
            del self.kinds[kind]
            for question in self.questions.values():
                question.remove(kind)
        return pending

    def woken(self, event: ClusterEvent, known: Answers) -> Iterator[tuple[PendingPod, Urgency]]:
        """Yield the pods that an event wakes."""
        found: dict[Kind, tuple[HintAnswer, Urgency]] = {}
        for place, (wake, urgency) in enumerate(self.waits):
            if len(found) < len(self.kinds) and wake.concerns(event):
                for kind, yes in self._question(place).helped(wake, event, known):
                    found.setdefault(kind, (yes, urgency))
        for kind, (yes, urgency) in found.items():
            for each in self.kinds[kind].values():
                if is_affected(each, event):
                    each.woken_by(yes)
                    yield each, urgency

    def _question(self, place: int) -> Question:
        found = self.questions.get(place)
        if found is None:
            found = self.questions[place] = Question(place)
            for kind, pods in self.kinds.items():
                found.add(kind, next(iter(pods.values())).queued.pod)
        return found


class Sleepers:
    """Sleeping pods by key, in the order in which they fell asleep."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, _Group] = {}
        # The group and the kind of each pod.
        self._places: dict[str, tuple[Hashable, Kind]] = {}
        # The nominated pods by node and key. Were the node a part of the group, each would be one by itself.
        self._promised: dict[str, dict[str, PendingPod]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, pending: PendingPod, table: HookTable | None) -> None:
        """Add a sleeping pod, which waits for the events of its gate or its rejectors; one that sleeps keeps
        its place in the order.
        """
        key, refusal = pending.key, pending.refusal
        if key in self._places:
            self._leave(key)
        # After a reload a profile has another table, and other hints.
        name = id(table), pending.rejectors if refusal is None else refusal.plugin
        group = self._groups.get(name)
        if group is None:
            plugins = pending.rejectors.all if refusal is None else (refusal.plugin,)
            group = self._groups[name] = _Group(table, plugins, waits_of(pending, table))
        faults: list[Fault] = []
        kind = tuple([wake.kind_of(pending.queued.pod, faults) for wake, _ in group.waits])
        pending.note(faults)
        group.add(kind, pending)
        self._places[key] = (name, kind)
        if pending.promised and refusal is None:
            self._promised.setdefault(pending.promised, {})[key] = pending

    def remove(self, key: str) -> bool:
        """Remove a pod; return False where it does not sleep."""
        if key not in self._places:
            return False
        self._leave(key)
        del self._places[key]
        return True

    def _leave(self, key: str) -> None:
        name, kind = self._places[key]
        group = self._groups[name]
        pending = group.remove(kind, key)
        nominated = self._promised.get(pending.promised, {})
        if nominated.pop(key, None) is not None and not nominated:
            del self._promised[pending.promised]
        if not group.kinds:
            del self._groups[name]

    def rejected(self) -> Counter[tuple[str, str]]:
        """Count the pods by rejecting plugin and profile."""
        found: Counter[tuple[str, str]] = Counter()
        for group in self._groups.values():
            profile = group.table.profile if group.table else ""
            for plugin in group.plugins:
                found[plugin, profile] += sum(map(len, group.kinds.values()))
        return found

    def woken(self, event: ClusterEvent) -> list[tuple[PendingPod, Urgency]]:
        """Return the pods that an event wakes, and how soon."""
        if event.target:
            name, kind = self._places.get(event.target, ("", ()))
            group = self._groups.get(name)
            if group is None:
                return []
            pending = group.kinds[kind][event.target]
            urgency = urgency_of(pending, group.table, event)
            return [(pending, urgency)] if urgency else []
        known: Answers = {}
        found = [each for group in self._groups.values() for each in group.woken(event, known)]
        nominated = self._promised.get(left_node(event)) if self._promised else None
        if nominated and is_left_by_victims(event):
            woken = {pending.key for pending, _ in found}
            found += [
                (pending, Urgency.AFTER_BACKOFF)
                for key, pending in nominated.items()
                if key not in woken and is_affected(pending, event)
            ]
        return found
