"""`kdsl convert` and rule files in YAML, as a user meets them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kdsl.cli.main import cli

ROOT = Path(__file__).parent.parent.parent
RULES = 'kdsl 1\npackage a\n// Lost.\npredicate P {\n  require !node.unschedulable\n    else "no"\n}\n'


def kdsl(*args: str) -> Result:
    return CliRunner().invoke(cli, args, prog_name="kdsl")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.kdsl"
    path.write_text(RULES)
    return path


def test_there_and_back(path: Path) -> None:
    there = kdsl("convert", str(path))
    assert there.exit_code == 0 and there.stdout.startswith("apiVersion: kdsl.dev/v1\nkind: Package\n")
    twin = path.with_name("b.kdsl.yaml")
    twin.write_text(there.stdout)
    back = kdsl("convert", str(twin))
    assert (back.exit_code, back.stdout) == (0, RULES.replace("// Lost.\n", "\n"))
    assert kdsl("convert", "--to", "yaml", str(twin)).stdout == there.stdout


def test_write_replaces_nothing(path: Path) -> None:
    assert kdsl("convert", "--write", str(path)).exit_code == 0
    twin = path.with_name("a.kdsl.yaml")
    assert twin.is_file()
    again = kdsl("convert", "--write", str(path), str(twin))
    assert again.exit_code == 2
    assert again.stderr.count("exists already") == 2
    assert path.read_text() == RULES


def test_what_cannot_be_converted(path: Path) -> None:
    assert kdsl("convert", str(path), str(path)).exit_code == 2
    assert "cannot read" in kdsl("convert", str(path.with_name("none.kdsl"))).stderr
    path.write_text("kdsl 1\npredicate {\n")
    broken = kdsl("convert", str(path))
    assert (broken.exit_code, broken.stdout) == (2, "")
    assert "error[K01" in broken.stderr


KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_a_scheduler_configuration(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(KUBE + "extenders: [{filterVerb: filter}]\n")
    shown = kdsl("convert", str(path))
    assert shown.exit_code == 0 and shown.stdout.startswith("kdsl 1\npackage scheduler\n")
    assert "warning[K1138]: an extender" in shown.stderr
    assert kdsl("convert", "--to", "yaml", str(path)).stdout.startswith("apiVersion: kdsl.dev/v1\n")
    settings = kdsl("convert", "--to", "config", str(path)).stdout
    assert kdsl("convert", "--write", str(path)).exit_code == 0
    assert path.with_name("scheduler.kdsl").read_text() == shown.stdout
    assert path.with_name("scheduler.config.yaml").read_text() == settings
    assert kdsl("convert", "--write", str(path)).stderr.count("exists already") == 2


def test_what_is_no_scheduler_configuration(path: Path) -> None:
    pod = path.with_name("pod.yaml")
    pod.write_text("apiVersion: v1\nkind: Pod\n")
    refused = kdsl("convert", str(pod))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "error[K1139]" in refused.stderr and "its kind is `Pod`" in refused.stderr
    assert "Policy and HAMi's device configuration" in refused.stderr
    assert "it holds no settings" in kdsl("convert", "--to", "config", str(path)).stderr


def test_the_shipped_rules_decide_the_same_in_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shutil.copytree(ROOT / "rules", tmp_path / "rules")
    paths = sorted((tmp_path / "rules").rglob("*.kdsl"))
    assert kdsl("convert", "--write", *map(str, paths)).exit_code == 0
    for path in paths:
        path.unlink()
    assert kdsl("check", str(tmp_path / "rules")).exit_code == 0
    inputs = ("--cluster", "examples/quickstart/cluster.yaml", "--pods", "examples/quickstart/pods.yaml")
    for name, args in (("kdsl", ()), ("yaml", ("--rules", str(tmp_path / "rules")))):
        result = kdsl("simulate", *inputs, "--placements", str(tmp_path / name), *args)
        assert result.exit_code == 0, result.output
    assert (tmp_path / "yaml").read_text() == (tmp_path / "kdsl").read_text() != ""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("fmt", "name a folder of rules"),
        ("convert", "name a rule file, or a configuration of kube-scheduler"),
    ],
)
def test_a_file_that_is_not_there_has_help(command: str, told: str, tmp_path: Path) -> None:
    result = kdsl(command, str(tmp_path / "none"))
    assert result.exit_code == 2
    assert "no such file or directory" in result.stderr and f"= help: {told}" in result.stderr
