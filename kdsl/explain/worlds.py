"""A pod and its cluster after hypothetical changes: the input of counterfactual runs of rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.explain.changes import PODS, WhatIfChange, with_amount


@dataclass(frozen=True, slots=True)
class Freed:
    """An amount of a resource, in its canonical unit, freed on a node, whichever pods use it."""

    node: str
    resource: str
    amount: int


WorldChange = WhatIfChange | Freed


@dataclass(frozen=True, slots=True)
class RunInput:
    """The input of a run: a pod over a snapshot. `homes` are the rows of placed pods, by key."""

    pod: PodInfo
    snapshot: Snapshot
    homes: Mapping[str, int]

    @classmethod
    def of(cls, pod: PodInfo, snapshot: Snapshot) -> RunInput:
        """Return the present world."""
        rows = snapshot.order.tolist()
        return cls(pod, snapshot, {placed.key: row for row in rows for placed in snapshot.info(row).pods})

    def after(self, steps: Iterable[WorldChange]) -> RunInput:
        """Return the world after some steps; this one does not change."""
        pod, snapshot = self.pod, self.snapshot
        gone: dict[int, list[str]] = {}
        for step in steps:
            if isinstance(step, Freed):
                snapshot = _freed(snapshot, step)
            elif step.on == PODS:
                if step.value in self.homes:
                    gone.setdefault(self.homes[step.value], []).append(step.value)
            elif step.is_of_node:
                snapshot = _changed(snapshot, step)
            else:
                pod = step.to_pod(pod)
        for row, keys in gone.items():
            node = snapshot.info(row)
            for key in keys:
                node = node.without_pod(next(placed for placed in node.pods if placed.key == key))
            snapshot = snapshot.overlay(row, node)
        return RunInput(pod, snapshot, self.homes)


def _changed(snapshot: Snapshot, change: WhatIfChange) -> Snapshot:
    row = snapshot.row_of(change.on)
    if row is None:
        return snapshot
    node = snapshot.info(row)
    return snapshot.overlay(row, node.with_facts(change.to_node(node.facts)))


def _freed(snapshot: Snapshot, freed: Freed) -> Snapshot:
    row = snapshot.row_of(freed.node)
    if row is None:
        return snapshot
    node = snapshot.info(row)
    name = freed.resource
    left = node.requested.amount(name) - freed.amount
    scored = max(0, node.scored_requests.amount(name) - freed.amount)
    changed = node.with_fields(
        requested=with_amount(node.requested, name, left),
        scored_requests=with_amount(node.scored_requests, name, scored),
    )
    return snapshot.overlay(row, changed)
