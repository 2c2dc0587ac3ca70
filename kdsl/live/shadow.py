"""`kdsl run --shadow`: decides what the cluster's own scheduler decides, binds nothing, and compares.

A pod is decided when its binding is seen, in full, on the cluster as it was right before that: so it stood
when the other scheduler decided, all pods that were bound before it included. The scheduling thread feeds
the changes and makes the decisions.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision
from kdsl.live.changes import Change, LivePod, Verb
from kdsl.live.differences import Difference, DifferenceCause, difference

MAX_WAITING: Final = 50_000
"""Pods that are seen and not bound yet: beyond it the oldest is forgotten, and not compared."""
MAX_KEPT: Final = 1_000
"""Differences that are kept for the report; all are counted."""


class ShadowObserver(Protocol):
    """Counts comparisons; `kdsl.obs` has one."""

    def compared(self, cause: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """What was found so far: pods by cause, differences by cause and rule, and the last differences."""

    compared: int
    causes: dict[DifferenceCause, int]
    rules: dict[tuple[DifferenceCause, str], int]
    differences: tuple[Difference, ...]
    waiting: int

    @property
    def equal(self) -> int:
        """The number of pods that were decided alike."""
        return self.causes.get(DifferenceCause.EQUAL, 0)


@dataclass(slots=True)
class _Waiting:
    """A pod of this uid that was seen without a node. `is_told`: that only we would place it was counted."""

    uid: str
    is_told: bool = False


class Shadow:
    """Follows pods from their first sight to their node. All calls come from the scheduling thread."""

    def __init__(
        self,
        decide: Callable[[PodInfo], Decision | None],
        observer: ShadowObserver | None = None,
    ) -> None:
        """`decide` returns the decision in full, and changes nothing; None for a pod of no profile."""
        self._decide, self._observer = decide, observer
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._causes: Counter[DifferenceCause] = Counter()
        self._rules: Counter[tuple[DifferenceCause, str]] = Counter()
        self._last: deque[Difference] = deque(maxlen=MAX_KEPT)

    def take(self, change: Change) -> Difference | None:
        """Take in a change, before the cache does; return what came of a pod that is compared now.

        Whoever was bound when it was first seen is not compared: nobody knows when that was decided. A pod
        that the other scheduler says it cannot place is compared once as well, if we can.
        """
        if change.resource != "pods" or not isinstance(change.object, LivePod):
            return None
        live, waiting = change.object, self._waiting.get(change.key)
        pod = live.info
        if waiting is not None and waiting.uid != change.uid:
            # Another pod has its name now.
            del self._waiting[change.key]
            waiting = None
        if change.verb is Verb.DROP:
            self._waiting.pop(change.key, None)
            return None
        if pod.node_name:
            if waiting is None:
                return None
            del self._waiting[change.key]
            return self._compare(pod.with_fields(node_name=""), pod.node_name)
        if pod.scheduling_gates or pod.is_terminating:
            return None
        if waiting is None:
            self._note(change.key, change.uid)
            return None
        if waiting.is_told or not _is_refused(live):
            return None
        decision = self._decide(pod)
        found = None if decision is None else difference(decision, "")
        if found is None or found.is_equal:
            return None
        waiting.is_told = True
        return self._count(found)

    def report(self) -> ShadowReport:
        """Return what was found so far."""
        return ShadowReport(
            sum(self._causes.values()),
            dict(self._causes),
            dict(self._rules),
            tuple(self._last),
            len(self._waiting),
        )

    def _note(self, key: str, uid: str) -> None:
        self._waiting[key] = _Waiting(uid)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popitem(last=False)

    def _compare(self, pod: PodInfo, node: str) -> Difference | None:
        decision = self._decide(pod)
        return None if decision is None else self._count(difference(decision, node))

    def _count(self, found: Difference) -> Difference:
        self._causes[found.cause] += 1
        if self._observer is not None:
            self._observer.compared(found.cause.value)
        if not found.is_equal:
            self._rules[found.cause, found.rule] += 1
            self._last.append(found)
        return found


def _is_refused(pod: LivePod) -> bool:
    """Tell whether the other scheduler says that it cannot place a pod."""
    return any(
        each.type == "PodScheduled" and each.status == "False" and each.reason == "Unschedulable"
        for each in pod.conditions
    )
