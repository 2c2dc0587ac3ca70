"""Predicates and scores over columns. The scalar programs answer for the rows that columns leave out.

A rule that reads few different values of the nodes is evaluated as a whole by the scalar program, once per
combination of them; other rules statement by statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kdsl.check.model.rule_set import CheckedPredicate, CheckedStatement
from kdsl.eval.values import Value
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import AllBad, Array, NotColumnar, rows_of, spread
from kdsl.plan.columns.logic import ColumnClosure, disjunction
from kdsl.plan.columns.node_groups import NodeGroups
from kdsl.plan.columns.node_reads import NodeReadsCompiler
from kdsl.plan.columns.rejections import Rejections
from kdsl.plan.columns.scope import RuleColumns
from kdsl.plan.columns.statements import ColumnBlock
from kdsl.plan.compile.failures import OnError, StatusNumbers
from kdsl.plan.compile.scope import RuleScope

Ids = NDArray[np.int32]
ScalarStatuses = Callable[[Iterable[Value]], list[int]]
"""Returns the number of the status of each node."""


class ColumnPredicate:
    """A predicate whose statements run over columns, unless the nodes fall into few groups."""

    def __init__(
        self, reject: Callable[[Batch], Rejections], report_all: bool, groups: NodeGroups | None
    ) -> None:
        self._reject = reject
        self._report_all = report_all
        self._groups = groups

    def statuses(self, batch: Batch, numbers: StatusNumbers, scalar: ScalarStatuses) -> Ids | None:
        """Return the number of the status of each row; None if all pass."""
        groups = None if self._groups is None else self._groups.groups(batch)
        if groups is not None:
            of_groups = scalar(batch.nodes_at(groups.firsts))
            return groups.spread(of_groups, np.int32) if any(of_groups) else None
        try:
            with np.errstate(all="ignore"):
                found = self._reject(batch)
                ids = found.ids(numbers, self._report_all)
        except NotColumnar:
            return np.array(scalar(batch.nodes()), np.int32)
        left = found.bad_rows
        if left is not None:
            ids[left] = scalar(batch.part(left).nodes())
        return ids


class ColumnScore:
    """The value of a score over columns. `nothing` is the mark of no score, as for an ignored node."""

    def __init__(self, value: ColumnClosure, ignores: Sequence[ColumnClosure], nothing: int | float) -> None:
        self._value = value
        self._ignored = disjunction(ignores)
        self._has_ignores = bool(ignores)
        self._nothing = nothing
        self._dtype = np.dtype(np.float64 if isinstance(nothing, float) else np.int64)

    def raw_scores(self, batch: Batch, scalar: Callable[[Batch], Array]) -> Array:
        """Return the raw score of each node."""
        # In visiting order: the first node that fails may end the attempt.
        try:
            with np.errstate(all="ignore"):
                return self._raw_scores(batch, scalar)
        except (AllBad, NotColumnar):
            return scalar(batch)

    def _raw_scores(self, batch: Batch, scalar: Callable[[Batch], Array]) -> Array:
        if not self._has_ignores:
            return self._values(batch, scalar)
        ignored, bad = spread(self._ignored(batch), len(batch), np.bool_)
        if bad is not None:
            # If one `ignore when` fails, another may still hold: rare enough for the scalar back end.
            raise NotColumnar
        raw = np.full(len(batch), self._nothing, dtype=self._dtype)
        among = rows_of(~ignored)
        if len(among):
            raw[among] = self._values(batch.part(among), scalar)
        return raw

    def _values(self, batch: Batch, scalar: Callable[[Batch], Array]) -> Array:
        """Return the value for each row."""
        values, bad = spread(self._value(batch), len(batch), self._dtype)
        # The mark of no score is not a valid value; the scalar program reports the reason.
        odd = ~np.isfinite(values) if self._dtype.kind == "f" else values == self._nothing
        left = odd if bad is None else odd | bad
        if np.count_nonzero(left):
            rows, values = rows_of(left), values.copy()
            values[rows] = scalar(batch.part(rows))
        return values


def column_predicate(
    rule: CheckedPredicate,
    statements: Sequence[CheckedStatement],
    scope: RuleScope,
    columns: RuleColumns,
    on_error: OnError,
) -> ColumnPredicate:
    """Compile the statements of a rule that are decided node by node."""
    error_reason = None if rule.on_error is None else rule.on_error.reason
    error_parts = () if error_reason is None else error_reason.holes
    block = ColumnBlock(scope, columns, rule.report_all, on_error, error_parts)
    reject = block.compile(statements)
    groups = NodeReadsCompiler(columns).of_rule(error_parts, statements, scope)
    return ColumnPredicate(reject, rule.report_all, groups)
