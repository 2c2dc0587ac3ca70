"""The queue's record of a pod beyond its place: its attempts, and the plugins that rejected it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kdsl.cycle.decision import Decision, Outcome
from kdsl.hooks.faults import Fault, merged
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.status import Code, Status
from kdsl.hooks.wake import HintAnswer

MOST_FAULTS: Final = 8
"""The most errors of hints that are kept for a pod, the latest ones."""


class Rejectors(Struct, frozen=True):
    """The plugins that rejected a pod: empty where the attempt failed with an error.

    The plugins of `pending` wait for an operation under way: when it ends, the pod is tried without backoff.
    `blockers` keep the pod from making room by preemption: the preemption itself comes first. A pod that
    `lacks_nodes` found a cluster without a node: no plugin rejected it, and only a new node helps.
    """

    unschedulable: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    lacks_nodes: bool = False

    def __bool__(self) -> bool:
        return bool(self.unschedulable or self.pending or self.lacks_nodes)

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.pending, *self.unschedulable)))


NOBODY = Rejectors()
LACKS_NODES = Rejectors(lacks_nodes=True)


def rejectors_of(decision: Decision) -> Rejectors:
    """Return what keeps the pod of a decision from being placed."""
    if decision.outcome is not Outcome.UNSCHEDULABLE:
        return NOBODY
    found = _rejectors_of(decision)
    if not found:
        return LACKS_NODES if decision.nodes == 0 else NOBODY
    return Rejectors(found.unschedulable, found.pending, decision.blockers)


def _rejectors_of(decision: Decision) -> Rejectors:
    if decision.turned_away is not None:
        return _split([(decision.turned_away.plugin, decision.turned_away.code.label)])
    before = decision.prefilter
    if before.status is not None:
        named = [(plugin, Code.UNSCHEDULABLE.label) for plugin in (before.status.plugin,) if plugin]
        return _split(named or [(plugin, Code.UNSCHEDULABLE.label) for plugin in before.narrowed_by])
    found = [(each.plugin, each.code) for each in decision.rejections if each.plugin]
    return _split([*found, *((plugin, Code.UNSCHEDULABLE.label) for plugin in before.narrowed_by)])


def _split(found: list[tuple[str, str]]) -> Rejectors:
    pending = Code.PENDING.label
    return Rejectors(
        tuple(sorted({plugin for plugin, code in found if code != pending})),
        tuple(sorted({plugin for plugin, code in found if code == pending})),
    )


class PendingPod(Struct, eq=False):
    """A waiting pod. `rejections` and `errors` count failures for the backoff: errors only those in a row.

    `key` is its `namespace/name`. `promised` is the node for which its latest attempt left it nominated.
    `refusal` is why the pod is gated, None where it is not. `is_flushed`: its latest attempt came from the
    timeout and not from an event. `faults` are errors of hints that woke it, which its next decision shows.
    """

    key: str
    queued: QueuedPod
    rejections: int = 0
    errors: int = 0
    rejectors: Rejectors = NOBODY
    promised: str = ""
    refusal: Status | None = None
    is_flushed: bool = False
    faults: tuple[Fault, ...] = ()

    def woken_by(self, answer: HintAnswer) -> None:
        """Keep the error of a hint that gives the pod another attempt."""
        if isinstance(answer, Fault):
            self.note((answer,))

    def note(self, faults: Sequence[Fault]) -> None:
        """Keep errors of hints for the next decision."""
        if faults:
            self.faults = merged((*self.faults, *faults))[-MOST_FAULTS:]

    def take_faults(self) -> tuple[Fault, ...]:
        """Return the errors of hints since the last decision."""
        taken, self.faults = self.faults, ()
        return taken

    @property
    def failures(self) -> int:
        """Return the number of failures that determines the backoff."""
        return self.errors or self.rejections

    def fail(self, rejectors: Rejectors, promised: str = "") -> None:
        """Count a failed attempt, which left the pod nominated for the node `promised`, if any."""
        # While room is being made for it, the pod makes no other.
        self.rejectors = replace(rejectors, blockers=()) if promised else rejectors
        self.promised = promised
        self.is_flushed = False
        if rejectors:
            self.rejections += 1
            self.errors = 0
        else:
            self.errors += 1
