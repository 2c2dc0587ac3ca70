"""Holds the pods for which a Permit hook asks to wait. There is no thread and no timer: the caller asks the
engine to settle, and the clock shows which pods have timed out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kdsl.base.times import go_duration
from kdsl.hooks.status import Code, Status

T = TypeVar("T")


@dataclass(slots=True)
class _Held(Generic[T]):
    ticket: T
    since: int
    timeouts: dict[str, int]  # plugin -> nanoseconds
    rejection: Status | None = None

    @property
    def is_settled(self) -> bool:
        return self.rejection is not None or not self.timeouts


class WaitingPods(Generic[T]):
    """The held pods by key, each with a ticket for its continuation; the `Permits` of plugins."""

    def __init__(self) -> None:
        self._held: dict[str, _Held[T]] = {}
        self._listeners: list[Callable[[Code, int], object]] = []

    def listen(self, listener: Callable[[Code, int], object]) -> None:
        """Call `listener` at the end of each wait, with its result and its nanoseconds.

        The result is SUCCESS where all plugins allowed the pod, else UNSCHEDULABLE: a plugin rejected it, its
        time is over, or it was deleted.
        """
        self._listeners.append(listener)

    def __contains__(self, pod: str) -> bool:
        return pod in self._held

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, pod: str, timeouts: dict[str, int], now: int, ticket: T) -> None:
        """Hold a pod until all plugins of `timeouts` (nanoseconds) allow it, one rejects it, or one times
        out.
        """
        self._held[pod] = _Held(ticket, now, dict(timeouts))

    def allow(self, pod: str, plugin: str) -> bool:
        """Record that `plugin` allows the pod; return False where the pod does not wait for that plugin."""
        held = self._held.get(pod)
        return held is not None and held.timeouts.pop(plugin, None) is not None

    def reject(self, pod: str, plugin: str, reason: str) -> bool:
        """Reject a held pod; return False where it is not held, or settled already."""
        held = self._held.get(pod)
        if held is None or held.is_settled:
            return False
        held.rejection = Status(Code.UNSCHEDULABLE, (reason,), plugin)
        return True

    def take(self, pod: str, now: int) -> T | None:
        """Remove a pod, settled or not, and return its ticket; None where it is not held."""
        held = self._held.pop(pod, None)
        if held is None:
            return None
        self._end(held, now)
        return held.ticket

    @property
    def deadline(self) -> int | None:
        """Return the earliest timeout of a held pod, None where none is held."""
        times = (held.since + timeout for held in self._held.values() for timeout in held.timeouts.values())
        return min(times, default=None)

    @property
    def is_any_settled(self) -> bool:
        """Return whether any held pod need not wait any longer."""
        return any(held.is_settled for held in self._held.values())

    def expire(self, now: int) -> None:
        """Reject the pods with an expired plugin: the one that expired first is named."""
        for pod, held in self._held.items():
            late = min(held.timeouts.items(), key=lambda item: item[1], default=None)
            if late is not None and held.since + late[1] <= now:
                plugin, timeout = late
                text = f"rejected due to timeout after waiting {go_duration(timeout)} at plugin {plugin}"
                self.reject(pod, plugin, text)

    def take_settled(self, now: int) -> list[tuple[T, Status | None]]:
        """Remove and return the settled pods in the order of their arrival, with their rejections."""
        settled = {pod: held for pod, held in self._held.items() if held.is_settled}
        for pod, held in settled.items():
            del self._held[pod]
            self._end(held, now)
        return [(held.ticket, held.rejection) for held in settled.values()]

    def _end(self, held: _Held[T], now: int) -> None:
        is_allowed = held.rejection is None and held.is_settled
        result = Code.SUCCESS if is_allowed else Code.UNSCHEDULABLE
        for listener in self._listeners:
            listener(result, now - held.since)
