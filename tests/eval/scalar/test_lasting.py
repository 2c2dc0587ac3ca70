"""Values of loop items: each is computed once, unless they are too many to keep."""

from __future__ import annotations

import pytest
from kdsl.eval.scalar.frame import UNSET, Frame
from kdsl.eval.scalar.lasting import Parts, item_reader
from kdsl.eval.scalar.meter import Meter

ITEM, OTHER, SLOT = 0, 1, 2
STEPS = 5


def read_twice(items: list[str], most: int, slots: tuple[int, ...] = (ITEM,)) -> tuple[int, list[int]]:
    """Read the value of each item for two nodes; return how many were computed, and the steps of each node.
    The value depends on the items in `slots`.
    """
    computed = 0

    def compute(frame: Frame) -> str:
        nonlocal computed
        computed += 1
        frame[-1].spend(STEPS)
        return frame[ITEM] * 2

    def number(frame: Frame) -> int:
        frame[-1].spend(1)
        return len(items)

    parts = Parts(number, most, lambda count: Meter.of(100 // count))
    read = item_reader(SLOT, slots, compute, parts)
    frame: Frame = [UNSET, "other", UNSET, None]
    taken = []
    for _ in range(2):
        meter = frame[-1] = Meter.of(1_000)
        for item in items:
            frame[ITEM] = item
            assert read(frame) == item * 2
        taken.append(meter.limit - meter.left)
    return computed, taken


@pytest.mark.parametrize("slots", [(ITEM,), (ITEM, OTHER), (OTHER, ITEM)])
def test_values_of_few_items_are_computed_once_and_no_node_pays(slots: tuple[int, ...]) -> None:
    assert read_twice(["a", "b", "c"], 3, slots) == (3, [0, 0])


def test_of_too_many_items_each_node_computes_and_pays_the_same() -> None:
    assert read_twice(["a", "b", "c"], most=2) == (6, [3 * STEPS, 3 * STEPS])
