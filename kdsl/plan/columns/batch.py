"""A batch: the nodes for which an expression is evaluated at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kdsl.cluster.snapshot.fact_columns import FactColumns
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import Frame
from kdsl.eval.values import Value
from kdsl.plan.columns.column import Array, ColumnsOutOfSteps, ColumnValue, Mask, rows_of, take
from kdsl.plan.columns.traced import ColumnKey, amounts, is_traced

MIN_ROWS: Final = 12
"""For fewer nodes the scalar back end is faster than making columns."""
MIN_TAPED_ROWS: Final = 4
"""For fewer nodes it is faster than a tape, too."""


class Batch(Struct, eq=False):
    """Some rows of a snapshot, for one pod.

    `frame` is the scalar frame, with the values that all rows share and the meter. `columns` holds the other
    variables, by slot. While an evaluation is recorded, `rows` are a `Trace`.

    The meter is that of one node. Columns take at least the steps that the scalar back end takes for any row.
    So no row can run out of steps unnoticed, and a rule runs at most as long as for one node, times the cost
    of an operation on a column.
    """

    snapshot: Snapshot
    rows: NDArray[np.intp]
    frame: Frame
    facts: FactColumns
    columns: dict[int, ColumnValue] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def spend(self, steps: int = 1) -> None:
        """Take steps from the meter; OutOfSteps if there are too few."""
        meter = self.frame[-1]
        meter.left -= steps
        if meter.left < 0:
            raise ColumnsOutOfSteps

    def column(self, place: ColumnKey) -> NDArray[np.int64]:
        """Return the rows' values of a column of the snapshot."""
        rows: Any = self.rows
        found: NDArray[np.int64]
        found = rows.load(place) if is_traced(rows) else amounts(self.snapshot, place).take(rows)
        return found

    def nodes(self) -> Iterator[Value]:
        """Yield the nodes for the scalar back end."""
        return map(self.snapshot.info, self.rows.tolist())

    def nodes_at(self, places: Iterable[int]) -> list[Value]:
        """Return the nodes of some of these rows."""
        info, rows = self.snapshot.info, self.rows
        return [info(rows.item(place)) for place in places]

    def part(self, chosen: Mask | Array) -> Batch:
        """Return the batch of some of these rows, by mask or index, with the same meter."""
        index = rows_of(chosen) if chosen.dtype == np.bool_ else chosen
        columns = {slot: take(value, index) for slot, value in self.columns.items()}
        return Batch(self.snapshot, self.rows[index], self.frame, self.facts, columns)

    def inside(self, columns: dict[int, ColumnValue], frame: Frame) -> Batch:
        """Return the same rows with the variables of a function."""
        return Batch(self.snapshot, self.rows, frame, self.facts, columns)


def is_worth_columns(nodes: NodeSet, least: int = MIN_ROWS) -> bool:
    """Return whether there are enough nodes for columns, at `least`. Facts other than those of the live
    snapshot have no columns.
    """
    return len(nodes.rows) >= least and nodes.snapshot.has_live_facts


def batch_of(nodes: NodeSet, frame: Frame) -> Batch:
    """Return the batch of some nodes with the facts of the live snapshot. `frame` must not be in use
    elsewhere.
    """
    return Batch(nodes.snapshot, nodes.rows, frame, nodes.snapshot.live.kept[FactColumns])
