"""Entries of a rule, or of the rules of a profile together, by the signature of the pod.

Two pods that differ in the fields that all rules read are often equal in those that one rule reads. They have
other requests but the same tolerations, for example. So a profile has a memo for its rules together, for pods
that are equal in all they read, and one for each rule, for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from kdsl.base.bounded_memo import MAX_BYTES, Memo, MemoEntry
from kdsl.base.seen_signatures import SeenSignatures
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.plan.reads.dependencies import Dependencies, Epoch, Epochs

MAX_RULE_BYTES: Final = 8 << 20
"""The most bytes of the memo of one rule."""
MAX_SEEN: Final = 65536
"""The most signatures that are remembered."""


class SignatureEntry(MemoEntry, Protocol):
    """The entry of one signature, valid for an epoch."""

    @property
    def epoch(self) -> Epoch: ...


E = TypeVar("E", bound=SignatureEntry)

Make = Callable[[PodInfo, NodeSet, Epoch, bool], E]
"""Makes the entry of a pod's signature for an epoch, and is given some nodes of its snapshot. The last
argument is true for a new signature, whose entry is not kept.
"""


class SignatureMemo(Generic[E]):
    """Entries by signature; those of repeated signatures are kept, of at most `most` bytes together."""

    def __init__(
        self,
        reads: frozenset[str],
        node_steps: Callable[[int], int] | None = None,
        most: int = MAX_BYTES,
    ) -> None:
        """`reads` are those of rules whose answers can be kept. `node_steps` returns the steps of a rule on
        one of a number of nodes, if any: with fewer a rule may fail.
        """
        dependencies = Dependencies.of(reads)
        assert dependencies is not None
        self.dependencies = dependencies
        versions, steps = dependencies.versions, node_steps
        self._epochs = Epochs(
            versions if steps is None else lambda live: (*versions(live), steps(len(live.order)))
        )
        self._seen = SeenSignatures(MAX_SEEN)
        self._memo: Memo[E] = Memo(most)

    def of(self, pod: PodInfo, nodes: NodeSet, make: Make[E]) -> E:
        """Return the entry for a pod over the live snapshot of these nodes."""
        live = nodes.snapshot.live
        epoch, signature = self._epochs[live.shared_state], self.dependencies.signature(pod)
        entry = self._memo.find(signature)
        if entry is not None and entry.epoch == epoch:
            return entry
        if self._seen.is_new(signature):
            return make(pod, nodes, epoch, True)
        return self._memo.put(signature, make(pod, nodes, epoch, False))

    def clear(self) -> None:
        """Remove all entries."""
        self._seen.clear()
        self._memo.clear()
