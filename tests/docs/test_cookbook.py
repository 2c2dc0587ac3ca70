"""Each recipe of `docs/cookbook.md` is a folder whose rules are clean and tested, and the page shows what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import kdsl
from tests.docs.cookbook import PAGE, RECIPES, ROOT, filled, recipes

FOLDERS = sorted(path for path in RECIPES.iterdir() if path.is_dir())


def test_the_page_shows_the_files_and_what_the_commands_print() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run `python -m tests.docs.cookbook`"
    assert sorted(recipes(page)) == [path.name for path in FOLDERS]
    for folder in FOLDERS:
        assert f"$ kdsl simulate --cluster {folder.name}/cluster.yaml --rules {folder.name} " in page


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_recipe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    path = str(folder.relative_to(ROOT))
    for command in (
        ("check", "--strict", path),
        ("lint", "--strict", path),
        ("fmt", "--check", path),
        ("test", "--cover=100", "--mutate=80", path),
    ):
        ended = kdsl(*command)
        assert ended.exit_code == 0, f"{ended.stdout}{ended.stderr}"
