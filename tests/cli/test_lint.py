"""`kdsl lint`: formats, exit codes, pages; and the rules that we ship have no findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kdsl.check.lints import pages
from kdsl.cli import lint as lint_module
from kdsl.report.findings import FORMATS

from tests.cli.command_line import kdsl

ROOT = Path(__file__).parent.parent.parent
DULL = "kdsl 1\npackage a\n\nscore S {\n  value 1\n}\n"


@pytest.fixture
def dull(tmp_path: Path) -> str:
    path = tmp_path / "a.kdsl"
    path.write_text(DULL)
    return str(path)


@pytest.mark.parametrize("folder", ["rules", "examples/teams"])
def test_what_we_ship_is_clean(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = kdsl("lint", "--strict", folder)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.endswith(" linted, 0 findings\n")


def test_the_formats_offered_are_those_there_are() -> None:
    (option,) = [each for each in lint_module.command.params if each.name == "style"]
    assert tuple(getattr(option.type, "choices", ())) == FORMATS


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_names_the_finding(style: str, dull: str) -> None:
    result = kdsl("lint", "--format", style, dull)
    assert (result.exit_code, result.stderr) == (0, "1 file linted, 1 finding\n")
    assert "K0604" in result.stdout
    if style in ("json", "sarif"):
        assert json.loads(result.stdout)


def test_strict_takes_findings_for_errors(dull: str) -> None:
    result = kdsl("lint", "--strict", "--format", "concise", dull)
    title = "error[K0604] score `S` is the same for every node"
    assert (result.exit_code, result.stdout) == (1, f"{dull}:5:9: {title}\n1 error\n")


def test_rules_with_errors_are_not_linted(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text(DULL + "score T {\n  value nothing\n}\n")
    result = kdsl("lint", str(tmp_path))
    assert result.exit_code == 2
    assert "K0301" in result.stdout and "K0604" not in result.stdout
    assert kdsl("lint", str(tmp_path / "nowhere")).exit_code == 2


@pytest.mark.parametrize("code", pages())
def test_every_code_is_explained(code: str) -> None:
    result = kdsl("lint", "--explain", code.lower())
    assert (result.exit_code, result.stdout) == (0, pages()[code])


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("K0799", "lints: K0601, K0602, "),
        ("k0204", "`kdsl check --explain` knows all codes"),
        ("K601", "did you mean `K0601`?"),
        ("unused", "lints: K0601, K0602, "),
    ],
)
def test_a_lint_that_does_not_exist_is_not_explained(code: str, hint: str) -> None:
    result = kdsl("lint", "--explain", code)
    assert result.exit_code == 2
    assert f"there is no lint `{code}`; " in result.stderr
    assert hint in result.stderr
    assert ("did you mean" in result.stderr) == ("did you mean" in hint)
