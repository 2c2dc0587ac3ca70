"""`kdsl init`: what it writes is good by its own commands, and it replaces nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from kdsl import __version__
from kdsl.cli.init import FILES

from tests.cli.command_line import kdsl
from tests.published_schemas import published
from tests.test_ci_files import ACTION, HOOKS
from tests.test_examples import ROOT


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a" / "my rules"
    result = kdsl("init", str(folder))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [f"wrote {folder / name}" for name in FILES]
    assert f"cd '{folder}' && kdsl check" in result.stderr
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "args",
    [
        ("check", "--config", "kdsl.yaml", "--strict"),
        ("check", "--strict"),
        ("lint", "--strict", "rules"),
        ("lint", "--strict", "--config", "kdsl.yaml"),
        ("fmt", "--check", "rules"),
        ("test", "tests"),
        ("test", "--config", "kdsl.yaml"),
        ("show", "scheduling.mine", "--rules", "rules"),
    ],
    ids=" ".join,
)
def test_what_is_written_is_good(started: Path, args: tuple[str, ...]) -> None:
    result = kdsl(*args)
    assert result.exit_code == 0, f"{result.stdout}{result.stderr}"


def test_its_rules_are_tested_through_and_through(started: Path) -> None:
    result = kdsl("test", "--cover=100", "--mutate=100", "tests")
    assert result.exit_code == 0, f"{result.stdout}{result.stderr}"


def test_its_commands_are_those_of_its_readme(started: Path) -> None:
    quickstart = ROOT / "examples" / "quickstart"
    texts = [(quickstart / name).read_text() for name in ("cluster.yaml", "pods.yaml")]
    items = [item for text in texts for item in yaml.safe_load_all(text) if item]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    (started / "cluster.json").write_text(json.dumps(document))
    lines = [
        line.partition("#")[0].split()
        for line in Path("README.md").read_text().splitlines()
        if line.startswith("kdsl ")
    ]
    assert len(lines) == 6
    for line in lines:
        result = kdsl(*line[1:])
        assert result.exit_code in (0, 1 if line[1] == "diff" else 0), f"{line} {result.stderr}"


def test_ci_files_are_taken_by_what_reads_them(started: Path) -> None:
    workflow = yaml.safe_load(Path(".github/workflows/rules.yaml").read_text())
    published("github-workflow").validate({"on" if key is True else key: workflow[key] for key in workflow})
    (_, step) = workflow["jobs"]["rules"]["steps"]
    assert step["uses"].endswith(f"@v{__version__}") and step["with"].keys() <= ACTION["inputs"].keys()
    (repo,) = yaml.safe_load(Path(".pre-commit-config.yaml").read_text())["repos"]
    assert repo["rev"] == f"v{__version__}"
    assert [hook["id"] for hook in repo["hooks"]] == [hook["id"] for hook in HOOKS]
    for hook in repo["hooks"][1:]:
        assert kdsl(hook["id"].removeprefix("kdsl-"), *hook["args"]).exit_code == 0


def test_what_is_there_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "kdsl.yaml").symlink_to(tmp_path / "nowhere")
    result = kdsl("init")
    assert result.exit_code == 0, result.stderr
    assert {"kept  README.md", "kept  kdsl.yaml", "wrote rules/scheduling.kdsl"} <= set(
        result.stdout.splitlines()
    )
    assert (tmp_path / "README.md").read_text() == "mine" and not (tmp_path / "nowhere").exists()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    again = kdsl("init")
    assert (again.exit_code, again.stderr) == (0, "")
    assert {line[:6] for line in again.stdout.splitlines()} == {"kept  "}
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("place", ["", "rules"])
def test_a_file_in_the_place_of_a_folder(tmp_path: Path, place: str) -> None:
    (tmp_path / "start").mkdir(exist_ok=True)
    target = tmp_path / "start" / place if place else tmp_path / "start" / "file"
    target.write_text("x")
    result = kdsl("init", str(tmp_path / "start" if place else target))
    assert result.exit_code == 2
    assert str(target) in result.stderr and target.read_text() == "x"


@pytest.mark.parametrize("name", [".github", ".github/workflows", "rules"])
def test_nothing_is_written_through_a_link_out_of_the_folder(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tmp_path / "here" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    result = kdsl("init", str(tmp_path / "here"))
    assert result.exit_code == 2
    assert f"by way of `{link}`: it is a link that leads out of the folder" in result.stderr
    assert not list(outside.iterdir())
