"""The order of resource versions: those of the API server are growing numbers."""

from __future__ import annotations


def is_older(version: str, other: str) -> bool:
    """Return whether a resource version is older than another; False where one of them is no number."""
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)
