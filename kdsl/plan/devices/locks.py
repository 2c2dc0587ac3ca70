"""Locks of nodes, by HAMi's protocol: while a device plugin serves a pod, no other pod is bound to its node.

A lock is an annotation of the node, `TIME,NAMESPACE,NAME`. The scheduler takes it before it binds a pod. The
device plugin gives it back when all containers of the pod have their cards, the scheduler does where the pod
is not bound after all. A lock that nobody gave back no longer holds after a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from kdsl.base.clock import Clock
from kdsl.base.times import SECOND, go_duration, to_seconds
from kdsl.hooks.context import NodeAnnotator
from kdsl.hooks.status import Code, Status

CONTENTION: Final = "node lock contention"
"""The end of the reason if another pod holds a lock."""


@dataclass(frozen=True, slots=True)
class NodeLock:
    """The lock of a kind of device; an owned one names the pod that holds it."""

    key: str
    seconds: float = 300
    is_owned: bool = True

    @property
    def duration(self) -> str:
        """The duration in the reason of a held lock: `5m0s: node lock contention`.

        Cambricon's lock, which names no pod, has a text of its own, and nobody waits for it.
        """
        if self.is_owned:
            return f"{go_duration(round(self.seconds * SECOND))}: {CONTENTION}"
        return f"{self.seconds / 60:g} minutes"


class Locks:
    """The locks of nodes: taken, and given back."""

    def __init__(self, nodes: NodeAnnotator, clock: Clock) -> None:
        self._nodes, self._clock = nodes, clock

    def acquire(self, locks: Iterable[NodeLock], node: str, pod: str) -> Status | None:
        """Take all locks for the pod `namespace/name`; or take none and return the reason.

        An error of the annotator is passed on, after the taken locks were given back.
        """
        taken: list[NodeLock] = []
        for lock in dict.fromkeys(locks):
            try:
                problem = self._take(lock, node, pod)
            except Exception:
                self.release(taken, node, pod)
                raise
            if problem is not None:
                self.release(taken, node, pod)
                return problem
            taken.append(lock)
        return None

    def release(self, locks: Sequence[NodeLock], node: str, pod: str) -> Status | None:
        """Give back the locks of the pod, last first; return the first problem."""
        problems = [self._give_back(lock, node, pod) for lock in reversed(locks)]
        return next((problem for problem in problems if problem is not None), None)

    def _take(self, lock: NodeLock, node: str, pod: str) -> Status | None:
        annotations = self._nodes.read(node)
        if annotations is None:
            return Status(Code.ERROR, (f"node {node} is gone",))
        held = annotations.get(lock.key, "")
        owner = owner_of(held)
        if held and owner == pod and lock.is_owned:
            return None
        if held and self._holds(lock, held) and (not owner or self._nodes.has_pod(owner)):
            return Status(Code.ERROR, (f"node {node} has been locked within {lock.duration}",))
        time = to_seconds(self._clock.now())
        value = f"{time},{pod.replace('/', ',', 1)}" if lock.is_owned else time
        return self._nodes.write(node, lock.key, value, held)

    def _give_back(self, lock: NodeLock, node: str, pod: str) -> Status | None:
        held = (self._nodes.read(node) or {}).get(lock.key, "")
        if not held or (lock.is_owned and owner_of(held) not in ("", pod)):
            return None
        return self._nodes.write(node, lock.key, "", held)

    def _holds(self, lock: NodeLock, held: str) -> bool:
        """Return whether a lock is young enough.

        One without a readable time holds nobody up, and neither does one from further ahead than it may
        last: no clock goes that wrong, and it would hold for ever.
        """
        taken = taken_at(held)
        return taken is not None and abs(self._clock.now() - taken) <= int(lock.seconds * SECOND)


def taken_at(held: str) -> int | None:
    """Return when a lock was taken, in nanoseconds since 1970; None without a readable time."""
    try:
        taken = datetime.fromisoformat(held.partition(",")[0])
    except ValueError:
        return None
    if taken.tzinfo is None:
        taken = taken.replace(tzinfo=UTC)
    return int(taken.timestamp()) * SECOND


def owner_of(held: str) -> str:
    """Return the pod `namespace/name` that holds a lock; empty for the old form without a pod."""
    parts = held.split(",")
    return f"{parts[1]}/{parts[2]}" if len(parts) == 3 else ""
