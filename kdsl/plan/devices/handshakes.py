"""Handshakes with device plugins: whether the cards that a node registers are still there.

The scheduler writes `Requesting_TIME` into an annotation of the node; a device plugin that lives overwrites
it. Where none does in time, and the kubelet counts no working card either, the scheduler writes
`Deleted_TIME`: from then on the node has no such cards, until its device plugin reports again or the kubelet
counts some. So what became of a handshake stands in the node, and a restart forgets nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kdsl.base.clock import Clock
from kdsl.base.times import SECOND
from kdsl.cluster.objects.node import NodeFacts
from kdsl.hooks.context import NodeAnnotator
from kdsl.hooks.status import Status

if TYPE_CHECKING:
    from kdsl.plan.devices.inventories import Inventories

PERIOD: Final = 15 * 10**9
"""The time between two rounds of handshakes, in nanoseconds."""
_REQUESTING: Final = "Requesting"
_DELETED: Final = "Deleted"
_LAYOUT: Final = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class Handshake:
    """The handshake of a kind of device.

    The kubelet counts working cards by `resource`; the device plugin has `seconds` to answer.
    """

    key: str
    resource: str
    seconds: int = 60

    def is_gone(self, node: NodeFacts) -> bool:
        """Return whether the node has lost its cards, whatever it registers."""
        return _DELETED in node.annotations.get(self.key, "") and not self._count(node)

    def next(self, node: NodeFacts, now: int) -> str | None:
        """Return the next value at a time, in nanoseconds since 1970; None to leave the annotation."""
        value = node.annotations.get(self.key, "")
        if _REQUESTING in value:
            asked = _time_of(value)
            if asked is not None and asked - now > self.seconds * SECOND:
                return _stamped(_REQUESTING, now)  # nobody would ever be late
            is_late = asked is not None and now - asked >= self.seconds * SECOND
            return _stamped(_DELETED, now) if is_late and not self._count(node) else None
        return None if self.is_gone(node) else _stamped(_REQUESTING, now)

    def _count(self, node: NodeFacts) -> int:
        return node.allocatable.amount(self.resource)


class Handshakes:
    """The handshakes of all nodes with cards; a round is due once in a `PERIOD`."""

    def __init__(self, inventories: Inventories, nodes: NodeAnnotator, clock: Clock) -> None:
        self._inventories, self._nodes, self._clock = inventories, nodes, clock

    def shake(self, nodes: Iterable[NodeFacts]) -> dict[str, Status]:
        """Write the handshakes that are due; return the failed writes by node."""
        problems: dict[str, Status] = {}
        for node in nodes:
            for key, value in self._due(node):
                problem = self._nodes.write(node.name, key, value, node.annotations.get(key, ""))
                if problem is not None:
                    problems[node.name] = problem
        return problems

    def _due(self, node: NodeFacts) -> Iterator[tuple[str, str]]:
        kinds = {card.kind for card in self._inventories.inventory(node).cards}
        for kind, program in self._inventories.programs.items():
            handshake = program.handshake
            if handshake is not None and (kind in kinds or handshake.key in node.annotations):
                value = handshake.next(node, self._clock.now())
                if value is not None:
                    yield handshake.key, value


def _stamped(word: str, now: int) -> str:
    return f"{word}_{datetime.fromtimestamp(now // SECOND, UTC).strftime(_LAYOUT)}"


def _time_of(value: str) -> int | None:
    """Return the time in a value, None for an unreadable one."""
    try:
        time = datetime.strptime(value.partition("_")[2], _LAYOUT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(time.timestamp()) * SECOND
