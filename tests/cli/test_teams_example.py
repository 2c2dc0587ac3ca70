"""`examples/teams`: the good files are clean, and each broken one is refused with the text beside it.

`UPDATE_GOLDEN=1 pytest tests/cli/test_teams_example.py` writes the expected texts anew.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kdsl.cli.main import cli

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "teams"
BROKEN = sorted((EXAMPLE / "broken").rglob("*.broken"))
GOOD = ("platform", "teams")


def kdsl(*args: str) -> Result:
    return CliRunner().invoke(cli, args, prog_name="kdsl")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the good files, which is the current folder."""
    for name in GOOD:
        shutil.copytree(EXAMPLE / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_good_files_are_clean(folder: Path) -> None:
    result = kdsl("check", *GOOD)
    assert (result.exit_code, result.stdout) == (0, "")
    assert kdsl("fmt", "--check", *GOOD).exit_code == 0
    assert kdsl("lint", "--strict", *GOOD).exit_code == 0


@pytest.mark.parametrize(("place", "args"), [(EXAMPLE, ()), (EXAMPLE.parent.parent, ("examples/teams",))])
def test_its_tests_cover_the_rules(
    place: Path, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    result = kdsl("test", "--cover=90", *args)
    assert result.exit_code == 0, result.output
    assert "coverage 100.0%" in result.stdout


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_broken_file(path: Path, folder: Path) -> None:
    place = (folder / path.relative_to(EXAMPLE / "broken")).with_suffix(".kdsl")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, place)
    assert kdsl("fmt", "--check", str(place)).exit_code == 0
    result = kdsl("check", *GOOD)
    shown = result.stdout.replace(f"{EXAMPLE.parent.parent}/", "")
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(shown, encoding="utf-8")
    assert result.exit_code == 1
    assert shown == golden.read_text(encoding="utf-8")


def test_pods_go_to_the_profiles_of_their_teams(folder: Path) -> None:
    result = kdsl("simulate", *_rules(), "--cluster", str(EXAMPLE / "cluster.yaml"), "-o", "json")
    assert result.exit_code == 0, result.output
    found = {each["pod"]: (each["profile"], each["node"]) for each in json.loads(result.stdout)["decisions"]}
    assert found == {
        "ml-vision/train": ("teams.ml.ml", "gpu-large"),
        "lab/notebook": ("teams.ml.ml", "gpu-large"),
        "shop/cart": ("teams.web.web", "fast"),
        "ops/cron": ("platform.default", "gpu-small"),
    }


def _rules() -> list[str]:
    return [word for name in GOOD for word in ("--rules", name)]


@pytest.mark.parametrize(
    "path", [EXAMPLE / "README.md", EXAMPLE / ".github/workflows/rules.yaml"], ids=lambda p: p.stem
)
def test_commands_that_are_shown_work(path: Path, folder: Path) -> None:
    """Run each `kdsl` line of the README and of the workflow; only a diff that finds something exits with 1."""
    shutil.copy(EXAMPLE / "cluster.yaml", folder)
    lines = re.findall(r"^(?:    - run: )?kdsl ([^|>\n]+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= 2
    for line in lines:
        assert kdsl(*line.split()).exit_code == (1 if line.startswith("diff") else 0), line


def test_there_are_enough_broken_files() -> None:
    assert len(BROKEN) >= 10
    assert {path.stem for path in (EXAMPLE / "broken").rglob("*.txt")} == {path.stem for path in BROKEN}


@pytest.mark.parametrize("name", ["ml.SpotLast", "SpotLast"])
@pytest.mark.parametrize("file", ["platform/profiles.kdsl", "teams/web/web.kdsl"])
def test_no_import_of_a_team_is_suggested_to_others(folder: Path, file: str, name: str) -> None:
    path = folder / file
    text = path.read_text()
    path.write_text(text[: text.rindex("}")] + f"  add score {name} weight 1\n}}\n")
    result = kdsl("check", *GOOD)
    assert (result.exit_code, f"unknown score `{name}`" in result.stdout) == (1, True)
    assert "import teams.ml" not in result.stdout
    ml = folder / "teams/ml/other.kdsl"
    ml.write_text(
        f"kdsl 1\npackage teams.ml.other\nprofile b extends x {{\n  add score {name} weight 1\n}}\n"
    )
    assert "add the line `import teams.ml`" in kdsl("check", *GOOD).stdout
