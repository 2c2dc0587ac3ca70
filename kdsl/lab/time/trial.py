"""A copy of the cluster on which pods are tried: would they fit on fresh nodes, or elsewhere?

The rules of the run decide, on the whole cluster: affinity, spread and cards count. Nothing of a trial stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kdsl.app import Settings
from kdsl.base.resources import CPU, MEMORY
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.lab.time.fleet import node_of
from kdsl.lab.time.plan import NodeGroup
from kdsl.lab.time.world import KindNumbers, open_world
from kdsl.plan.card_table import CardsOf


@dataclass(frozen=True, slots=True)
class Growth:
    """The effect of fresh nodes of a group: their number, the pods they take, and the wasted shares."""

    nodes: int
    pods: int
    waste_cpu: float
    waste_memory: float
    waste_cards: float | None

    @property
    def waste(self) -> float:
        """The mean of the wastes; that of cards counts where there are some."""
        parts = [self.waste_cpu, self.waste_memory]
        if self.waste_cards is not None:
            parts.append(self.waste_cards)
        return sum(parts) / len(parts)


class Trial:
    """Trials for one run; use as a context. `has_catalog`: objects other than nodes and pods may change."""

    def __init__(self, rules: RuleSet, settings: Settings, cards_of: CardsOf, *, has_catalog: bool) -> None:
        self._rules = rules
        self._settings = settings
        self._cards_of = cards_of
        self._has_catalog = has_catalog
        self._stack = ExitStack()
        self._kinds = KindNumbers()
        self._copy = ClusterCache()
        self._engine: Engine | None = None
        self._seen: Mapping[str, NodeInfo] = {}

    def close(self) -> None:
        self._stack.close()

    def follow(self, source: ClusterCache) -> None:
        """Take over the state of a cluster; only changes since the last time are copied."""
        if self._engine is None or self._has_catalog:
            self._stack.close()
            self._copy = source.copy()
            world = open_world(self._rules, self._settings, self._copy, evicts=False)
            self._engine = self._stack.enter_context(world).engine
            self._seen = {info.name: info for info in source.nodes()}
            return
        present = {info.name: info for info in source.nodes()}
        for name, info in self._seen.items():
            if name not in present:
                self._clear(info)
        for name, info in present.items():
            self._update(self._seen.get(name), info)
        self._seen = present

    def _clear(self, info: NodeInfo) -> None:
        for pod in info.pods:
            self._copy.remove_pod(pod.key)
        self._copy.remove_node(info.name)

    def _update(self, before: NodeInfo | None, after: NodeInfo) -> None:
        if before is after:
            return
        self._copy.add_node(after.facts)
        old = {pod.key: pod for pod in before.pods} if before is not None else {}
        new = {pod.key: pod for pod in after.pods}
        for key in old:
            if key not in new and (there := self._copy.pod(key)) and there.node_name == after.name:
                self._copy.remove_pod(key)
        for key, pod in new.items():
            if old.get(key) is not pod:
                self._copy.add_pod(pod)

    # ---- growing -----------------------------------------------------------------------------------------

    @contextmanager
    def beside(self, starting: Sequence[NodeFacts], pods: Sequence[PodInfo]) -> Iterator[list[PodInfo]]:
        """Put pods on nodes that start, while the context lasts; yield those that fit on none."""
        for facts in starting:
            self._copy.add_node(facts)
        placed, left = list[PodInfo](), list[PodInfo]()
        first: dict[int, int] = {}
        for pod in pods:
            kind = self._kinds.of(pod)
            at = first.get(kind, 0)
            while at < len(starting) and not self._place(pod, starting[at].name):
                at += 1
            first[kind] = at
            (placed if at < len(starting) else left).append(pod)
        try:
            yield left
        finally:
            self._undo(placed, [facts.name for facts in starting])

    def growth(self, group: NodeGroup, pods: Sequence[PodInfo], most: int) -> Growth:
        """Return how many fresh nodes of a group pods need, at most so many, and how many pods fit.

        The largest pods come first. A pod takes the first node that it fits on; as in cluster-autoscaler, a
        pod is not tried on a node that has rejected one of its kind.
        """
        names, placed = list[str](), list[PodInfo]()
        first: dict[int, int] = {}
        for pod in sorted(pods, key=lambda pod: -_size(pod, group.template)):
            kind = self._kinds.of(pod)
            at = first.get(kind, 0)
            while at < len(names) and not self._place(pod, names[at]):
                at += 1
            if at == len(names) and at < most:
                name = f"{group.name}-fresh-{at}"
                self._copy.add_node(node_of(group, name))
                if self._place(pod, name):
                    names.append(name)
                else:
                    self._copy.remove_node(name)
                    # Not on an empty node: on no other one of this group, either.
                    at = most
            first[kind] = at
            if at < len(names):
                placed.append(pod)
        found = self._growth(names, len(placed))
        self._undo(placed, names)
        return found

    def _growth(self, names: Sequence[str], pods: int) -> Growth:
        snapshot = self._copy.snapshot()
        used, there = [0, 0, 0], [0, 0, 0]
        for name in names:
            info = snapshot.node(name)
            assert info is not None
            cards = self._cards_of(info)
            of_cards = sum([card.used_cores for card in cards]), sum([card.cores for card in cards])
            amounts = [(info.requested.amount(one), info.allocatable.amount(one)) for one in (CPU, MEMORY)]
            for place, (part, whole) in enumerate([*amounts, of_cards]):
                used[place] += part
                there[place] += whole
        wastes = [1 - part / whole if whole else 0.0 for part, whole in zip(used, there, strict=True)]
        return Growth(len(names), pods, wastes[0], wastes[1], wastes[2] if there[2] else None)

    # ---- shrinking ---------------------------------------------------------------------------------------

    def fit_elsewhere(self, info: NodeInfo) -> bool:
        """Return whether all pods of a node fit on other nodes together, without evicting any."""
        assert self._engine is not None
        self._clear(info)
        moved = list[PodInfo]()
        fits = True
        for pod in info.pods:
            other = pod.with_fields(node_name="", nominated_node_name="", start_time=0)
            if self._engine.schedule_one(other).outcome is not Outcome.PLACED:
                self._engine.nominator.clear(other)
                fits = False
                break
            moved.append(pod)
        self._undo(moved, [])
        self._copy.add_node(info.facts)
        for pod in info.pods:
            self._copy.add_pod(pod)
        return fits

    def _place(self, pod: PodInfo, node: str) -> bool:
        assert self._engine is not None
        decision = self._engine.place_on(pod, node)
        return decision is not None and decision.outcome is Outcome.PLACED

    def _undo(self, placed: Sequence[PodInfo], nodes: Sequence[str]) -> None:
        for pod in placed:
            self._copy.remove_pod(pod.key)
        for name in nodes:
            self._copy.remove_node(name)


def _size(pod: PodInfo, template: NodeFacts) -> float:
    """Return the largest share of a resource of a node that a pod requests."""
    amounts = template.allocatable
    shares = (pod.requests.amount(name) / there for name in pod.requests if (there := amounts.amount(name)))
    return max(shares, default=0.0)
