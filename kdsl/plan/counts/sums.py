"""Topology domains: the values of one label, numbered; and numbers by domain, updated as nodes and pods come
and go.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.snapshot.fact_columns import ABSENT, FactColumn, FactColumns
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.eval.values import INT_MAX

NO_DOMAIN: Final = ABSENT
"""The number of the domain of a row whose node lacks the label."""
_FEW: Final = 4096
"""The largest range of amounts that is counted with a cell per amount."""
_MANY: Final = 8
"""So many amounts are added faster as an array than one by one."""


def domains_of(live: LiveSnapshot, topology_key: str) -> FactColumn:
    """Return the current column of a label: its codes are the numbers of the domains."""
    return FactColumns.of(live).key("labels", topology_key)


class DomainSums:
    """One int64 per domain of a topology key; `ids` are the numbers of the domains by row, None over an
    overlay.

    INVARIANT: the cell of `NO_DOMAIN` stays 0.
    """

    def __init__(self, column: FactColumn) -> None:
        self.numbers: Mapping[str, int] = column.numbers
        self.ids: NDArray[np.int32] | None = column.codes
        self.cells: NDArray[np.int64] = np.zeros(len(column.numbers), dtype=np.int64)
        # Bounds of all numbers so far, including 0 for no domain.
        self.least_ever = self.largest_ever = 0

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes

    @property
    def named_domains(self) -> int:
        """The number of domains that have a number."""
        return len(self.numbers) - 1

    def by_domain(self) -> dict[str, int]:
        """Return the sum of each domain that takes part."""
        there = self._taking_part()
        return {
            domain: self.cells.item(number)
            for domain, number in self.numbers.items()
            if number != NO_DOMAIN and there.item(number)
        }

    def _taking_part(self) -> NDArray[np.bool_]:
        """Return by number whether a domain takes part: one whose sum is not 0."""
        there: NDArray[np.bool_] = self.cells != 0
        return there

    def refresh(self, column: FactColumn) -> None:
        """Add the new rows and domains of the column."""
        self.ids = column.codes
        self.make_room(len(column.numbers))

    def make_room(self, numbers: int) -> None:
        """Grow to a number of cells."""
        self.cells = roomy(self.cells, numbers)

    def add(self, number: int, amount: int) -> None:
        """Add to the number of a domain."""
        self.cells[number] = after = self.cells.item(number) + amount
        if after < self.least_ever:
            self.least_ever = after
        elif after > self.largest_ever:
            self.largest_ever = after

    def add_all(self, amounts: Mapping[int, int], times: int) -> None:
        """Add `times` the amounts to the numbers of their domains."""
        if len(amounts) < _MANY:
            for number, amount in amounts.items():
                self.add(number, times * amount)
            return
        numbers = np.fromiter(amounts, np.intp, len(amounts))
        after = self.cells.take(numbers)
        after += times * np.fromiter(amounts.values(), np.int64, len(amounts))
        self.cells[numbers] = after
        self.least_ever = min(self.least_ever, int(after.min()))
        self.largest_ever = max(self.largest_ever, int(after.max()))

    def at(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of the domain of each row of the live snapshot; 0 for rows without a domain."""
        assert self.ids is not None
        return self.cells.take(self.ids.take(rows))

    def number_of(self, domain: str) -> int:
        """Return the number of a domain, new or not; for overlays, which may have their own domains."""
        number = self.numbers.get(domain)
        if number is None:
            number = len(self.numbers)
            self.numbers = {**self.numbers, domain: number}
            self.make_room(number + 1)
        return number

    def of_overlay(self) -> Self:
        """Return a copy for an overlay."""
        other = copy(self)
        other.ids, other.cells = None, self.cells.copy()
        return other


