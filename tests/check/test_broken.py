"""Broken rule files and everything that is said about them, text for text.

`UPDATE_GOLDEN=1 pytest tests/check/test_broken.py` writes the expected texts anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.check.model.codes import CheckCode
from kdsl.lang.loader import load_sources
from kdsl.report.diagnostics import render

from .programs import ROOT, placed_plugins, shipped

SHOWN = (Path(__file__).parent / "broken", ROOT / "examples" / "teams" / "broken")
"""Where texts of diagnostics are kept; those that need several files are with the example of teams."""

FILES = sorted((Path(__file__).parent / "broken").glob("*.kdsl"))


def _report(path: Path) -> str:
    program = load_sources([Source(path.name, path.read_text(encoding="utf-8")), shipped()])
    assert not program.diagnostics
    result = check_program(program.program, externals=placed_plugins())
    assert result.rules is None
    return render(result.diagnostics) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_broken_file(path: Path) -> None:
    golden = path.with_suffix(".txt")
    report = _report(path)
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(report, encoding="utf-8")
    assert report == golden.read_text(encoding="utf-8")


def test_every_code_is_shown() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for folder in SHOWN for path in folder.rglob("*.txt"))
    assert [code.name for code in CheckCode if f"[{code}]" not in texts] == []


def test_every_golden_text_has_its_file() -> None:
    golden = {path.stem for path in (Path(__file__).parent / "broken").glob("*.txt")}
    assert golden == {path.stem for path in FILES}
