"""The CEL suite over columns: every test is evaluated in one row among others of other values.

Variables and constants become columns. In row `PLACE` they have the values of the test, in the others further
values of the same type, also such as make it fail. Every row must give what the scalar back end gives for the
values of that row, and the test passes if the row `PLACE` gives what the suite expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from kdsl.base.quantity import Quantity
from kdsl.check.model.traversal import frame_size
from kdsl.check.model.typed import Const, TypedExpr, Var
from kdsl.check.model.types import BOOL, DOUBLE, INT, STRING, UINT, BindingTime, Type
from kdsl.cluster.snapshot.fact_columns import FactColumns
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.ir import map_children
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.scalar.meter import POD_STEPS, Meter
from kdsl.eval.values import INT_MAX, INT_MIN, UINT_MAX, EvalError, UInt, Value
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import (
    DTYPES,
    AllBad,
    Array,
    Coded,
    Column,
    ColumnsOutOfSteps,
    ColumnValue,
    Items,
    Same,
)
from kdsl.plan.columns.compiler import Lowering
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.columns.scope import NO_NODE, RuleColumns
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope

PLACE: Final = 1
"""The row of the test."""

_OTHERS: Final[dict[Type, tuple[Value, ...]]] = {
    BOOL: (True, False, True),
    INT: (0, INT_MIN, INT_MAX),
    UINT: (UInt(0), UInt(1), UInt(UINT_MAX)),
    DOUBLE: (-0.0, float("nan"), float("inf")),
    STRING: ("", "other", "1"),
}


class Way(StrEnum):
    """How much of a test ran over columns."""

    WHOLLY = "wholly in columns"
    PARTLY = "partly in columns"
    SCALAR = "by the scalar back end"


class _Watched(RuleColumns):
    """Counts which parts were left to the scalar back end; `root` is the whole expression."""

    def __init__(self, scope: RuleScope, functions: CompiledFunctions, root: TypedExpr) -> None:
        super().__init__(scope, functions, NO_NODE, ())
        self._root = root
        self.way = Way.WHOLLY

    def fallback(self, expr: TypedExpr, captured: frozenset[int]) -> ColumnClosure:
        closure = super().fallback(expr, captured)

        def watched(batch: Batch) -> ColumnValue:
            if expr is self._root:
                self.way = Way.SCALAR
            elif self.way is Way.WHOLLY:
                self.way = Way.PARTLY
            return closure(batch)

        return watched


@dataclass(frozen=True, slots=True)
class Lifted:
    """The value of each row in both back ends; an EvalError stands for a row that fails."""

    columns: list[Value]
    scalar: list[Value]
    way: Way


def lift(expr: TypedExpr, values: Sequence[Value]) -> Lifted:
    """Evaluate an expression over columns; `values` are those of its variables in the row `PLACE`."""
    lifter = _Lifter(expr, values)
    scope = RuleScope({}, (), lifter.size, CompiledFunctions({}))
    lifted = scope.optimised(lifter.expr)
    rule = _Watched(scope, CompiledFunctions({}), lifted)
    program = Lowering(rule, frozenset(), frozenset(lifter.columns)).lower(lifted)
    closure = scope.closure(lifted)
    blank = scope.new_frame()
    scalar = [_scalar(closure, blank, lifter.columns, row) for row in range(lifter.rows)]
    results = _over_columns(program, blank, lifter.columns, lifter.rows)
    found = [scalar[row] if result is None else result[0] for row, result in enumerate(results)]
    return Lifted(found, scalar, rule.way)


class _Lifter:
    """Turns constants into variables, and gives each variable a column."""

    def __init__(self, expr: TypedExpr, values: Sequence[Value]) -> None:
        self.size = max(frame_size(expr), len(values))
        self.rows = 4
        self.columns: dict[int, list[Value]] = {}
        for slot, value in enumerate(values):
            self.columns[slot] = self._column(None, value)
        self.expr = self._lifted(expr)

    def _lifted(self, expr: TypedExpr) -> TypedExpr:
        if isinstance(expr, Const) and expr.type in _OTHERS:
            slot, self.size = self.size, self.size + 1
            value = UInt(expr.value) if expr.type == UINT and isinstance(expr.value, int) else expr.value
            self.columns[slot] = self._column(expr.type, value)
            return Var(
                type=expr.type, time=BindingTime.NODE, reads=frozenset(), span=expr.span, name="", slot=slot
            )
        changed: Any = map_children(expr, self._lifted)
        # Nothing is the same for all rows.
        lifted: TypedExpr = replace(changed, time=BindingTime.NODE)
        return lifted

    def _column(self, type_: Type | None, value: Value) -> list[Value]:
        others = _OTHERS.get(type_) if type_ is not None else None
        if others is None:
            others = next(
                (known for known in _OTHERS.values() if known[0].__class__ is value.__class__), None
            )
        column = list(others or (value,) * 3)
        column.insert(PLACE, value)
        return column


def _scalar(closure: Closure, blank: Frame, columns: dict[int, list[Value]], row: int) -> Value:
    frame = [*blank[:-1], Meter.of(POD_STEPS)]
    for slot, column in columns.items():
        frame[slot] = column[row]
    try:
        return closure(frame)
    except EvalError as error:
        return error


def _over_columns(
    program: ColumnClosure, blank: Frame, columns: dict[int, list[Value]], rows: int
) -> list[tuple[Value] | None]:
    """Return the value of each row; None where the columns leave it to the scalar back end."""
    snapshot = LiveSnapshot()
    batch = Batch(
        snapshot, np.arange(rows, dtype=np.int32), [*blank[:-1], Meter.of(POD_STEPS)], FactColumns(snapshot)
    )
    batch.columns.update({slot: _encoded(column) for slot, column in columns.items()})
    try:
        with np.errstate(all="ignore"):
            value = program(batch)
    except (AllBad, ColumnsOutOfSteps):
        return [None] * rows
    return [_cell(value, row) for row in range(rows)]


def _encoded(column: list[Value]) -> ColumnValue:
    (kind,) = {value.__class__ for value in column} if len({v.__class__ for v in column}) == 1 else (None,)
    for type_, plain in ((BOOL, bool), (INT, int), (DOUBLE, float)):
        if kind is plain:
            values: Array = np.array(column, dtype=DTYPES[type_])
            return Column(values)
    return Coded(np.arange(len(column)), column)


def _cell(value: ColumnValue, row: int) -> tuple[Value] | None:
    """Return the value of a row, None where it is bad."""
    match value:
        case Same(value=only):
            return (only,)
        case Column(values=values, bad=bad, scale=scale):
            cell = values[row].item()
            whole = Quantity(cell * (10**9 // scale)) if scale else cell
            return None if bad is not None and bad[row] else (whole,)
        case Coded(codes=codes, values=known, bad=bad):
            return None if bad is not None and bad[row] else (known[codes[row]],)
        case Items(bad=bad) if bad is not None and bad[row]:
            return None
        case Items(entries=entries, is_map=is_map):
            here = [entry for entry in entries if entry.present is None or entry.present[row]]
            cells = [_cell(entry.value, row) for entry in here]
            if any(cell is None for cell in cells):
                return None
            found = [cell[0] for cell in cells if cell is not None]
            return (dict(zip([entry.key for entry in here], found, strict=True)) if is_map else tuple(found),)
    raise AssertionError(value)
