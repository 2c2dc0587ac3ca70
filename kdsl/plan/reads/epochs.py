"""The epoch of a rule: the versions of the shared parts of the cluster that it reads.

Kept answers are valid while the epoch is equal. Nodes have logs of changes instead, see `ChangedRows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot

VersionsOf = Callable[[LiveSnapshot], tuple[int, ...]]
"""Returns the versions of the parts of the cluster that a rule reads."""


class Epoch(NamedTuple):
    """A snapshot, and the versions of parts of the cluster in it."""

    snapshot: LiveSnapshot
    versions: tuple[int, ...]


class Epochs:
    """The epochs of a rule. The versions are read again only if a part that all nodes share has changed."""

    __slots__ = ("_latest", "_versions_of")

    def __init__(self, versions_of: VersionsOf) -> None:
        self._versions_of = versions_of
        # The latest epoch with the shared version, in one value: other threads ask as well.
        self._latest: tuple[int, Epoch] | None = None

    def of(self, live: LiveSnapshot) -> Epoch:
        """Return the epoch of a snapshot as it is now."""
        latest = self._latest
        if latest is None or latest[0] != live.shared_version or latest[1].snapshot is not live:
            latest = self._latest = (live.shared_version, Epoch(live, self._versions_of(live)))
        return latest[1]
