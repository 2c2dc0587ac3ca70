"""Commands never write over the files that they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import kdsl

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("cluster.yaml", "pods.yaml"):
        (tmp_path / name).write_bytes((QUICKSTART / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("option", ["--record", "--placements"])
@pytest.mark.parametrize("name", ["cluster.yaml", "pods.yaml"])
def test_an_input_is_not_overwritten(option: str, name: str, folder: Path) -> None:
    before = (folder / name).read_bytes()
    ended = kdsl(
        *("simulate", "--cluster", str(folder / "cluster.yaml"), "--pods", str(folder / "pods.yaml")),
        *(option, str(folder / "." / name)),
    )
    assert ended.exit_code == 2
    assert "is an input of this command" in ended.stderr
    assert (folder / name).read_bytes() == before


def test_a_file_in_a_folder_that_is_read_is_not_overwritten(folder: Path) -> None:
    pods = folder / "pods.yaml"
    before = pods.read_bytes()
    ended = kdsl("simulate", "--cluster", str(folder), "--record", str(pods))
    assert ended.exit_code == 2
    assert pods.read_bytes() == before


def test_a_record_is_written_again(folder: Path) -> None:
    record = folder / "run.jsonl"
    for _ in range(2):
        ended = kdsl(
            *("simulate", "--cluster", str(folder / "cluster.yaml"), "--pods", str(folder / "pods.yaml")),
            *("--record", str(record)),
        )
        assert ended.exit_code == 0, ended.stderr
        assert record.read_text(encoding="utf-8").startswith("{")


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--cluster", "loop", "--pods", "loop"),
        ("simulate", "--cluster", "nodes.yaml", "--pods", "nodes.yaml", "--config", "loop"),
        ("test", "loop"),
        ("test", "--rules", "nodes.yaml", "loop"),
    ],
)
def test_a_link_to_itself_cannot_be_read(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("nodes.yaml").write_text("")
    result = kdsl(*arguments)
    assert result.exit_code == 2 and "too many levels of symbolic links" in result.stderr
