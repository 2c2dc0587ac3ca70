"""Decisions leave no cycles of objects: memory is free at once, and the collector finds nothing."""

from __future__ import annotations

import gc

import pytest

from tests.bench.decisions import prepared


@pytest.mark.parametrize("shape", ["mixed", "unlike", "stuck-full"])
def test_decisions_leave_no_cycles(shape: str) -> None:
    with prepared(shape, nodes=100, pods=120, bound=100) as (engine, pending, _):
        decisions = engine.decisions(pending)
        # What is made once, such as compiled rules, may have cycles.
        first = [next(decisions) for _ in range(60)]
        gc.collect()
        gc.disable()
        try:
            rest = list(decisions)
            assert len(first) + len(rest) == len(pending) and gc.collect() == 0
        finally:
            gc.enable()
