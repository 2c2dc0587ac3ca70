"""The history of a pod. Times are nanoseconds after the start of the run."""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.cluster.objects.pod import PodInfo


@dataclass(slots=True)
class PodLog:
    """One pod of a workload and its history so far.

    `arrived` is None for a pod that was there from the start. `waiting_since` is the time at which it arrived
    or lost its node, None while it has one or is gone. `life` counts the times it was bound: an event of an
    earlier life is void. `left` is the rest of its duration.
    """

    pod: PodInfo
    arrived: int | None
    left: int | None
    node: str | None = None
    cards: tuple[int, ...] = ()
    reason: str | None = None
    started: int | None = None
    bound: int = 0
    ended: int | None = None
    waiting_since: int | None = None
    waited: int = 0
    evictions: int = 0
    life: int = 0
    is_gone: bool = False

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def is_bound(self) -> bool:
        """Return whether the pod has a node now."""
        return self.waiting_since is None and self.started is not None and not self.is_gone

    def arrive(self, now: int) -> None:
        self.arrived = self.waiting_since = now

    def bind(self, now: int, node: str, cards: tuple[int, ...]) -> None:
        if self.waiting_since is not None:
            self.waited += now - self.waiting_since
        self.waiting_since = self.reason = None
        self.node, self.cards, self.bound = node, cards, now
        self.started = now if self.started is None else self.started
        self.life += 1

    def evict(self, now: int, continues: bool) -> None:
        """Take the node away. The work of the pod so far counts only if it `continues`."""
        if continues and self.left is not None:
            self.left = max(0, self.left - (now - self.bound))
        self.node, self.cards, self.waiting_since = None, (), now
        self.reason = "evicted"
        self.evictions += 1
        self.life += 1

    def end(self, now: int) -> None:
        """End the pod: it is done or deleted. Its last node and cards stay in the log."""
        if self.waiting_since is not None:
            self.reason = "deleted while it waited"
        self.ended, self.waiting_since, self.is_gone = now, None, True
        self.life += 1
