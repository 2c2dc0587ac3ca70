"""Host ports, in the form that rules read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EVERY_ADDRESS: Final = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a pod uses; `ip` 0.0.0.0 means every address of the node."""

    ip: str
    protocol: str
    port: int

    def conflicts_with(self, other: HostPort) -> bool:
        """Return whether one node cannot have both: same port and protocol, and the same or every address."""
        return (
            self.port == other.port
            and self.protocol == other.protocol
            and (self.ip == other.ip or EVERY_ADDRESS in (self.ip, other.ip))
        )
