from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import cel

FILE = Path("/work/shared/conformance/cel/tests.jsonl.gz")
# Bytes whose expected value in the data kept the backslash of an escaped question mark, which the text format
# it was read from allows; the same tests for strings have the value without it.
MISREAD = {"triple_single_quoted_unescaped_punctuation", "triple_double_quoted_unescaped_punctuation"}

pytestmark = pytest.mark.skipif(not FILE.exists(), reason=f"the CEL conformance data is not at {FILE}")


def test_all_core_and_checker_tests_pass() -> None:
    tests = [test for test in cel.read_tests(FILE) if cel.TIERS[test["file"]] in ("core", "checker")]
    assert len(tests) == 1093 + 26
    failed = [outcome for outcome in cel.run_all(tests) if outcome.difference]
    assert {outcome.test["name"] for outcome in failed} == MISREAD
    assert len(failed) == 2


def test_a_library_that_is_missing_does_not_pass_by_failing() -> None:
    tests = [
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
    assert not cel.is_same((1,), (cel.UInt(1),))


def test_the_command_tells_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import gzip
    import json

    path = tmp_path / "tests.jsonl.gz"
    lines = [
        {"file": "basic", "section": "s", "name": "good", "expr": "1 + 1", "value": {"int64Value": "2"}},
        {"file": "basic", "section": "s", "name": "bad", "expr": "1 + 1", "value": {"uint64Value": "2"}},
    ]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    assert cel.main([str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"
    assert cel.main([str(path), "--tier", "checker"]) == 0
