"""Sort keys: the expressions of `order by` and `choose by`."""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedSortKey
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    ERROR,
    INT,
    QUANTITY,
    STRING,
    TIMESTAMP,
    UINT,
)
from kdsl.check.rules.block import BlockCheck
from kdsl.check.rules.passing_time import PassingTime
from kdsl.check.rules.totality import Totality
from kdsl.lang.tree import SortKey

_ORDERED = frozenset({BOOL, INT, UINT, STRING, BYTES, TIMESTAMP, DURATION, QUANTITY, ERROR})


def check_sort_keys(
    block: BlockCheck,
    keys: Iterable[SortKey],
    totality: Totality | None = None,
    time: PassingTime | None = None,
) -> tuple[CheckedSortKey, ...]:
    """Check keys in place. With `totality` none of them may fail; `time` checks uses of `now`."""
    return tuple(_sort_key(block, key, totality, time) for key in keys)


_CERTAIN_KEYS = ("look a text up in a map, `ranks[?text].orValue(100)`, or use a field that every pod has",)
_NUMBER_KEYS = ("texts of digits sort by value with two keys, the length first: `order by n.size(), n`",)

_TIME_KEYS = ("times that are written in one form sort as texts: leave `timestamp` out",)


def _sort_key(
    block: BlockCheck, key: SortKey, totality: Totality | None, time: PassingTime | None
) -> CheckedSortKey:
    value, is_descending = block.expression(key.value), key.descending
    if time is not None:
        timeless = time.timeless(value)
        if timeless is None:
            return CheckedSortKey(value, is_descending)
        value, is_descending = timeless.value, is_descending != timeless.is_reversed
    problem = _unfit(value, totality)
    if problem is not None:
        block.diagnostics.append(problem)
    return CheckedSortKey(value, is_descending)


def _unfit(value: TypedExpr, totality: Totality | None) -> Diagnostic | None:
    """Return the error for a value that cannot be a sort key: it has no total order, or may fail."""
    if value.type == DOUBLE:
        why = "a double may be NaN, which has no place in an order"
    elif value.type not in _ORDERED:
        why = f"values of type `{value.type}` have no order"
    else:
        failing = None if totality is None else totality.why_it_may_fail(value)
        if failing is None:
            return None
        part, why = failing
        title = "a sort key must have a value for every pod"
        # Other reasons end with their own advice.
        help_: tuple[str, ...] = _CERTAIN_KEYS if why.endswith("may fail") else ()
        if why.endswith("`int` may fail"):
            help_ = (*help_, *_NUMBER_KEYS)
        elif why.endswith("`timestamp` may fail"):
            help_ = (*help_, *_TIME_KEYS)
        return Diagnostic(CheckCode.UNFIT_SORT_KEY, title, part.span, why, help=help_)
    return Diagnostic(CheckCode.UNFIT_SORT_KEY, "a sort key needs a total order", value.span, why)
