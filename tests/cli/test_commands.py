"""Commands as a user runs them: what they print, and their exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from kdsl import __version__
from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.cli.main import COMMANDS, cli

ROOT = Path(__file__).parent.parent.parent
QUICKSTART = ("--cluster", "examples/quickstart/cluster.yaml", "--pods", "examples/quickstart/pods.yaml")
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def _at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def kdsl(*args: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, args, input=stdin, prog_name="kdsl")


def stable(text: str) -> str:
    """Cut what changes from run to run (how long things took) and with every rule edited (their digest)."""
    return re.sub(r"\n[\d,]+ pods/s, .*\n", "\n", re.sub(r"rules [0-9a-f]{12}", "rules DIGEST", text))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("simulate", ("simulate", *QUICKSTART)),
        ("explain-pending", ("explain", "report", *QUICKSTART)),
        ("explain-placed", ("explain", "shop/web-1", *QUICKSTART)),
        ("plugins", ("plugins", "list")),
        ("help", ("--help",)),
    ],
)
def test_golden(name: str, args: Sequence[str]) -> None:
    result = kdsl(*args)
    assert result.exit_code == 0, result.output
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(stable(result.stdout), encoding="utf-8")
    assert stable(result.stdout) == golden.read_text(encoding="utf-8")


def test_version() -> None:
    result = kdsl("version")
    assert (result.exit_code, result.stdout) == (0, f"kdsl {__version__}\n")


def test_shipped_rules_are_clean() -> None:
    result = kdsl("check", "rules")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.endswith("profiles\n")
    assert kdsl("fmt", "--check", "rules").exit_code == 0


def test_a_broken_rule_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text(
        'kdsl 1\npackage a\n\npredicate P {\n  require node.lables.size() > 0\n    else "no"\n}\n'
    )
    result = kdsl("check", str(tmp_path))
    assert result.exit_code == 1
    assert "error[K0302]" in result.stdout or "error[K03" in result.stdout
    assert "did you mean `labels`?" in result.stdout
    concise = kdsl("check", "--format", "concise", str(tmp_path))
    assert concise.stdout.startswith(f"{tmp_path}/a.kdsl:5:")


def test_rules_may_import_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "team.kdsl").write_text(
        'kdsl 1\npackage team\nimport kubernetes.v1_36 as kubernetes\n\nprofile team extends kubernetes.default {\n  scheduler "team"\n}\n'
    )
    assert kdsl("check", str(tmp_path)).exit_code == 0
    result = kdsl("simulate", *QUICKSTART, "--rules", str(tmp_path), "--profile", "team", "-o", "json")
    assert result.exit_code == 0
    assert {decision["profile"] for decision in json.loads(result.stdout)["decisions"]} == {"team.team"}


def test_fmt_rewrites_checks_and_shows(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("kdsl 1\npackage a\nparam   x:int=1 // one\n")
    assert kdsl("fmt", "--check", str(path)).exit_code == 1
    shown = kdsl("fmt", "--diff", str(path))
    assert shown.exit_code == 1 and "-param   x:int=1 // one" in shown.stdout
    assert kdsl("fmt", str(path)).exit_code == 0
    assert "param x: int = 1  // one" in path.read_text()
    assert kdsl("fmt", "--check", str(path)).exit_code == 0


def test_fmt_reads_standard_input() -> None:
    result = kdsl("fmt", "-", stdin="kdsl 1\npackage a\nparam x:int=1\n")
    assert result.exit_code == 0
    assert "param x: int = 1\n" in result.stdout
    assert kdsl("fmt", "-", stdin="kdsl 1\npredicate {\n").exit_code == 2


def test_fmt_of_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("kdsl 1\npackage a\nparam x int\n")
    assert kdsl("fmt", str(path)).exit_code == 2
    assert path.read_text() == "kdsl 1\npackage a\nparam x int\n"


def test_editing_a_rule_changes_the_next_run(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "rules", tmp_path / "rules")
    path = tmp_path / "rules" / "kubernetes" / "v1_36.kdsl"
    text = path.read_text()
    path.write_text(
        text.replace('else "Too many pods"', 'else "No room"').replace(
            '"node(s) were unschedulable"', '"node(s) are cordoned"'
        )
    )
    result = kdsl("simulate", *QUICKSTART, "--rules", str(tmp_path / "rules"))
    assert result.exit_code == 0
    assert "1 node(s) are cordoned" in result.stdout


def test_two_equal_runs_print_equal_decisions() -> None:
    first, second = (json.loads(kdsl("simulate", *QUICKSTART, "-o", "json").stdout) for _ in range(2))
    assert first["decisions"] == second["decisions"]
    assert (
        yaml.safe_load(kdsl("simulate", *QUICKSTART, "-o", "yaml").stdout)["decisions"] == first["decisions"]
    )


def test_placements_file(tmp_path: Path) -> None:
    path = tmp_path / "placements.txt"
    assert kdsl("simulate", *QUICKSTART, "--placements", str(path)).exit_code == 0
    lines = path.read_text().splitlines()
    assert "train gpu-b1 5 1" in lines and "report - 5 0" in lines
    assert len(lines) == 8


def test_explain_can_fail_a_script() -> None:
    assert kdsl("explain", "report", *QUICKSTART, "--exit-code").exit_code == 1
    assert kdsl("explain", "web-1", *QUICKSTART, "--exit-code").exit_code == 0
    assert isinstance(kdsl("explain", "nobody", *QUICKSTART).exception, KdslError)


def test_explain_as_json() -> None:
    document = json.loads(kdsl("explain", "report", *QUICKSTART, "-o", "json").stdout)
    assert document["kind"] == "Decision"
    statuses = {v["node"]: v["status"] for v in document["decision"]["verdicts"]}
    assert statuses["cpu-b2"]["plugin"] == "NodeUnschedulable"
    assert statuses["cpu-b2"]["sites"][0].startswith("rules/kubernetes/v1_36.kdsl:")


def test_what_can_be_read_is_scheduled_and_the_rest_reported(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: bad}\nstatus: {allocatable: {cpu: 1GB}}\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata: {name: good}\nstatus: {allocatable: {cpu: '8', memory: 32Gi, pods: '10'}}\n"
    )
    result = kdsl("simulate", "--cluster", str(broken), "--pods", "examples/quickstart/pods.yaml")
    assert result.exit_code == 2
    assert f"{broken}#1" in result.stderr and "status.allocatable.cpu" in result.stderr
    assert "shop/web-1" in result.stdout and "good" in result.stdout


def test_an_unknown_profile_names_the_known_ones() -> None:
    error = kdsl("simulate", *QUICKSTART, "--profile", "binpaking").exception
    assert isinstance(error, InvalidInputError)
    assert "did you mean `binpacking`?" in error.diagnostics[0].help


def test_plugins_list_as_json() -> None:
    document = json.loads(kdsl("plugins", "list", "-o", "json").stdout)
    assert {key: document["plugins"][0][key] for key in ("name", "active")} == {
        "name": "default-binder",
        "active": True,
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = kdsl(name, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


@pytest.mark.parametrize("args", [("simulat",), ("simulate",), ("check", "--format", "xml"), ("explain",)])
def test_wrong_usage_exits_with_two(args: Sequence[str]) -> None:
    assert kdsl(*args).exit_code == 2
