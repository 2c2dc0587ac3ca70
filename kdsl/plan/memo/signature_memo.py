"""Entries of a rule, or of the rules of a profile together, by the signature of the pod.

Two pods that differ in the fields that all rules read are often equal in those that one rule reads. They have
other requests but the same tolerations, for example. So a profile has a memo for its rules together, for pods
that are equal in all they read, and one for each rule, for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.plan.memo.answers import MAX_BYTES, Memo
from kdsl.plan.memo.seen_signatures import SeenSignatures
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.signatures import Signatures

MAX_RULE_BYTES: Final = 8 << 20
"""The most bytes of the memo of one rule."""


class SignatureEntry(Protocol):
    """The entry of one signature, valid for a snapshot and the versions `epoch` of parts of the cluster."""

    @property
    def snapshot(self) -> LiveSnapshot: ...

    @property
    def epoch(self) -> tuple[int, ...]: ...

    @property
    def nbytes(self) -> int: ...


E = TypeVar("E", bound=SignatureEntry)

Make = Callable[[tuple[int, ...], bool], E]
"""Makes the entry for an epoch; the last argument is true for a new signature, whose entry is not kept."""


class SignatureMemo(Generic[E]):
    """Entries by signature; those of repeated signatures are kept, of at most `most` bytes together."""

    def __init__(self, reads: frozenset[str], signatures: Signatures, most: int = MAX_BYTES) -> None:
        """`reads` are those of rules whose answers can be kept."""
        dependencies = Dependencies.of(reads)
        assert dependencies is not None
        self.dependencies = dependencies
        self._signature = signatures.signature(dependencies)
        self._epoch = dependencies.epoch
        self._seen = SeenSignatures()
        self._memo: Memo[E] = Memo(most)

    def of(self, pod: PodInfo, snapshot: LiveSnapshot, steps: int, make: Make[E]) -> E:
        """Return the entry for a pod. `steps` are those of a rule on one node, which depend on the number of
        nodes: with fewer a rule may fail.
        """
        epoch, signature = (*self._epoch(snapshot), steps), self._signature(pod)
        if not self._seen.add(signature):
            return make(epoch, True)
        return self._memo.get(
            signature,
            lambda known: known.snapshot is snapshot and known.epoch == epoch,
            lambda: make(epoch, False),
        )

    def clear(self) -> None:
        """Remove all entries."""
        self._seen.clear()
        self._memo.clear()
