"""A path that cannot be read is a finding in the form that `--output` asks for, whatever the reason."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.command_line import kdsl

CLUSTER = ("--cluster", "examples/quickstart/cluster.yaml")


def _refuse(path: object, mode: int) -> bool:
    """Refuse what `os.access` is asked: tests may run as root, who may read everything."""
    return False


def test_a_file_without_read_permission_is_a_finding_for_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("kdsl 1\npackage a\n")
    real = os.open

    def denied(name: str | Path, flags: int, mode: int = 0o777) -> int:
        if os.fspath(name) == str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real(name, flags, mode)

    monkeypatch.setattr(os, "access", _refuse)
    monkeypatch.setattr(os, "open", denied)
    ended = kdsl("check", "-o", "json", str(path))
    (found,) = json.loads(ended.stdout)["findings"]
    assert (ended.exit_code, found["code"]) == (2, "K0355")
    assert found["title"] == f"cannot read `{path}`: permission denied"


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", *CLUSTER, "--rules"),
        ("explain", "a", *CLUSTER, "--rules"),
        ("rbac", "--rules"),
        ("test", "examples/cookbook/image-first/rules.test.yaml", "--rules"),
    ],
)
def test_missing_rules_are_told_as_those_of_check_are(command: tuple[str, ...]) -> None:
    ended = kdsl(*command, "nowhere")
    assert ended.exit_code == 2
    assert "error[K0355]: cannot read `nowhere`: no such file or directory\n" in ended.stderr
    assert "name a folder of rules" in ended.stderr


@pytest.mark.parametrize(
    "command", [("run", "EXPERIMENT"), ("explain", "EXPERIMENT", "a", "b"), ("fit", "EXPERIMENT")]
)
def test_inputs_of_the_lab_have_findings_with_a_code(tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "it"
    path.symlink_to("it")
    ended = kdsl("lab", *(str(path) if word == "EXPERIMENT" else word for word in command))
    assert ended.exit_code == 2
    assert ended.stderr.startswith("error[K1") and "too many levels of symbolic links" in ended.stderr
