"""The tests of the shipped rules: they pass, and see every condition hold and fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kdsl.report.diagnostics import render
from kdsl.testing.cases import PropertyCase
from kdsl.testing.coverage import Coverage
from kdsl.testing.render import results_text
from kdsl.testing.suite import coverage_of, read_suite, run_suite

HERE = Path(__file__).parent

# `pod.requests` holds no zeros, so this is always true.
NEVER_FALSE = {'amount > quantity("0")'}


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    suite = read_suite(sorted(HERE.glob("*.test.yaml")))
    assert not suite.diagnostics, render(suite.diagnostics)
    coverage = coverage_of(suite)
    # Pytest runs all cases by itself. A probe sees nothing of properties.
    cases = (replace(test, cases=tuple(filter(_is_seen, test.cases))) for test in suite.tests)
    results = run_suite(replace(suite, tests=tuple(cases)), probe=coverage)
    assert all(result.passed for result in results), results_text(results)
    return coverage


def _is_seen(case: object) -> bool:
    return not isinstance(case, PropertyCase)


def test_every_outcome_is_seen(coverage: Coverage) -> None:
    missing = {
        point.span.text
        for point in coverage.points
        if coverage.missing(point)
        and not point.rule.startswith("device ")
        and not _makes_room(point.span.source.text, point.span.start)
    }
    assert missing == NEVER_FALSE


def _makes_room(text: str, at: int) -> bool:
    """Return whether a place is in a `preemption` block: the reference vectors test those instead."""
    start = text.find("\npreemption ")
    return start >= 0 and start < at < text.index("\n}", start)


def test_every_rule_file_is_under_test(coverage: Coverage) -> None:
    shipped = {path.resolve() for path in (HERE.parent.parent / "rules").rglob("*.kdsl")}
    # Devices are tested in `devices/`; a policy over them and alternative profiles hold no conditions.
    others = {path for path in shipped if path.parent.name == "devices" or path.name == "fragmentation.kdsl"}
    seen = {Path(point.span.source.path).resolve() for point in coverage.points}
    assert shipped - others <= seen
