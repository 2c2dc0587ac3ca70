"""The epoch of a rule: the versions of the shared parts of the cluster that it reads.

Kept answers are valid while the epoch is equal. Nodes have logs of changes instead, see `ChangedRows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot, SharedState

VersionsOf = Callable[[LiveSnapshot], tuple[int, ...]]
"""Returns the versions of the parts of the cluster that a rule reads."""


class Epoch(NamedTuple):
    """A snapshot, and the versions of parts of the cluster in it."""

    snapshot: LiveSnapshot
    versions: tuple[int, ...]


class Epochs(dict[SharedState, Epoch]):
    """The epochs of a rule: the latest one, by the state of the parts that all nodes share. The versions are
    read again only if that state is another one.
    """

    def __init__(self, versions_of: VersionsOf) -> None:
        super().__init__()
        self._versions_of = versions_of

    def __missing__(self, state: SharedState) -> Epoch:
        live = state.snapshot
        epoch = Epoch(live, self._versions_of(live))
        # Other threads may find nothing meanwhile, and get an equal epoch.
        self.clear()
        self[state] = epoch
        return epoch
