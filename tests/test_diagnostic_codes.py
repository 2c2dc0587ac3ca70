"""Every code that kdsl can emit has its line in docs/diagnostics.md, and no line speaks of any other."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"K\d{4}")
PAGE = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1])
    for row in PAGE.splitlines()
    if row[:3] == "| K"
]


def _codes_of(path: Path) -> set[str]:
    """Return every code that stands in a module as a literal."""
    text = path.read_text(encoding="utf-8")
    if not CODE.search(text):
        return set()
    return {
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)
    }


@cache
def _by_module() -> dict[Path, set[str]]:
    return {path: _codes_of(path) for top in ("kdsl", "plugins") for path in (ROOT / top).rglob("*.py")}


def _emitted() -> set[str]:
    return set().union(*_by_module().values())


def test_codes_stand_in_the_codes_of_their_package_or_in_their_lint() -> None:
    lints = ROOT / "kdsl" / "check" / "lints"
    holders = [path for path, codes in _by_module().items() if codes]
    assert [path for path in holders if path.name != "codes.py" and path.parent != lints] == []


def test_there_are_codes() -> None:
    assert {"K0101", "K0204", "K0421", "K0901", "K1004", "K1107", "K1131"} <= _emitted()


def test_the_page_lists_exactly_the_codes_that_are_emitted() -> None:
    listed = {row[0] for row in ROWS}
    emitted = _emitted()
    assert sorted(emitted - listed) == [], "codes without a line in docs/diagnostics.md"
    assert sorted(listed - emitted) == [], "lines for codes that nothing emits"


def test_every_code_has_one_line_with_cause_and_cure() -> None:
    assert [code for code, count in Counter(row[0] for row in ROWS).items() if count > 1] == []
    assert [row[0] for row in ROWS if len(row) != 3 or not all(row)] == []
    codes = [row[0] for row in ROWS]
    assert codes == sorted(codes)
