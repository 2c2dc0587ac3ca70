"""The answers of rules and plugins: a `Status` for one question, a `StatusColumn` for many nodes at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from threading import Lock
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.hooks.faults import Fault


class Code(IntEnum):
    """The scheduling framework's status codes, with its numbers."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def is_rejection(self) -> bool:
        """Return whether the code is a rejection, and not an error."""
        return self in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)

    @property
    def label(self) -> str:
        """Return the framework's spelling: `UnschedulableAndUnresolvable` and the like."""
        return _LABELS[self]


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


class Status(Struct, frozen=True):
    """One answer. The cycle sets `plugin`; `sites` are the `file:line` behind the reasons.

    An answer of several plugins has their answers as `parts`. `faults` are the errors that caused it; the
    answer without these errors is unknown.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    sites: tuple[str, ...] = ()
    parts: tuple[Status, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return the status with the name of its plugin."""
        return Status(self.code, self.reasons, plugin, self.sites, faults=self.faults)

    def joined(self, other: Status) -> Status:
        """Return this rejection and another one of the same node as one.

        It names both plugins, and is unresolvable where one of the two is.
        """
        code = Code.UNRESOLVABLE if Code.UNRESOLVABLE in (self.code, other.code) else self.code
        return Status(
            code,
            self.reasons + other.reasons,
            f"{self.plugin}, {other.plugin}",
            _padded(self) + _padded(other),
            (*(self.parts or (self,)), *(other.parts or (other,))),
            self.faults + other.faults,
        )

    @property
    def is_error(self) -> bool:
        """Return whether the status is an error, and thus no answer to the question."""
        return self.code is Code.ERROR or bool(self.faults)

    def is_error_in(self, reason: str) -> bool:
        """Return whether one of the reasons comes from an error."""
        if self.code is Code.ERROR or not self.faults:
            return self.code is Code.ERROR
        return any(fault.message in reason for fault in self.faults)


def _padded(status: Status) -> tuple[str, ...]:
    """Return a site for each reason, empty where it is unknown."""
    return status.sites or ("",) * len(status.reasons)


SUCCESS = Status(Code.SUCCESS)
_FIRST: Final = {SUCCESS: 0}


class StatusTable(list[Status]):
    """Numbers distinct statuses; 0 is success. It only grows, by `number` alone. Thread-safe.

    Where it `is_settled`, all others are rejections with the name of a plugin: the cycle uses a column with
    this table as it is. `has_faults` is true if any of them comes from an error.
    """

    __slots__ = ("_lock", "_numbers", "has_faults", "is_settled")

    def __init__(self) -> None:
        super().__init__((SUCCESS,))
        self.is_settled = True
        self.has_faults = False
        # A copy need not hash the status again.
        self._numbers = _FIRST.copy()
        self._lock = Lock()

    def number(self, status: Status) -> int:
        """Return the number of `status`; a new status gets the next one."""
        found = self._numbers.get(status)
        return self._added(status) if found is None else found

    def _added(self, status: Status) -> int:
        with self._lock:
            found = self._numbers.get(status)
            if found is None:
                found = len(self)
                self.append(status)
                if not (status.plugin and status.code.is_rejection):
                    self.is_settled = False
                if status.faults:
                    self.has_faults = True
                # Last of all: other threads may look up a number as soon as it is stored.
                self._numbers[status] = found
            return found

    def translate(self, column: StatusColumn) -> NDArray[np.int32]:
        """Return this table's numbers for the statuses of a column."""
        ids, statuses = column.ids, column.table
        if statuses is self:
            return ids
        used = column.used()
        numbers = np.zeros(used[-1] + 1 if used else 1, np.int32)
        for number in used:
            numbers[number] = self.number(statuses[number])
        return numbers.take(ids)


class StatusColumn(Struct, frozen=True, eq=False):
    """Answers for a set of nodes, dictionary-encoded.

    `ids` has one entry per node of the `NodeSet`, in its order, and indexes `table`; `table[0]` is success. A
    table may hold more than the column uses, and never changes under a reader (it may grow at its end).
    """

    ids: NDArray[np.int32]
    table: Sequence[Status]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Status:
        return self.table[int(self.ids[index])]

    @property
    def passed(self) -> NDArray[np.bool_]:
        passed: NDArray[np.bool_] = self.ids == 0
        return passed

    def used(self) -> list[int]:
        """Return the numbers of the statuses that nodes have, without success, in order. A table may hold far
        more.
        """
        numbers: list[int] = np.bincount(self.ids).nonzero()[0].tolist()
        return numbers[1:] if numbers and not numbers[0] else numbers

    def take(self, chosen: slice | NDArray[np.intp]) -> StatusColumn:
        """Return the answers for the nodes at some places."""
        return StatusColumn(self.ids[chosen], self.table)

    @classmethod
    def of(cls, statuses: Iterable[Status | None]) -> StatusColumn:
        """Encode one status per node; None is success."""
        table = StatusTable()
        ids: list[int] = []
        latest: Status | None = None
        number = 0
        for status in statuses:
            # Most nodes share one object with the node before, and hashing takes longer than all the rest.
            if status is not latest:
                latest = status
                number = 0 if status is None or status.code is Code.SUCCESS else table.number(status)
            ids.append(number)
        return cls(np.array(ids, dtype=np.int32), table)
