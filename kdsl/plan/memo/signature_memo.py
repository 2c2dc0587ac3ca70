"""Entries of a rule, or of the rules of a profile together, by the signature of the pod.

Two pods that differ in the fields that all rules read are often equal in those that one rule reads. They have
other requests but the same tolerations, for example. So a profile has a memo for its rules together, for pods
that are equal in all they read, and one for each rule, for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.plan.memo.bounded_memo import MAX_BYTES, Memo, MemoEntry
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.epochs import Epoch, Epochs
from kdsl.plan.reads.signatures import Signatures

MAX_RULE_BYTES: Final = 8 << 20
"""The most bytes of the memo of one rule."""
MAX_SEEN: Final = 65536
"""The most signatures that are remembered; beyond that the set starts over."""


class SignatureEntry(MemoEntry, Protocol):
    """The entry of one signature, valid for an epoch."""

    @property
    def epoch(self) -> Epoch: ...


E = TypeVar("E", bound=SignatureEntry)

Make = Callable[[Epoch, bool], E]
"""Makes the entry for an epoch; the last argument is true for a new signature, whose entry is not kept."""


class SeenSignatures:
    """A set of signatures. Thread-safe, as each operation on the set is atomic."""

    def __init__(self) -> None:
        self._known: set[Hashable] = set()

    def add(self, signature: Hashable) -> bool:
        """Add a signature. Return whether it was there."""
        known = self._known
        if signature in known:
            return True
        if len(known) >= MAX_SEEN:
            known.clear()
        known.add(signature)
        return False

    def clear(self) -> None:
        """Remove all signatures."""
        self._known.clear()


class SignatureMemo(Generic[E]):
    """Entries by signature; those of repeated signatures are kept, of at most `most` bytes together."""

    def __init__(
        self,
        reads: frozenset[str],
        signatures: Signatures,
        node_steps: Callable[[int], int],
        most: int = MAX_BYTES,
    ) -> None:
        """`reads` are those of rules whose answers can be kept. `node_steps` returns the steps of a rule on
        one of a number of nodes: with fewer a rule may fail.
        """
        dependencies = Dependencies.of(reads)
        assert dependencies is not None
        self.dependencies = dependencies
        self._signature = signatures.signature(dependencies)
        self._epochs = Epochs(lambda live: (*dependencies.versions(live), node_steps(len(live.order))))
        self._seen = SeenSignatures()
        self._memo: Memo[E] = Memo(most)

    def of(self, pod: PodInfo, live: LiveSnapshot, make: Make[E]) -> E:
        """Return the entry for a pod."""
        epoch, signature = self._epochs[live.shared_state], self._signature(pod)
        entry = self._memo.find(signature)
        if entry is not None and entry.epoch == epoch:
            return entry
        if not self._seen.add(signature):
            return make(epoch, True)
        return self._memo.put(signature, make(epoch, False))

    def clear(self) -> None:
        """Remove all entries."""
        self._seen.clear()
        self._memo.clear()
