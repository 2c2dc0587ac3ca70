"""The tests of the shipped rules: they pass, and see every condition hold and fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.report.diagnostics import render
from kdsl.testing.coverage import Coverage
from kdsl.testing.render import results_text
from kdsl.testing.suite import coverage_of, read_suite, run_suite

HERE = Path(__file__).parent

# `pod.requests` holds no zeros, so this is always true.
NEVER_FALSE = {'amount > quantity("0")'}


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    suite = read_suite([HERE])
    assert not suite.diagnostics, render(suite.diagnostics)
    coverage = coverage_of(suite)
    results = run_suite(suite, probe=coverage)
    assert all(result.passed for result in results), results_text(results)
    return coverage


def test_every_outcome_is_seen(coverage: Coverage) -> None:
    missing = {point.span.text for point in coverage.points if coverage.missing(point)}
    assert missing == NEVER_FALSE


def test_every_rule_file_is_under_test(coverage: Coverage) -> None:
    shipped = {path.resolve() for path in (HERE.parent.parent / "rules").rglob("*.kdsl")}
    assert {Path(point.span.source.path).resolve() for point in coverage.points} == shipped
