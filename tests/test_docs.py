"""Whatever a user can name has its place in the docs and a test: hooks, commands, config keys, lints, codes."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kdsl.check.lints import pages
from kdsl.cli.main import COMMANDS
from kdsl.config.configuration import configuration_schema
from kdsl.hooks.manager import hook_names

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"K\d{4}")
TEXTS = (".py", ".txt", ".yaml", ".json", ".kdsl", ".md")
TESTS = {
    path: path.read_text(encoding="utf-8")
    for folder in ("tests", "examples")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in TEXTS and path != Path(__file__)
}
ALL_TESTS = "\n".join(TESTS.values())


def headings(page: str) -> set[str]:
    """Return the headings of a page below its title."""
    return set(re.findall(r"^##+ (.+)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE))


def keys(schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """List the keys of a schema with their places: `rules.paths`, `plugins[].name`."""
    for name, inner in schema.get("properties", {}).items():
        yield prefix + name
        yield from keys(inner, f"{prefix}{name}.")
        yield from keys(inner.get("items", {}), f"{prefix}{name}[].")


def codes() -> dict[str, set[str]]:
    """Return the codes that stand in the source, each with the names of its members of enums."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    files = (path for top in ("kdsl", "plugins") for path in (ROOT / top).rglob("*.py"))
    texts = (path.read_text(encoding="utf-8") for path in files)
    # Parsing all files takes seconds.
    for text in filter(CODE.search, texts):
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(code))):
                    if CODE.fullmatch(code):
                        found[code].add(name)
                case ast.Constant(value=str(code)) if CODE.fullmatch(code):
                    found[code] |= set()
    return found


def slugs(page: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


# This page is not wrapped yet.
UNWRAPPED = {"CHANGELOG.md"}
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/*.md")]
CODES = codes()
CONFIG_KEYS = list(keys(configuration_schema()))


@pytest.mark.parametrize("hook", hook_names())
def test_hooks(hook: str) -> None:
    assert hook in headings("plugins.md")
    assert any(re.search(rf"\b{hook}\b", text) for path, text in TESTS.items() if path.suffix == ".py")


@pytest.mark.parametrize("command", list(COMMANDS))
def test_commands(command: str) -> None:
    assert f"kdsl {command}" in headings("commands.md")
    assert re.search(rf'\(\s*"{command}"|\["{command}"|"{command}",', ALL_TESTS)


def test_no_page_speaks_of_a_command_or_hook_that_is_not_there() -> None:
    commands = {heading.removeprefix("kdsl ") for heading in headings("commands.md")}
    assert commands - set(COMMANDS) == set()
    hooks = {heading for heading in headings("plugins.md") if re.fullmatch(r"[a-z_]+", heading)}
    assert hooks - set(hook_names()) == set()


@pytest.mark.parametrize("key", CONFIG_KEYS)
def test_configuration_keys(key: str) -> None:
    page = (ROOT / "docs" / "configure.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    parents = {other.rpartition(".")[0] for other in CONFIG_KEYS}
    assert key in parents or any(f"`{key}`" in row.split("|")[1] for row in rows)
    assert re.search(rf"\b{key.rpartition('.')[2]}\b", ALL_TESTS)


@pytest.mark.parametrize("code", list(pages()))
def test_lints(code: str) -> None:
    assert any(code in heading for heading in headings("lints.md"))
    assert code in ALL_TESTS


@pytest.mark.parametrize("code", sorted(CODES))
def test_diagnostic_codes(code: str) -> None:
    names = CODES[code]
    assert code in ALL_TESTS or any(re.search(rf"Code\.{name}\b", ALL_TESTS) for name in names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_anchors_lead_somewhere(page: Path) -> None:
    for link, anchor in re.findall(r"\]\(([^)#:]*\.md|)#([^)]*)\)", page.read_text(encoding="utf-8")):
        target = page.parent / link if link else page
        assert anchor in slugs(target.read_text(encoding="utf-8")), f"{link}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_are_under_120_characters(page: Path) -> None:
    if page.name not in UNWRAPPED:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert [line for line in text.splitlines() if len(line) >= 120 and not line.startswith("|")] == []


def test_the_glossary_is_short() -> None:
    page = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    glossary = page.partition("## Glossary\n")[2].partition("\n## ")[0]
    assert 1 <= len(re.findall(r"^\| (?!term |---)", glossary, re.MULTILINE)) <= 15
    assert all(len(line) < 120 for line in page.splitlines())


def test_the_index_of_the_docs_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    assert linked == {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^):]+)\)", text)}
    assert {link for link in links if link and not (page.parent / link).exists()} == set()


def test_extras_of_the_pages_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {
        extra
        for page in PAGES
        for extra in re.findall(r"(?:kdsl|'\.)\[([a-z]+)\]", page.read_text(encoding="utf-8"))
    }
    assert named - set(project["optional-dependencies"]) == set()
