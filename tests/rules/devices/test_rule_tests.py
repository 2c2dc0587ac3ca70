"""The rule tests of devices: they pass, every device file has some, and they see nearly all conditions."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.report.diagnostics import render
from kdsl.testing.coverage import Coverage, CoveragePoint
from kdsl.testing.render import results_text
from kdsl.testing.suite import coverage_of, read_suite, run_suite

HERE = Path(__file__).parent
VENDORS = HERE.parents[2] / "rules" / "devices"
WITHOUT_DEVICES = {"annotations", "choosing", "orders", "profiles"}
LEAST = 0.88
"""What is left are amounts that the API does not take, words in `requests` alone, broken cards of devices that
cannot say so, and what parameters switch on.
"""


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    suite = read_suite([HERE])
    assert not suite.diagnostics, render(suite.diagnostics)
    coverage = coverage_of(suite)
    results = run_suite(suite, probe=coverage)
    assert all(result.passed for result in results), results_text(results)
    return coverage


def test_conditions_of_devices_are_seen(coverage: Coverage) -> None:
    points = [point for point in coverage.points if place(point).parent == VENDORS]
    total = sum(len(point.wanted) for point in points)
    missing = [f"{point.span}: {each}" for point in points for each in coverage.missing(point)]
    assert 1 - len(missing) / total >= LEAST, "\n".join(missing)


def test_every_vendor_is_under_test(coverage: Coverage) -> None:
    """Of every file with devices some condition was seen to hold, and some to fail."""
    for path in sorted(VENDORS.glob("*.kdsl")):
        points = [point for point in coverage.points if place(point) == path]
        seen = {outcome for point in points for outcome in set(point.wanted) - set(coverage.missing(point))}
        assert (seen >= {"true", "false"}) is (path.stem not in WITHOUT_DEVICES), path


def place(point: CoveragePoint) -> Path:
    return Path(point.span.source.path).resolve()
