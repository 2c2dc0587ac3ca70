"""Pods in an attempt, and the events meanwhile.

An attempt uses the cluster's state at its start. If it fails, the pod must still get the events since then:
they are kept until every attempt that may have missed them is over.
"""

from __future__ import annotations

from kdsl.cluster.snapshot.events import ClusterEvent


class InFlight:
    """The pods in flight in the order in which they were taken, each with its position in the list of
    events.
    """

    def __init__(self) -> None:
        self._starts: dict[str, int] = {}
        self._events: list[ClusterEvent] = []
        self._dropped = 0

    def __contains__(self, key: str) -> bool:
        return key in self._starts

    def __len__(self) -> int:
        return len(self._starts)

    def holds_others(self, key: str) -> bool:
        """Return whether a pod other than this one is in flight."""
        return len(self._starts) > (key in self._starts)

    def start(self, key: str) -> None:
        """Record that an attempt for a pod begins."""
        self._starts[key] = self._dropped + len(self._events)

    def record(self, event: ClusterEvent) -> None:
        """Store an event for the pods in flight."""
        if self._starts:
            self._events.append(event)

    def end(self, key: str) -> tuple[ClusterEvent, ...]:
        """End the attempt for a pod and return the events since its start."""
        start = self._starts.pop(key, None)
        if start is None or not self._events:
            return ()
        missed = tuple(self._events[start - self._dropped :])
        # Starts rise in the order of the pods, so the first is the earliest.
        oldest = next(iter(self._starts.values()), None)
        keep = len(self._events) if oldest is None else oldest - self._dropped
        del self._events[:keep]
        self._dropped += keep
        return missed
