"""The CEL conformance suite, and that its runner can fail."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from kdsl.eval.values import UInt

from tests.conformance import CEL_SUITE, cel

needs_data = pytest.mark.skipif(not CEL_SUITE.exists(), reason=f"the CEL suite is not at {CEL_SUITE}")


@needs_data
def test_every_test_of_the_suite_passes() -> None:
    tests = cel.read_tests(CEL_SUITE)
    assert len(tests) == 1742
    failed = [outcome for outcome in cel.run_all(tests) if outcome.difference]
    assert not failed, [outcome.test["expr"] for outcome in failed]


@needs_data
def test_every_test_of_the_suite_passes_over_columns() -> None:
    outcomes = cel.run_all(cel.read_tests(CEL_SUITE), is_lifted=True)
    failed = [outcome for outcome in outcomes if outcome.difference]
    assert not failed, [(outcome.test["expr"], outcome.difference) for outcome in failed]
    # Else the suite would say nothing of columns.
    assert sum(outcome.way is cel.Way.WHOLLY for outcome in outcomes) > 900


@needs_data
def test_only_two_expected_values_are_corrected() -> None:
    with gzip.open(CEL_SUITE, "rt", encoding="utf-8") as lines:
        raw = [json.loads(line) for line in lines]
    corrected = [
        (before, after)
        for before, after in zip(raw, cel.read_tests(CEL_SUITE), strict=True)
        if before != after
    ]
    assert {(after["section"], after["name"]) for _, after in corrected} == cel.MISREAD
    for before, after in corrected:
        # The same test on strings, which the suite writes without an escape.
        twin = next(
            test for test in raw if test["section"] == "string_literals" and test["name"] == after["name"]
        )
        assert cel.read_value(after["value"]) == twin["value"]["stringValue"].encode()
        assert after["expr"] == before["expr"] == "b" + twin["expr"]


def test_a_library_that_is_missing_does_not_pass_by_failing() -> None:
    tests: list[dict[str, Any]] = [
        {"file": "f", "section": "s", "name": "value", "expr": "nosuch(1) == 1"},
        {
            "file": "f",
            "section": "s",
            "name": "error",
            "expr": "nosuch(2)",
            "evalError": {"errors": [{"message": "m"}]},
        },
    ]
    assert all(outcome.difference for outcome in cel.run_all(tests))


def test_values_are_compared_with_their_types() -> None:
    assert not cel.is_same(1, 1.0)
    assert cel.is_same(float("nan"), float("nan"))
    assert not cel.is_same((1,), (UInt(1),))


def test_the_command_tells_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tests.jsonl.gz"
    lines = [
        {"file": "basic", "section": "s", "name": "good", "expr": "1 + 1", "value": {"int64Value": "2"}},
        {"file": "basic", "section": "s", "name": "bad", "expr": "1 + 1", "value": {"uint64Value": "2"}},
    ]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    assert cel.main([str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"
    assert cel.main([str(path), "--tier", "checker"]) == 0
