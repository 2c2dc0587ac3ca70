"""Pages of codes: every emitted code has one, as a command, and beside findings in SARIF."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from kdsl.base.errors import KdslError
from kdsl.check.lints import pages as lint_pages
from kdsl.report import code_pages as module
from kdsl.report.code_pages import code_pages, page_markdown, page_text

from tests.cli.command_line import kdsl
from tests.test_docs import CODES

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "diagnostics.md"


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_explained(code: str) -> None:
    ended = kdsl("check", "--explain", code.lower())
    assert (ended.exit_code, ended.stderr) == (0, "")
    page = code_pages()[code]
    assert page.cause and page.cure and page.why and not page.why.startswith("|")
    assert ended.stdout.startswith(f"{code}: ") and "How to fix: " in ended.stdout
    assert "](" not in ended.stdout.split("\n\n## ")[0]
    assert (code in lint_pages()) == ("\n## " in ended.stdout)
    assert lint_pages().get(code, "") in ended.stdout


def test_the_page_of_a_code() -> None:
    assert page_text(code_pages()["K0107"]) == (
        "K0107: an operator of another language: `=`, `&`, `and`\n"
        "\n"
        "Section:    Syntax\n"
        "Why:        The rest of a statement with a syntax error cannot be understood. All other statements are still"
        " checked.\n"
        "How to fix: write `==`, `&&`, `||`\n"
        f"See:        {module.PAGE}#syntax"
    )


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("K204", "did you mean `K0204`?"),
        ("k0299", "did you mean `K02"),
        ("labels", "docs/diagnostics.md has all"),
    ],
)
def test_a_code_that_does_not_exist(code: str, hint: str) -> None:
    ended = kdsl("check", "--explain", code)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"there is no code `{code}`; {hint}" in ended.stderr


def test_addresses_lead_to_sections_and_pages_that_are_there() -> None:
    headings = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    for page in code_pages().values():
        assert page.uri.partition("#")[2] in anchors
        for link in re.findall(r"\]\((.*?)\)", page_markdown(page)):
            path = link.partition("#")[0].rpartition("/")[2]
            assert link.startswith("https://") and (ROOT / "docs" / path).is_file()


def test_the_wheel_ships_the_page() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert (
        build["targets"]["wheel"]["force-include"]["docs/diagnostics.md"]
        == "kdsl/shipped_docs/diagnostics.md"
    )
    assert "docs/diagnostics.md" in build["targets"]["sdist"]["include"]


def test_a_page_without_codes_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "diagnostics.md").write_text("# Diagnostics\n")
    monkeypatch.setattr(module, "_path", lambda: tmp_path / "diagnostics.md")
    with pytest.raises(KdslError, match="no line about any code"):
        code_pages.__wrapped__()


def test_sarif_says_what_a_code_means(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text('kdsl 1\npackage a\npredicate P { require node.lables else "x" }\n')
    ended = kdsl("check", "--format", "sarif", str(tmp_path))
    (rule,) = json.loads(ended.stdout)["runs"][0]["tool"]["driver"]["rules"]
    page = code_pages()["K0302"]
    assert rule == {
        "id": "K0302",
        "shortDescription": {"text": "names and imports"},
        "fullDescription": {"text": "a field that the type does not have"},
        "help": {"text": page_text(page), "markdown": page_markdown(page)},
        "helpUri": page.uri,
    }
