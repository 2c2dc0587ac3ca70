"""Rotation, by kube-scheduler's formula."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cycle.filtering import Rotated, next_start


@given(st.integers(0, 50), st.integers(0, 200), st.integers(0, 60), st.integers(0, 60))
def test_rotation_visits_node_start_plus_i_modulo_candidates(
    candidates: int, start: int, begin: int, length: int
) -> None:
    rows = np.arange(candidates, dtype=np.int32) * 3
    visited = [rows[(start + i) % candidates] for i in range(candidates)]
    rotated = Rotated(rows, start)
    assert rotated.size == candidates
    assert rotated.cut(begin, begin + length).tolist() == visited[begin : begin + length]


def test_next_start_wraps_at_the_whole_snapshot() -> None:
    assert next_start(2, 3, 10) == 5
    assert next_start(8, 5, 10) == 3
    assert next_start(8, 2, 10) == 0
    assert next_start(0, 0, 0) == 0, "no nodes at all"
