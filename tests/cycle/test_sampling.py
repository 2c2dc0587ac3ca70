"""Sampling and rotation, by kube-scheduler's formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cycle.sampling import Rotated, next_start, num_feasible_nodes_to_find


@pytest.mark.parametrize(
    ("candidates", "percentage", "expected"),
    [
        (0, 0, 0),
        (1, 0, 1),
        (99, 5, 99),  # below 100 nodes all are looked at
        (100, 0, 100),
        (100, 10, 100),  # never fewer than 100
        (300, 0, 144),  # 50 - 300/125 = 48 percent
        (1000, 0, 420),
        (1500, 0, 570),
        (5000, 0, 500),
        (6000, 0, 300),  # 50 - 48 = 2, but never below 5 percent
        (15000, 0, 750),
        (5000, 100, 5000),
        (5000, 1, 100),
        (333, 33, 109),  # the product is cut, not rounded
    ],
)
def test_num_feasible_nodes_to_find(candidates: int, percentage: int, expected: int) -> None:
    assert num_feasible_nodes_to_find(candidates, percentage) == expected


@given(st.integers(0, 50), st.integers(0, 200), st.integers(0, 60), st.integers(0, 60))
def test_rotation_visits_node_start_plus_i_modulo_candidates(
    candidates: int, start: int, begin: int, length: int
) -> None:
    rows = np.arange(candidates, dtype=np.int32) * 3
    visited = [rows[(start + i) % candidates] for i in range(candidates)]
    rotated = Rotated(rows, start)
    assert len(rotated) == candidates
    assert rotated.cut(begin, begin + length).tolist() == visited[begin : begin + length]


def test_next_start_wraps_at_the_whole_snapshot() -> None:
    assert next_start(2, 3, 10) == 5
    assert next_start(8, 5, 10) == 3
    assert next_start(8, 2, 10) == 0
    assert next_start(0, 0, 0) == 0, "no nodes at all"
