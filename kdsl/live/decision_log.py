"""The last decisions, so many of them, for whoever asks the running scheduler why.

The scheduling thread puts them in; the server reads them. Nothing is rendered before somebody asks.
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
    """A decision with its number in this process and when it was made (nanoseconds since the Unix epoch)."""

    number: int
    time: int
    decision: Decision


class DecisionLog:
    """A sink of decisions that remembers the last ones, and of as many pods the last one."""

    def __init__(self, clock: Callable[[], int], instance: str, most: int = MOST) -> None:
        """`instance` tells this process from others in the ids of decisions."""
        self._clock, self._instance, self._most = clock, instance, most
        self._last: deque[LoggedDecision] = deque(maxlen=most)
        self._of_pods: OrderedDict[str, LoggedDecision] = OrderedDict()
        self._number = 0
        self._lock = Lock()

    def record(self, decision: Decision) -> None:
        """Remember a decision."""
        with self._lock:
            self._number += 1
            logged = LoggedDecision(self._number, self._clock(), decision)
            self._last.append(logged)
            pods = self._of_pods
            pods[decision.pod] = logged
            pods.move_to_end(decision.pod)
            if len(pods) > self._most:
                pods.popitem(last=False)

    def last_id(self) -> str:
        """Return the id of the decision that was recorded last: logs and events name it."""
        return self._id(self._number)

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
