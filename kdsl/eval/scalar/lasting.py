"""Values that are computed once per pod, or once per pod and combination of loop items, with own meters.

Otherwise the first node that reads a value would pay, and results would depend on the order of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kdsl.eval.scalar.frame import UNSET, Closure, Failed, Frame, failure, value_or_failure
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

    def keep(self, known: dict[Value, Value], key: Value, entry: Value) -> None:
        """Keep the value of a part; a full `known` begins anew."""
        if len(known) >= self.most:
            known.clear()
        known[key] = entry


def renewing(slot: int, items: list[Closure], compute: Closure, parts: Parts) -> Closure:
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
        meter = frame[-1]
        try:
            is_kept = parts.begin(frame)
            values = [value_or_failure(item, frame) for item in items]
            key = tuple(map(id, values))
            entry = known.get(key)
            count = None if entry is None else renewed(entry[0], frame[-1])
            if count is None:
                count = compute(frame)
        finally:
            frame[-1] = meter
        if is_kept:
            parts.keep(known, key, (count, values))
        return count

    return read_by_item if items else lasting(read, parts.own)


def renewed(count: Value, meter: Value) -> Value:
    """Update a count, or a list of counts; None if it has to be computed again."""
    if count.__class__ is not tuple:
        return count.renewed(meter)
    meter.spend(len(count))
    counts = tuple([each.renewed(meter) for each in count])
    return None if None in counts else counts


def item_reader(slot: int, items: Sequence[int], compute: Closure, parts: Parts) -> Closure:
    """Read a value that depends on the loop items in some slots, computed once per combination of them, by
    identity.

    The slot holds the values of the attempt, with their items, so that no other object can have an item's
    identity.
    """
    # Most values depend on one item.
    only = items[0] if len(items) == 1 else None

    def read(frame: Frame) -> Value:
        known = frame[slot]
        if known is UNSET:
            known = frame[slot] = {}
        values = [frame[item] for item in items] if only is None else frame[only]
        key = tuple(map(id, values)) if only is None else id(values)
        try:
            found = known[key][0]
        except KeyError:
            found = compute_and_keep(frame, known, key, values)
        if found.__class__ is Failed:
            raise found.error
        return found

    def compute_and_keep(frame: Frame, known: dict[Value, Value], key: Value, values: Value) -> Value:
        meter, is_kept = frame[-1], False
        try:
            is_kept = parts.begin(frame)
            found = compute(frame)
        except EvalError as error:
            found = failure(error)
        finally:
            frame[-1] = meter
        if is_kept:
            parts.keep(known, key, (found, values))
        return found

    return read
