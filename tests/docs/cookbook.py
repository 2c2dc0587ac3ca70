"""Write the rule files and the outputs in `docs/cookbook.md` anew: `python -m tests.docs.cookbook`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.cli.command_line import kdsl

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/cookbook.md"
RECIPES = ROOT / "examples/cookbook"
_FILE = re.compile(r"^(\[`([\w-]+)/rules\.kdsl`\].*?\n\n)```\n.*?^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^```\n\$ kdsl (.*?)\n.*?^```$", re.MULTILINE | re.DOTALL)


def filled(page: str) -> str:
    """Return the page with the text of each file that it names, and with the output of each command."""
    page = _FILE.sub(lambda it: f"{it[1]}```\n{_text(RECIPES / it[2] / 'rules.kdsl')}```", page)
    return _COMMAND.sub(lambda it: f"```\n$ kdsl {it[1]}\n{_output(it[1])}```", page)


def recipes(page: str) -> list[str]:
    """Return the folders whose rule files the page shows, in its order."""
    return [found[2] for found in _FILE.finditer(page)]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _output(arguments: str) -> str:
    """Run a command in the folder of recipes; figures of resources, reasons and time become `…`."""
    before = Path.cwd()
    os.chdir(RECIPES)
    try:
        ended = kdsl(*arguments.split())
    finally:
        os.chdir(before)
    parts = ended.stdout.rstrip().split("\n\n")
    left_out = ("RESOURCE", "PENDING BY REASON")
    shown = ["…" if it.startswith(left_out) or " pods/s, " in it else it for it in parts]
    return re.sub(r"(\n\n…)+", "\n…", "\n\n".join(shown)) + "\n" + ended.stderr


if __name__ == "__main__":
    PAGE.write_text(filled(_text(PAGE)), encoding="utf-8")
