"""The pods that sleep until an event wakes them, grouped by the plugins that rejected them.

An event is compared with the events of each group once, however many pods the group has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.pending import PendingPod
from kdsl.hooks.table import HookTable
from kdsl.hooks.wake import UNDECLARED, Wake

Group = tuple[str, tuple[str, ...]]
"""The profile of pods, and the plugins that rejected or gated them."""


class Sleepers:
    """Sleeping pods by key, in the order in which they fell asleep."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._keys: dict[Group, dict[str, None]] = {}
        self._wakes: dict[Group, tuple[Wake, ...]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._groups

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, pending: PendingPod, table: HookTable | None) -> None:
        """Add a sleeping pod, which waits for the events of its gate or its rejectors."""
        key = pending.key
        self.remove(key)
        plugins = (pending.refusal.plugin,) if pending.refusal is not None else pending.rejectors.all
        group = (table.profile if table else "", plugins)
        self._groups[key] = group
        self._keys.setdefault(group, {})[key] = None
        if group not in self._wakes:
            known = table.wakes if table else {}
            self._wakes[group] = tuple(wake for one in plugins for wake in known.get(one, (UNDECLARED,)))

    def remove(self, key: str) -> bool:
        """Remove a pod; return False where it does not sleep."""
        group = self._groups.pop(key, None)
        if group is None:
            return False
        del self._keys[group][key]
        if not self._keys[group]:
            del self._keys[group], self._wakes[group]
        return True

    def rejected(self) -> Counter[tuple[str, str]]:
        """Count the pods by rejecting plugin and profile. The time depends on the number of groups, not of
        pods.
        """
        found: Counter[tuple[str, str]] = Counter()
        for (profile, plugins), keys in self._keys.items():
            for plugin in plugins:
                found[plugin, profile] += len(keys)
        return found

    def concerned(self, event: ClusterEvent) -> list[str]:
        """Return the pods that an event could wake."""
        if event.target:
            return [event.target] if event.target in self._groups else []
        groups = [
            group for group, wakes in self._wakes.items() if any(wake.concerns(event) for wake in wakes)
        ]
        return [key for group in groups for key in self._keys[group]]
