"""The functions that the manifest declares for rule files: plain functions of plain values."""

from __future__ import annotations

from kdsl.cluster.objects.node import NodeInfo

RACK_LABEL = "example.com/rack"


def rack_of(node: NodeInfo) -> str:
    """Return the rack of a node, such as `hall1.row2.rack3`, "" where it is not known: `node.rack`."""
    return node.labels.get(RACK_LABEL, "")


def distance(one: str, other: str) -> int:
    """Return how many levels two racks do not share: 0 for the same rack, 1 for the same row, …"""
    left, right = one.split("."), other.split(".")
    if len(left) != len(right):
        raise ValueError(f"{one!r} and {other!r} are not named alike")
    shared = next((at for at, (a, b) in enumerate(zip(left, right, strict=True)) if a != b), len(left))
    return len(left) - shared
