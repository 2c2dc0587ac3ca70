"""Frames and closures: the form of compiled expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kdsl.eval.values import EvalError, Value

Frame = list[Value]
"""One slot per variable of a rule or function, and the meter of `meter.py` at the end. A slot of a lazy
variable holds `UNSET` until it is first read.
"""

Closure = Callable[[Frame], Value]
"""A compiled expression; raises EvalError if it has no value."""

Compile = Callable[..., Closure]
"""The compiler as a function: a `TypedExpr` to a closure."""


class _Unset:
    """The mark of a lazy variable that was not read yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


@dataclass(frozen=True, slots=True)
class _Failed:
    """The content of a failed lazy variable: the error, and the lines of a plugin that raised."""

    kind: type[EvalError]
    message: str
    code: tuple[tuple[str, int, str], ...]

    @property
    def error(self) -> EvalError:
        return self.kind(self.message, self.code)


def is_failure(value: Value) -> bool:
    """Return whether the slot of a lazy variable holds a failure."""
    return value.__class__ is _Failed


PENDING: Final = frozenset((_Unset, _Failed))
"""The classes of what a slot of a lazy variable holds in place of a value."""


def value_or_failure(compute: Closure, frame: Frame) -> Value:
    """Return the content of a lazy variable's slot: a value, or a failure."""
    try:
        return compute(frame)
    except EvalError as error:
        return _failure(error)


def _failure(error: EvalError) -> _Failed:
    return _Failed(error.__class__, error.message, error.code)


def lazy_reader(slot: int, compute: Closure) -> Closure:
    """Read a slot, filling it first if it is `UNSET`; a failure is repeated at every read."""

    def read(frame: Frame) -> Value:
        value = frame[slot]
        if value is UNSET:
            try:
                value = frame[slot] = compute(frame)
            except EvalError as error:
                frame[slot] = _failure(error)
                raise
        elif value.__class__ is _Failed:
            raise value.error
        return value

    return read


def failing(message: str) -> Closure:
    def fail(frame: Frame) -> Value:
        raise EvalError(message)

    return fail


class Limit(NamedTuple):
    """The most combinations of loop items whose values are kept; `parts` is their number, None for one."""

    parts: Closure | None
    most: int

    def holds(self, frame: Frame) -> bool:
        """Return whether there are no more combinations; else each is computed for each node (`lasting`)."""
        if self.parts is None:
            return True
        meter = frame[-1]
        left = meter.left
        try:
            return bool(self.parts(frame) <= self.most)
        except EvalError:
            return False
        finally:
            # Only the first node counts them.
            meter.left = left


def renewing(slot: int, items: list[Closure], compute: Closure, limit: Limit) -> Closure:
    """Compute counts once per combination of loop items; later attempts update them.

    The slot keeps them from one attempt to the next: the count itself if there are no items, else all counts
    with their items, as in `item_reader`.
    """

    def read(frame: Frame) -> Value:
        count = frame[slot]
        if count is not UNSET:
            count = renewed(count, frame[-1])
        if count is UNSET or count is None:
            count = compute(frame)
        frame[slot] = count
        return count

    def read_by_item(frame: Frame) -> Value:
        known = frame[slot]
        if known is UNSET:
            known = frame[slot] = {}
        values = [value_or_failure(item, frame) for item in items]
        key = tuple(map(id, values))
        entry = known.get(key)
        count = None if entry is None else renewed(entry[0], frame[-1])
        if count is None:
            count = compute(frame)
        if entry is not None or limit.holds(frame):
            if len(known) >= limit.most:
                known.clear()
            known[key] = (count, values)
        return count

    return read_by_item if items else read


def renewed(count: Value, meter: Value) -> Value:
    """Update a count, or a list of counts; None if it has to be computed again."""
    if count.__class__ is not tuple:
        return count.renewed(meter)
    meter.spend(len(count))
    counts = tuple([each.renewed(meter) for each in count])
    return None if None in counts else counts


def item_reader(slot: int, items: Sequence[int], compute: Closure, limit: Limit) -> Closure:
    """Read a value that depends on the loop items in some slots, computed once per combination of them, by
    identity, unless they are more than the `limit`.

    The slot holds the values of the attempt, with their items, so that no other object can have an item's
    identity.
    """
    if len(items) == 1:
        return _reader_of_item(slot, items[0], compute, limit)

    def read(frame: Frame) -> Value:
        known = frame[slot]
        if known is UNSET:
            known = frame[slot] = {}
        values = [frame[item] for item in items]
        key = tuple(map(id, values))
        entry = known.get(key)
        if entry is None:
            entry = (value_or_failure(compute, frame), values)
            if limit.holds(frame):
                if len(known) >= limit.most:
                    known.clear()
                known[key] = entry
        if entry[0].__class__ is _Failed:
            raise entry[0].error
        return entry[0]

    return read


def _reader_of_item(slot: int, item: int, compute: Closure, limit: Limit) -> Closure:
    """Do as `item_reader` for one item: most values depend on one."""

    def read(frame: Frame) -> Value:
        known = frame[slot]
        if known is UNSET:
            known = frame[slot] = {}
        value = frame[item]
        try:
            found = known[id(value)][0]
        except KeyError:
            found = value_or_failure(compute, frame)
            if limit.holds(frame):
                if len(known) >= limit.most:
                    known.clear()
                known[id(value)] = found, value
        if found.__class__ is _Failed:
            raise found.error
        return found

    return read
