"""Holds the pods that a Permit hook asked to wait with. There is no thread and no timer: whoever drives the
engine asks it to settle, with the clock telling what has expired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from kdsl.hooks.status import Code, Status

T = TypeVar("T")

_UNITS = ((3_600 * 10**9, "h"), (60 * 10**9, "m"))
_FRACTIONS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"))


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
    """The held pods by key, each with a ticket for what is to happen next; the `Permits` of plugins."""

    def __init__(self) -> None:
        self._held: dict[str, _Held[T]] = {}

    def __contains__(self, pod: str) -> bool:
        return pod in self._held

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, pod: str, timeouts: dict[str, int], now: int, ticket: T) -> None:
        """Hold a pod until all plugins of `timeouts` (nanoseconds) allow it, one rejects it or is late."""
        self._held[pod] = _Held(ticket, now, dict(timeouts))

    def allow(self, pod: str, plugin: str) -> bool:
        """Let the pod go on as far as `plugin` is concerned; False where it does not wait for that."""
        held = self._held.get(pod)
        return held is not None and held.timeouts.pop(plugin, None) is not None

    def reject(self, pod: str, plugin: str, reason: str) -> bool:
        """Send the pod back; False where it is not held, or settled already."""
        held = self._held.get(pod)
        if held is None or held.is_settled:
            return False
        held.rejection = Status(Code.UNSCHEDULABLE, (reason,), plugin)
        return True

    def take(self, pod: str) -> T | None:
        """Remove a pod, settled or not, and return its ticket; None where it is not held."""
        held = self._held.pop(pod, None)
        return None if held is None else held.ticket

    @property
    def deadline(self) -> int | None:
        """When the time of a held pod is up at the earliest, None where none is held."""
        times = (held.since + timeout for held in self._held.values() for timeout in held.timeouts.values())
        return min(times, default=None)

    @property
    def is_any_settled(self) -> bool:
        """Whether a pod need not wait any longer."""
        return any(held.is_settled for held in self._held.values())

    def expire(self, now: int) -> None:
        """Reject the pods of which a plugin's time is up: the one that ran out first is blamed."""
        for pod, held in self._held.items():
            late = min(held.timeouts.items(), key=lambda item: item[1], default=None)
            if late is not None and held.since + late[1] <= now:
                plugin, timeout = late
                text = f"rejected due to timeout after waiting {go_duration(timeout)} at plugin {plugin}"
                self.reject(pod, plugin, text)

    def take_settled(self) -> list[tuple[T, Status | None]]:
        """Remove and return who need not wait any longer, in the order they came, with the rejection."""
        settled = {pod: held for pod, held in self._held.items() if held.is_settled}
        for pod in settled:
            del self._held[pod]
        return [(held.ticket, held.rejection) for held in settled.values()]


def go_duration(nanoseconds: int) -> str:
    """Write a duration as Go does: `1h0m0s`, `15m0s`, `2.5s`, `100ms`."""
    if nanoseconds < 10**9:
        for size, unit in _FRACTIONS[1:]:
            if nanoseconds >= size:
                return _decimal(nanoseconds, size) + unit
        return f"{nanoseconds}ns" if nanoseconds else "0s"
    text = ""
    for size, unit in _UNITS:
        if nanoseconds >= size or text:
            text += f"{nanoseconds // size}{unit}"
            nanoseconds %= size
    return text + _decimal(nanoseconds, 10**9) + "s"


def _decimal(value: int, unit: int) -> str:
    digits = len(str(unit)) - 1
    return f"{value // unit}.{value % unit:0{digits}}".rstrip("0").rstrip(".")