class Sums(DomainSums):
    """Sums over the nodes of each domain. A domain needs a node that takes part.

    `total` is the sum over all domains, `steps` the steps of counting everything. `mark` is replaced at each
    change.
    """

    def __init__(self, column: FactColumn, nodes: NDArray[np.int64] | None = None) -> None:
        """Begin with zeros. `nodes` is the number of nodes that take part, one cell per number of the column;
        it is taken over, and changed later. None stands for no nodes.
        """
        super().__init__(column)
        self.total = 0
        self.steps = 0
        self.mark = object()
        self._nodes = np.zeros(len(self.cells), np.int64) if nodes is None else nodes
        # The number of domains by sum, once it was asked for.
        self._domains_by_sum: dict[int, int] | None = None

    @staticmethod
    def of_nodes(column: FactColumn, domains: NDArray[np.int32] | None) -> Sums:
        """Return zero sums with the nodes that take part: `domains` are theirs by row, `NO_DOMAIN` for
        others; None means all nodes with a domain.
        """
        if domains is None:
            return Sums(column, column.nodes_by_code().copy())
        nodes: NDArray[np.int64] = np.bincount(domains, minlength=len(column.numbers))
        nodes[NO_DOMAIN] = 0
        return Sums(column, nodes)

    def add_rows(self, numbers: NDArray[np.int32], amounts: NDArray[np.int64]) -> None:
        """Add amounts to the numbers of domains, before any sum was asked for."""
        np.add.at(self.cells, numbers, amounts)
        after = self.cells.take(numbers)
        self.least_ever, self.largest_ever = int(after.min(initial=0)), int(after.max(initial=0))
        self.total += int(amounts.sum())

    @property
    def _domains(self) -> dict[int, int]:
        if self._domains_by_sum is None:
            self._domains_by_sum = _counted(self.cells[self._taking_part()])
        return self._domains_by_sum

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes + self._nodes.nbytes

    @property
    def least(self) -> int | None:
        """The least sum of a domain; None if there is no domain."""
        return min(self._domains, default=None)

    def leasts(self, numbers: NDArray[np.int32], removed: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the least sum of a domain, each time after an amount was removed from one domain of
        `numbers`. There must be a domain; `NO_DOMAIN` removes nothing.
        """
        least, *others = sorted(self._domains)
        other = others[0] if others else INT_MAX
        before = self.cells.take(numbers)
        is_only = before == least if self._domains[least] == 1 else np.zeros(len(numbers), np.bool_)
        found: NDArray[np.int64] = np.minimum(before - removed, np.where(is_only, other, least))
        found[numbers == NO_DOMAIN] = least
        return found

    @property
    def domains(self) -> int:
        """The number of domains."""
        return sum(self._domains.values())

    def _taking_part(self) -> NDArray[np.bool_]:
        return self._nodes > 0

    def make_room(self, numbers: int) -> None:
        super().make_room(numbers)
        self._nodes = roomy(self._nodes, numbers)

    def add(self, number: int, amount: int, nodes: int = 0) -> None:
        """Add to the sum of a domain, and to its nodes that take part: one that comes (1) or leaves (-1)."""
        before, there = self.cells.item(number), self._nodes.item(number)
        super().add(number, amount)
        spread = self._domains_by_sum
        if spread is not None:
            if there:
                spread[before] -= 1
                if not spread[before]:
                    del spread[before]
            if there + nodes:
                spread[before + amount] = spread.get(before + amount, 0) + 1
        self._nodes[number] = there + nodes
        self.total += amount
        self.mark = object()

    def of_overlay(self) -> Self:
        other = super().of_overlay()
        known = self._domains_by_sum
        other._nodes, other._domains_by_sum = self._nodes.copy(), None if known is None else known.copy()
        return other


def _counted(amounts: NDArray[np.int64]) -> dict[int, int]:
    if not len(amounts):
        return {}
    least, largest = int(amounts.min()), int(amounts.max())
    if largest - least < _FEW:
        counts = np.bincount(amounts - least)
        there = counts.nonzero()[0]
        return dict(zip((there + least).tolist(), counts.take(there).tolist(), strict=True))
    present, times = np.unique(amounts, return_counts=True)
    return dict(zip(present.tolist(), times.tolist(), strict=True))


def roomy(cells: NDArray[Any], numbers: int) -> NDArray[Any]:
    """Return the cells, extended to at least `numbers` of them."""
    if len(cells) >= numbers:
        return cells
    larger = np.zeros(2 * numbers, dtype=cells.dtype)
    larger[: len(cells)] = cells
    return larger
