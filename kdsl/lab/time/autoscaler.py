"""An autoscaler: node groups grow for pods that fit nowhere, and unneeded nodes go.

It works as Kubernetes' cluster-autoscaler does. It looks every ten seconds by default, one group grows at a
time, and a node goes after ten unneeded minutes. Whether a pod would fit on a fresh node is decided by the
rules of the run, and which group grows by an expression (`expander.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kdsl.base.resources import CPU, MEMORY
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.lab.time.expander import Expander, Option
from kdsl.lab.time.fleet import Fleet
from kdsl.lab.time.plan import NodeGroup, Scaling, nanoseconds
from kdsl.lab.time.trial import Growth, Trial
from kdsl.plan.card_table import CardsOf


@dataclass(slots=True)
class Autoscaler:
    """The autoscaler of one run. Times are nanoseconds after the start.

    `needs_room`: a pod was rejected since the last look, or there is room for growth again.
    """

    scaling: Scaling
    expander: Expander
    fleet: Fleet
    trial: Trial
    cards_of: CardsOf
    needs_room: bool = False
    _unneeded: dict[str, int] = field(default_factory=dict)
    _looked: int = -1

    def see(self, name: str, info: NodeInfo | None, now: int) -> None:
        """Take in the state of a node, None if it is gone."""
        if name not in self.fleet.group_of:
            return
        if info is None or not self._is_unneeded(info):
            self._unneeded.pop(name, None)
        else:
            self._unneeded.setdefault(name, now)

    def next_look(self, now: int) -> int | None:
        """Return the time of the next look that may change something, None if there is none."""
        times = [now] if self.needs_room and self._growing() else []
        wait = nanoseconds(self.scaling.idle_after)
        times += [since + wait for name, since in self._unneeded.items() if self._may_go(name)]
        if not times:
            return None
        every = nanoseconds(self.scaling.every)
        earliest = max(min(times), self._looked + 1)
        return -(-earliest // every) * every

    def look(self, now: int) -> None:
        """Record that the autoscaler looks now."""
        self._looked = now

    def grow(self, pending: Sequence[PodInfo], cluster: ClusterCache) -> tuple[NodeGroup, int] | None:
        """Return the group that grows for rejected pods, and by how many nodes; None if none helps."""
        if not self.needs_room:
            return None
        self.needs_room = False
        groups = self._growing()
        if not groups or not pending:
            return None
        self.trial.follow(cluster)
        with self.trial.beside(tuple(self.fleet.starting.values()), pending) as left:
            found = [(group, self.trial.growth(group, left, self._room(group))) for group in groups]
        helping = [(group, growth) for group, growth in found if growth.pods]
        if not helping:
            return None
        # Others may help the pods that are left: the next look decides about them.
        self.needs_room = True
        values = [self.expander(self._option(group, growth, len(pending))) for group, growth in helping]
        group, growth = helping[values.index(max(values))]
        return group, growth.nodes

    def shrink(self, now: int, cluster: ClusterCache) -> list[str]:
        """Return the nodes that go: all that are empty, else one whose pods fit elsewhere."""
        due = now - nanoseconds(self.scaling.idle_after)
        names = [name for name, since in self._unneeded.items() if since <= due]
        snapshot = cluster.snapshot()
        going, kept = list[str](), list[NodeInfo]()
        leaving: dict[str, int] = {}
        for name in names:
            info, group = snapshot.node(name), self.fleet.group_of[name]
            if info is None or self.fleet.size(group) - leaving.get(group.name, 0) <= group.least:
                continue
            if info.pods:
                kept.append(info)
                continue
            going.append(name)
            leaving[group.name] = leaving.get(group.name, 0) + 1
        if going or not kept:
            return going
        self.trial.follow(cluster)
        for info in kept:
            if self.trial.fit_elsewhere(info):
                return [info.name]
            # It is asked again after another while.
            self._unneeded[info.name] = now
        return []

    def _may_go(self, name: str) -> bool:
        group = self.fleet.group_of[name]
        return self.fleet.size(group) > group.least

    def _is_unneeded(self, info: NodeInfo) -> bool:
        if not info.pods or not self.scaling.underused:
            return not info.pods
        cards = self.cards_of(info)
        shares = [(info.requested.amount(one), info.allocatable.amount(one)) for one in (CPU, MEMORY)]
        shares.append((sum([card.used_cores for card in cards]), sum([card.cores for card in cards])))
        return all(used < self.scaling.underused * there for used, there in shares if there)

    def _growing(self) -> list[NodeGroup]:
        return [group for group in self.fleet.groups if self._room(group)]

    def _room(self, group: NodeGroup) -> int:
        return group.most - self.fleet.size(group)

    def _option(self, group: NodeGroup, growth: Growth, pending: int) -> Option:
        return Option(
            group.name,
            growth.nodes,
            growth.pods,
            pending,
            self.fleet.size(group),
            group.priority,
            group.price * growth.nodes,
            growth.waste,
            growth.waste_cpu,
            growth.waste_memory,
            growth.waste_cards or 0.0,
        )
