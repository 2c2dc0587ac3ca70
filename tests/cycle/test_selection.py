"""Tie-breaks: the heap against an emulation of Go's, the others by what they promise."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kdsl.cycle.decision import TieBreak
from kdsl.cycle.selection import select

from tests.conformance.heap import go_heap_top


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
@example([0, 0, 1, 1])  # the left child's child comes before the right child
@example([0, 1, 2, 2])
@example([5])
def test_heap_tie_break_is_the_top_of_gos_heap(totals: list[int]) -> None:
    choice = select(np.array(totals, dtype=np.int64), TieBreak.HEAP, Random(0))
    assert choice.index == go_heap_top(totals)
    assert choice.total == max(totals)
    assert choice.tied == totals.count(max(totals))


def test_heap_tie_break_holds_for_long_lists() -> None:
    random = Random(7)
    for size in (600, 1023, 1024, 1025, 5000):
        totals = [random.randrange(5) for _ in range(size)]
        assert select(np.array(totals), TieBreak.HEAP, random).index == go_heap_top(totals)


def test_heap_is_not_just_the_first_maximum() -> None:
    totals = np.array([0, 0, 9, 9, 0])  # index 3 lies below index 1, which is to the left of index 2
    assert select(totals, TieBreak.HEAP, Random(0)).index == 3
    assert select(totals, TieBreak.FIRST, Random(0)).index == 2


def test_random_tie_break_follows_its_source_and_reaches_every_tie() -> None:
    totals = np.array([1, 4, 4, 0, 4])
    draws = [select(totals, TieBreak.RANDOM, random).index for random in [Random(3)] for _ in range(50)]
    assert set(draws) == {1, 2, 4}
    random = Random(3)
    assert [select(totals, TieBreak.RANDOM, random).index for _ in range(50)] == draws


@pytest.mark.parametrize("tie_break", TieBreak)
def test_a_single_maximum_wins_under_every_tie_break(tie_break: TieBreak) -> None:
    choice = select(np.array([3, 1, 7, 2]), tie_break, Random(0))
    assert (choice.index, choice.total, choice.tied) == (2, 7, 1)
