"""Values that are computed once per pod, or once per pod and combination of loop items, with own meters.

Otherwise the first node that reads a value would pay, and results would depend on the order of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from kdsl.eval.scalar.frame import UNSET, Closure, Failed, Frame, failure
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value

MOST_PARTS: Final = 65_536
"""The most combinations of loop items whose values are kept for a pod."""
MOST_COUNTS: Final = 1_024
"""The most combinations of loop items whose counts are kept: a count has an amount for each domain."""

OwnMeter = Callable[[int], Meter]
"""Returns the meter of a value, or of one of so many parts."""


def lasting(compute: Closure, own: OwnMeter) -> Closure:
    """Compute a value with its own meter."""

    def measured(frame: Frame) -> Value:
        meter = frame[-1]
        frame[-1] = own(1)
        try:
            return compute(frame)
        finally:
            frame[-1] = meter

    return measured


class Parts(NamedTuple):
    """The combinations of loop items for which a value is computed: `number` counts them, None means one.

    The values of at most `most` are kept. Of more, each is computed anew for each node, and the node pays.
    """

    number: Closure | None
    most: int
    own: OwnMeter

    def begin(self, frame: Frame) -> bool:
        """Put the meter of one part in the frame. Return whether its value is kept; EvalError if the parts
        cannot be counted.
        """
        meter = frame[-1]
        whole = frame[-1] = self.own(1)
        if self.number is None:
            return True
        count = self.number(frame)
        # Counting is free.
        whole.left = whole.limit
        if count > self.most:
            frame[-1] = meter
        elif count > 1:
            frame[-1] = self.own(count)
        return bool(count <= self.most)


def renewing(slot: int, compute: Closure, own: OwnMeter) -> Closure:
    """Compute a count with its own meter. The slot keeps it for later attempts, which update it."""

    def read(frame: Frame) -> Value:
        meter, count = frame[-1], frame[slot]
        whole = frame[-1] = own(1)
        try:
            if count is not UNSET:
                count = _renewed(count, whole)
            if count is UNSET or count is None:
                count = compute(frame)
        finally:
            frame[-1] = meter
        frame[slot] = count
        return count

    return read


def item_reader(
    slot: int, items: Sequence[int], compute: Closure, parts: Parts, kept: int | None = None
) -> Closure:
    """Read a value that depends on the loop items in some slots, computed once per combination of them, by
    identity.

    The slot holds the values of the attempt with their items, so that no other object can have an item's
    identity. A count, or a list of counts, is in the slot `kept`, too, for later attempts, which update it.
    """
    values_of, is_one = itemgetter(*items), len(items) == 1

    def read(frame: Frame) -> Value:
        known = frame[slot]
        if known is UNSET:
            known = frame[slot] = {}
        values = values_of(frame)
        key = id(values) if is_one else tuple(map(id, values))
        entry = known.get(key)
        found = compute_and_keep(frame, known, key, values) if entry is None else entry[0]
        if found.__class__ is Failed:
            raise found.error
        return found

    def compute_and_keep(frame: Frame, known: dict[Value, Value], key: Value, values: Value) -> Value:
        meter, is_kept = frame[-1], False
        try:
            is_kept = parts.begin(frame)
            found = compute(frame) if kept is None else current(frame, kept, key, values)
        except EvalError as error:
            found = failure(error)
        finally:
            frame[-1] = meter
        if is_kept:
            _put(known, parts.most, key, (found, values))
        return found

    def current(frame: Frame, kept: int, key: Value, values: Value) -> Value:
        """Return a count as it is now. One that fails stays as it was: a later attempt counts again."""
        known = frame[kept]
        if known is UNSET:
            known = frame[kept] = {}
        entry = known.get(key)
        before = found = None if entry is None else entry[0]
        if before is not None:
            found = _renewed(before, frame[-1])
        if found is None:
            found = compute(frame)
        if found is not before:
            _put(known, MOST_COUNTS, key, (found, values))
        return found

    return read


def _put(known: dict[Value, Value], most: int, key: Value, entry: Value) -> None:
    """Keep the value of a part; a full `known` begins anew."""
    if len(known) >= most:
        known.clear()
    known[key] = entry


def _renewed(count: Value, meter: Value) -> Value:
    """Update a count, or a list of counts or of such lists; None if it has to be computed again."""
    if count.__class__ is not tuple:
        return count.renewed(meter)
    if not count:
        return count
    meter.spend(len(count))
    found = tuple([_renewed(each, meter) for each in count])
    return None if None in found else found
