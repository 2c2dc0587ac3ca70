"""`kdsl run --shadow`: repeats the decisions of the cluster's own scheduler, binds nothing, and compares.

A pod is decided when its binding arrives, in full detail, on the cluster state right before it. That was the
state of the other scheduler's decision, including all pods bound before. The scheduling thread applies the
changes and makes the decisions.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision
from kdsl.live.rules.differences import Difference, DifferenceCause, difference
from kdsl.live.watching.changes import LivePod, ObjectChange, Verb

MAX_WAITING: Final = 50_000
"""The most known unbound pods; the oldest are forgotten, and not compared."""
MAX_KEPT: Final = 1_000
"""The most differences kept for the report; all are counted."""


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """The results so far: pods by cause, differences by cause and rule, and the last differences."""

    compared: int
    causes: dict[DifferenceCause, int]
    rules: dict[tuple[DifferenceCause, str], int]
    differences: tuple[Difference, ...]
    waiting: int

    @property
    def equal(self) -> int:
        """Return the number of equal decisions."""
        return self.causes.get(DifferenceCause.EQUAL, 0)


@dataclass(slots=True)
class _Waiting:
    """A pod without a node. `is_counted`: a difference was counted already, since only we would place it."""

    uid: str
    is_counted: bool = False


class Shadow:
    """Follows pods from their first event to their node. For the scheduling thread."""

    def __init__(self, decide: Callable[[PodInfo], Decision | None], count: Callable[[str], object]) -> None:
        """`decide` returns the full decision without side effects; None for a pod without a profile.

        `count` is called with the cause of each difference, also for equal decisions.
        """
        self._decide, self._count_cause = decide, count
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._causes: Counter[DifferenceCause] = Counter()
        self._rules: Counter[tuple[DifferenceCause, str]] = Counter()
        self._last: deque[Difference] = deque(maxlen=MAX_KEPT)

    def take(self, change: ObjectChange) -> Difference | None:
        """Apply a change before the cache does; return the comparison, if this change completes one.

        A pod with a node in its first event is not compared: the time of its decision is unknown. A pod that
        the other scheduler reports as unschedulable is also compared once, if we can place it.
        """
        if change.resource != "pods" or not isinstance(change.object, LivePod):
            return None
        live, waiting = change.object, self._waiting.get(change.key)
        pod = live.info
        if waiting is not None and waiting.uid != change.uid:
            # A new pod has this name now.
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
        if waiting.is_counted or not _is_refused(live):
            return None
        decision = self._decide(pod)
        found = None if decision is None else difference(decision, "")
        if found is None or found.is_equal:
            return None
        waiting.is_counted = True
        return self._count(found)

    def report(self) -> ShadowReport:
        """Return the results so far."""
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
        self._count_cause(found.cause.value)
        if not found.is_equal:
            self._rules[found.cause, found.rule] += 1
            self._last.append(found)
        return found


def _is_refused(pod: LivePod) -> bool:
    """Return whether the other scheduler reports the pod as unschedulable."""
    return any(
        each.type == "PodScheduled" and each.status == "False" and each.reason == "Unschedulable"
        for each in pod.conditions
    )
