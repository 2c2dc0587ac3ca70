"""The meaning of each diagnostic code: the lines of docs/diagnostics.md, which the package contains.

`kdsl check --explain` prints them, and SARIF includes them with the findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kdsl import __version__
from kdsl.base.errors import KdslError
from kdsl.check.lints import pages as lint_pages

PAGE = f"https://github.com/kdsl/kdsl/blob/v{__version__}/docs/diagnostics.md"
"""The address of the published page."""

_CELL = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
_HEADING = "## "


@dataclass(frozen=True, slots=True)
class CodePage:
    """One code: its section, the consequence of such findings, cause and cure, as Markdown.

    `lint` is the longer page of a lint, "" for other codes.
    """

    code: str
    section: str
    why: str
    cause: str
    cure: str
    lint: str = ""

    @property
    def uri(self) -> str:
        """Return the address of the section."""
        return f"{PAGE}#{self.section.lower().replace(' ', '-')}"


@cache
def code_pages() -> Mapping[str, CodePage]:
    """Return the page of every code, in the order of the codes."""
    pages = {page.code: page for page in _read(_path().read_text(encoding="utf-8"), lint_pages())}
    if not pages:
        raise KdslError(f"`{_path()}` has no line about any code: install kdsl again")
    return pages


def page_text(page: CodePage) -> str:
    """Return a page as text for people."""
    lines = [
        f"{page.code}: {plain(page.cause)}",
        "",
        f"Section:    {page.section}",
        f"Why:        {plain(page.why)}",
        f"How to fix: {plain(page.cure)}",
        f"See:        {page.uri}",
    ]
    return "\n".join([*lines, *(["", page.lint.rstrip()] if page.lint else [])])


def page_markdown(page: CodePage) -> str:
    """Return cause, consequence and cure as Markdown with links to the pages of the docs."""
    text = f"**Cause:** {page.cause}.\n\n**Why:** {page.why}\n\n**How to fix:** {page.cure}."
    return _LINK.sub(lambda link: f"[{link[1]}]({_absolute(link[2])})", text)


def plain(markdown: str) -> str:
    """Return a line of Markdown with its links in plain text: `[a](b.md)` is `a (docs/b.md)`."""
    return _LINK.sub(lambda link: f"{link[1]} (docs/{link[2]})", markdown)


def _absolute(target: str) -> str:
    return f"{PAGE.rpartition('/')[0]}/{target}"


def _path() -> Path:
    """Return the path of the page: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "shipped_docs" / "diagnostics.md"
    return installed if installed.is_file() else package.parent / "docs" / "diagnostics.md"


def _read(text: str, lints: Mapping[str, str]) -> Iterator[CodePage]:
    """Read the tables of the page. The first paragraph of a section gives the consequence of its findings."""
    section = why = ""
    for line in text.splitlines():
        if line.startswith(_HEADING):
            section, why = line.removeprefix(_HEADING), ""
        elif line.startswith("| K"):
            code, cause, cure = (cell.strip().replace("\\|", "|") for cell in _CELL.split(line)[1:-1])
            yield CodePage(code, section, why, cause, cure, lints.get(code, ""))
        elif line and not line.startswith("|") and section and not why:
            why = line
