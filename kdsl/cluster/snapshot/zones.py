"""The order in which nodes are visited: round robin over zones, as in kube-scheduler.

The cache keeps one `ZoneOrder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from typing import Final

# The beta labels take precedence.
_ZONE: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")

Zone = tuple[str, str]


def zone_of(labels: Mapping[str, str]) -> Zone:
    """Return region and zone of a node with `labels`; a missing one is empty."""
    return (_first(labels, _REGION), _first(labels, _ZONE))


class ZoneOrder:
    """Nodes by zone: zones in the order of their first nodes, nodes of a zone in the order they were added.

    A node that changes its zone goes to the end of the new one. A zone without nodes is removed.
    """

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[str, None]] = {}
        self._zone_of: dict[str, Zone] = {}

    def copy(self) -> ZoneOrder:
        """Return an independent copy of the order."""
        other = ZoneOrder()
        other._zones = {zone: dict(nodes) for zone, nodes in self._zones.items()}
        other._zone_of = dict(self._zone_of)
        return other

    def put(self, name: str, labels: Mapping[str, str]) -> None:
        """Add the node, or move it where its zone has changed."""
        zone = zone_of(labels)
        if self._zone_of.get(name) == zone:
            return
        self.remove(name)
        self._zones.setdefault(zone, {})[name] = None
        self._zone_of[name] = zone

    def remove(self, name: str) -> None:
        """Remove the node, if it is there."""
        zone = self._zone_of.pop(name, None)
        if zone is None:
            return
        nodes = self._zones[zone]
        del nodes[name]
        if not nodes:
            del self._zones[zone]

    def names(self) -> list[str]:
        """Return the first node of each zone, then the second of each, and so on."""
        names: list[str] = []
        zones, start = list(self._zones.values()), 0
        while zones:
            end = min(map(len, zones))
            names += chain.from_iterable(zip(*(islice(zone, start, end) for zone in zones), strict=True))
            zones, start = [zone for zone in zones if len(zone) > end], end
        return names


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if key in labels), "")
