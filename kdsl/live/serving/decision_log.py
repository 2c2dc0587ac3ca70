"""The last decisions, bounded in number, for requests to the running scheduler.

The scheduling thread adds decisions; the server reads them. A decision is rendered only on request.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice
from threading import Lock
from typing import Final

from msgspec import Struct

from kdsl.cycle.decision import Decision
from kdsl.report.decisions import Json, decision_document

MOST: Final = 1_000


class LoggedDecision(Struct, frozen=True):
    """A decision with its number in this process and its time (nanoseconds since the Unix epoch)."""

    number: int
    time: int
    decision: Decision


class DecisionLog:
    """A sink of decisions that keeps the last ones, and the last one of each pod, both at most `most`."""

    def __init__(self, clock: Callable[[], int], instance: str, most: int = MOST) -> None:
        """`instance` makes the ids of decisions unique among processes."""
        self._clock, self._instance, self._most = clock, instance, most
        self._last: deque[LoggedDecision] = deque(maxlen=most)
        self._of_pods: OrderedDict[str, LoggedDecision] = OrderedDict()
        self._number = 0
        self._lock = Lock()

    def record(self, decision: Decision) -> None:
        """Keep a decision."""
        with self._lock:
            self._number += 1
            logged = LoggedDecision(self._number, self._clock(), decision)
            self._last.append(logged)
            pods = self._of_pods
            pods[decision.pod] = logged
            pods.move_to_end(decision.pod)
            if len(pods) > self._most:
                pods.popitem(last=False)

    def of_pod(self, key: str) -> dict[str, Json] | None:
        """Return the last decision about the pod `namespace/name` as a document."""
        with self._lock:
            found = self._of_pods.get(key)
        return None if found is None else self._document(found)

    def latest(self, count: int) -> list[dict[str, Json]]:
        """Return the last decisions as documents, the newest first."""
        with self._lock:
            found = list(islice(reversed(self._last), max(0, count)))
        return [self._document(each) for each in found]

    def _id(self, number: int) -> str:
        return f"{self._instance}-{number}"

    def _document(self, logged: LoggedDecision) -> dict[str, Json]:
        return {
            "id": self._id(logged.number),
            "time": logged.time,
            "decision": decision_document(logged.decision),
        }
