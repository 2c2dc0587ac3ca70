"""Every scenario and every fault has a test, or a reason why it has none."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tests.live.scenarios.table import ELSEWHERE, FAULTS, FAULTS_ELSEWHERE, NOT_BUILT

_NAME = re.compile(r"^def (test_(s12|fault)_(\d+)_\w+)", re.MULTILINE)


def _named_here() -> list[tuple[str, str, int]]:
    """Return the tests of this folder with a number: name, `s12` or `fault`, number."""
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    found = [match.groups() for file in files for match in _NAME.finditer(file.read_text())]
    return [(name, kind, int(number)) for name, kind, number in found]


def _is_there(test: str) -> bool:
    module, _, name = test.partition("::")
    return callable(getattr(importlib.import_module(module), name, None))


def test_every_scenario_has_a_test_or_a_reason() -> None:
    shown = {number for _, kind, number in _named_here() if kind == "s12"} | ELSEWHERE.keys()
    assert shown | NOT_BUILT.keys() == set(range(1, 42))
    assert not shown & NOT_BUILT.keys()


def test_every_fault_has_a_test_or_a_reason() -> None:
    assert FAULTS.keys() | FAULTS_ELSEWHERE.keys() == set(range(1, 27))
    assert not FAULTS.keys() & FAULTS_ELSEWHERE.keys()
    named = {name: number for name, kind, number in _named_here() if kind == "fault"}
    listed = {test.partition("::")[2]: number for number, (_, tests) in FAULTS.items() for test in tests}
    assert {name: listed.get(name) for name in named} == named


def test_all_tests_of_the_table_are_there() -> None:
    tests = [test for tests in ELSEWHERE.values() for test in tests]
    tests += [test for _, tests in FAULTS.values() for test in tests]
    assert not [test for test in tests if not _is_there(test)]
