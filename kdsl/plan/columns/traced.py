"""Arrays that record the operations on them, so that the operations can be replayed for other rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot, cell_of
from kdsl.plan.columns.ranges import (
    ALL_INTS,
    EXACT,
    Range,
    decided,
    is_within,
    range_of,
    to_double,
    to_int,
    toward_zero,
    toward_zero_exact,
)

_CASTS: Final = {np.dtype(np.int64): to_int, np.dtype(np.float64): to_double}
_DOUBLE: Final = np.dtype(np.float64)


class Untraceable(Exception):  # noqa: N818 - control flow, not an error
    """An evaluation cannot be replayed for other rows."""


ColumnKey = tuple[str, str]
"""The key of a column of a snapshot: the family of amounts, and the resource. See `amounts`."""

_INPUT_BITS: Final = 44
"""An amount of a pod is taken to be less than 2^44, so that one tape serves all pods: 16 TiB of memory."""

POD_COUNTS: Final = ("pod_counts", "")
_COUNTS: Final[Range] = (0, 1 << 31)


def amounts(snapshot: Snapshot, place: ColumnKey) -> NDArray[np.int64]:
    """Return a column of a snapshot."""
    family, resource = place
    found: NDArray[np.int64]
    found = snapshot.pod_counts if place is POD_COUNTS else getattr(snapshot, family)(resource)
    return found


def amount_at(node: NodeInfo, place: ColumnKey) -> int:
    """Return the cell of a column for one node."""
    family, resource = place
    return cell_of(node, "pods" if place == POD_COUNTS else family, resource)


def bounds(snapshot: LiveSnapshot, place: ColumnKey) -> Range:
    """Return bounds of all amounts of a column; the same object until they grow."""
    return _COUNTS if place is POD_COUNTS else snapshot.bounds(*place)


@dataclass(frozen=True, slots=True)
class Load:
    """A column of the snapshot, with the range that was taken for granted."""

    place: ColumnKey
    range: Range


@dataclass(frozen=True, slots=True)
class Input:
    """An amount that a pod requests: an attribute of the pod, and the resource."""

    attribute: str
    resource: str


@dataclass(frozen=True, slots=True)
class Applied:
    """A function of traced arrays."""

    function: Callable[..., Any]
    args: tuple[Traced, ...]


@dataclass(frozen=True, slots=True)
class MaskGuard:
    """A decision about a mask: whether it is true in all rows, or in any."""

    mask: Traced
    of_all: bool
    outcome: bool


def refuse(*args: object) -> Any:
    """Stand in for methods that cannot be recorded."""
    raise Untraceable


class Traced(NDArrayOperatorsMixin):
    """An array with one cell per row. `range` holds its cells, None if unknown.

    `is_exact` means that an integer operation had no result beyond int64. Operations that cannot be recorded
    raise Untraceable.
    """

    __slots__ = ("cells", "is_exact", "origin", "range", "trace")

    def __init__(
        self, trace: OperationTrace, origin: object, cells: Any, range: Range | None, is_exact: bool
    ) -> None:
        self.trace = trace
        self.origin = origin
        self.cells = cells
        self.range = range
        self.is_exact = is_exact

    @property
    def dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = self.cells.dtype
        return found

    def __len__(self) -> int:
        return len(self.cells)

    def any(self) -> bool:
        return self.trace.guard(self, False)

    def all(self) -> bool:
        return self.trace.guard(self, True)

    def astype(self, dtype: Any) -> Traced:
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self
        if wanted not in _CASTS:
            raise Untraceable
        found: Traced = self.trace.apply(_CASTS[wanted], (self,))
        return found

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> Any:
        if method != "__call__" or kwargs:
            raise Untraceable
        return self.trace.apply(ufunc, inputs)

    def __array_function__(self, func: object, types: object, args: Any, kwargs: object) -> Any:
        if func is not np.where or kwargs or len(args) != 3:
            raise Untraceable
        if isinstance(args[0], np.bool_):
            chosen = args[1] if args[0] else args[2]
            return chosen if isinstance(chosen, Traced) else np.array(chosen)[()]
        return self.trace.apply(np.where, args)

    __array__ = __bool__ = __getitem__ = __index__ = __iter__ = __getattr__ = refuse


class _Unreadable:
    """A placeholder that raises Untraceable when it is read."""

    __getattr__ = refuse


UNREADABLE: Final[Any] = _Unreadable()


class OperationTrace:
    """The operations of one evaluation, for some rows of a snapshot. Equal operations are recorded once.

    It stands for the rows in a batch while the evaluation is recorded.
    """

    def __init__(self, snapshot: LiveSnapshot, rows: Rows) -> None:
        self._snapshot = snapshot
        self._rows = rows
        self.values: list[Traced] = []
        self.guards: list[MaskGuard] = []
        self._known: dict[object, Traced] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def load(self, place: ColumnKey) -> Traced:
        """Record the read of a column."""

        def column() -> Traced:
            found = Load(place, bounds(self._snapshot, place))
            cells = amounts(self._snapshot, place).take(self._rows)
            return Traced(self, found, cells, found.range, True)

        return self._once(place, column)

    def input(self, source: Input, amount: int) -> Traced:
        """Record the use of an amount of the pod."""
        if amount < 0:
            raise Untraceable
        known = (0, (1 << max(_INPUT_BITS, amount.bit_length())) - 1)
        return self._once(source, lambda: Traced(self, source, np.array(amount), known, True))

    def guard(self, mask: Traced, of_all: bool) -> bool:
        """Record and return whether a mask is true in all rows, or in any."""
        outcome = bool(mask.cells.all() if of_all else mask.cells.any())
        self.guards.append(MaskGuard(mask, of_all, outcome))
        return outcome

    def apply(self, function: Callable[..., Any], inputs: Sequence[object]) -> Any:
        """Record an operation; return its result, a single bool if it is the same for any rows."""
        args = tuple([self._operand(each) for each in inputs])
        ranges = [arg.range for arg in args]
        same = decided(function, ranges)
        if same is not None:
            return np.bool_(same)
        return self._once((function, *map(id, args)), lambda: self._result(function, args))

    def _result(self, function: Callable[..., Any], args: tuple[Traced, ...]) -> Traced:
        cells = function(*[arg.cells for arg in args])
        # `where` may select either number.
        ranges = [arg.range for arg in (args[1:] if function is np.where else args)]
        # The played operation may be faster than the recorded one.
        is_exact_quotient = function is toward_zero and all(is_within(each, EXACT) for each in ranges)
        applied = Applied(toward_zero_exact if is_exact_quotient else function, args)
        if cells.dtype == _DOUBLE:
            return Traced(self, applied, cells, range_of(function, ranges, True), True)
        found = range_of(function, ranges, False)
        is_exact = is_within(found, ALL_INTS)
        known = (0, 1) if cells.dtype == np.bool_ else found if is_exact else ALL_INTS
        return Traced(self, applied, cells, known, is_exact)

    def _operand(self, value: object) -> Traced:
        if isinstance(value, Traced):
            return value
        if isinstance(value, (np.generic, np.ndarray)):
            if value.ndim:
                # Its value for other rows is unknown.
                raise Untraceable
            value = value.item()
        if not isinstance(value, (bool, int, float)):
            raise Untraceable
        constant = np.array(value)
        is_number = not isinstance(value, bool) and np.isfinite(value)
        known = (value, value) if is_number else None
        # Zero has two signs.
        return self._once(
            (value.__class__, repr(value)), lambda: Traced(self, constant, constant, known, True)
        )

    def _once(self, key: object, make: Callable[[], Traced]) -> Traced:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make()
            self.values.append(found)
        return found

    __array__ = __bool__ = __getitem__ = __index__ = __iter__ = __getattr__ = refuse


def is_traced(values: object) -> bool:
    """Return whether an array records the operations on it."""
    return isinstance(values, (Traced, OperationTrace))


def is_exact(values: object) -> bool:
    """Return whether the result of an operation is known to be within int64."""
    return isinstance(values, Traced) and values.is_exact


def quotient(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Divide integers toward zero; `right` must be known to be positive."""
    function = np.floor_divide if least_of(left) >= 0 else toward_zero
    traced: list[Any] = [each for each in (left, right) if is_traced(each)]
    found: NDArray[np.int64]
    found = traced[0].trace.apply(function, (left, right)) if traced else function(left, right)
    return found


def least_of(values: object) -> int | float:
    """Return a lower bound of the cells of an array, if known; of a number the number itself."""
    if isinstance(values, Traced):
        return -np.inf if values.range is None else values.range[0]
    return values if isinstance(values, int) else -np.inf
