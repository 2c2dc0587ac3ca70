"""Answers of single rules by their own signatures, for pods that are new to the profile.

Two pods that differ in the fields that all rules read are often equal in those that one rule reads. They have
other requests but the same tolerations, for example. Such a rule runs once for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.plan.memo.answers import Memo
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.signatures import Signatures

MAX_RULE_BYTES: Final = 8 << 20
"""The most bytes of the memo of one rule."""


class RuleEntry(Protocol):
    """The entry of one signature, valid for a snapshot and the versions `epoch` of parts of the cluster."""

    @property
    def snapshot(self) -> LiveSnapshot: ...

    @property
    def epoch(self) -> tuple[int, ...]: ...

    @property
    def nbytes(self) -> int: ...


E = TypeVar("E", bound=RuleEntry)


class RuleMemo(Generic[E]):
    """The entries of one rule by its signature; those of repeated signatures are kept."""

    def __init__(self, reads: frozenset[str], signatures: Signatures) -> None:
        """`reads` are those of a rule whose answers can be kept."""
        dependencies = Dependencies.of(reads)
        assert dependencies is not None
        self._epoch = dependencies.epoch
        self._signature = signatures.signature(dependencies)
        self._memo: Memo[E] = Memo(MAX_RULE_BYTES)

    def of(
        self, pod: PodInfo, snapshot: LiveSnapshot, steps: int, make: Callable[[tuple[int, ...], bool], E]
    ) -> E:
        """Return the entry for a pod, made by `make` with the epoch; the last argument is true for a new
        signature, whose entry is not kept. `steps` are those of the rule on a node, part of the epoch.
        """
        epoch = (*self._epoch(snapshot), steps)
        return self._memo.of(
            self._signature(pod),
            lambda known: known.snapshot is snapshot and known.epoch == epoch,
            lambda is_new: make(epoch, is_new),
        )

    def clear(self) -> None:
        """Remove all entries."""
        self._memo.clear()
