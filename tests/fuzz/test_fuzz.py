"""A short run with a fixed seed, and what random trees print as."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from kdsl.lang import tree
from kdsl.lang.printer import format_file

from tests.fuzz.bounds import stay_within_bounds
from tests.fuzz.driver import feed, inputs
from tests.fuzz.targets import TARGETS, Target
from tests.lang.strategies import files


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_diagnostics_comes_out(name: str) -> None:
    target = TARGETS[name]
    assert target.seeds()
    faults = [feed(target, data) for data in islice(inputs(target, Random(f"1 {name}")), 12)]
    assert [fault for fault in faults if fault is not None] == []


@settings(deadline=None, max_examples=15)
@given(files)
def test_random_rules(file: tree.File) -> None:
    assert feed(TARGETS["rules"], format_file(file).encode("utf-8", "surrogatepass")) is None


def test_a_fault_is_told() -> None:
    fault = feed(Target("bad", lambda: ["x"], lambda data: stay_within_bounds(None, "")), b"x")  # type: ignore[arg-type]
    assert fault is not None and fault.error.startswith("AttributeError")
