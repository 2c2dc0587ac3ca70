"""`kdsl check` in every format, and `kdsl schema`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from kdsl.cli import check as check_module
from kdsl.cli.main import cli
from kdsl.cli.schema import SCHEMAS
from kdsl.report.findings import FORMATS

ROOT = Path(__file__).parent.parent.parent
CONFIG = "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\n"

CERTAIN = "[fix …] is certain: `kdsl check --fix` applies it, `kdsl check --diff` shows it"
CHOICE = "[choice …] is left to you"


def kdsl(*args: str) -> Result:
    return CliRunner().invoke(cli, args, prog_name="kdsl")


@pytest.fixture
def broken(tmp_path: Path) -> str:
    path = tmp_path / "a.kdsl"
    path.write_text('kdsl 1\npackage a\n\npredicate P {\n  require node.lables\n    else "no"\n}\n')
    return str(path)


def test_the_formats_offered_are_those_there_are() -> None:
    (option,) = [each for each in check_module.command.params if each.name == "style"]
    assert tuple(getattr(option.type, "choices", ())) == FORMATS


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_names_the_finding(style: str, broken: str) -> None:
    result = kdsl("check", "--format", style, broken)
    assert result.exit_code == 1
    assert "K0302" in result.stdout and "lables" in result.stdout


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_can_say_that_nothing_is_wrong(style: str) -> None:
    result = kdsl("check", "--format", style, str(ROOT / "rules"))
    assert result.exit_code == 0
    assert "K0" not in result.stdout
    if style in ("json", "sarif"):
        assert json.loads(result.stdout)
    if style in ("full", "concise", "github"):
        assert result.stdout == ""


def test_strict_takes_warnings_for_errors(tmp_path: Path) -> None:
    teams = "".join(
        f"team {name} {{\n  owns pod.namespace.matches('{pattern}')\n  files \"{name}/*.kdsl\"\n  may tighten\n}}\n"
        for name, pattern in (("one", "^q{40}$"), ("two", "^q{30,50}$"))
    )
    (tmp_path / "a.kdsl").write_text(f"kdsl 1\npackage a\n{teams}")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.kdsl").write_text(f"kdsl 1\npackage {name}\n")
    for _ in range(2):
        # The second time the answer may be a kept one.
        lax = kdsl("check", "--format", "concise", str(tmp_path))
        assert lax.exit_code == 0 and "warning[K0421]" in lax.stdout
    strict = kdsl("check", "--strict", "--format", "concise", str(tmp_path))
    assert strict.exit_code == 1 and "error[K0421]" in strict.stdout


def test_a_configuration_is_checked_with_its_rules(tmp_path: Path, broken: str) -> None:
    file = tmp_path / "kdsl.yaml"
    file.write_text(f"{CONFIG}rules: {{paths: [{broken}]}}\n")
    assert "K0302" in kdsl("check", "--config", str(file)).stdout
    file.write_text(f"{CONFIG}profile: none\nplugins: [{{name: nobody}}]\n")
    result = kdsl("check", "--config", str(file), "--format", "concise")
    assert result.exit_code == 1
    assert [line.split(" ")[1] for line in result.stdout.splitlines()[:2]] == ["error[K1001]", "error[K0301]"]
    file.write_text(f"{CONFIG}profile: default\n")
    assert kdsl("check", "--config", str(file)).exit_code == 0
    file.write_text(f"{CONFIG}sed: 1\n")
    assert kdsl("check", "--config", str(file)).exit_code == 1
    assert kdsl("check", "--config", str(tmp_path / "none.yaml")).exit_code == 2


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_are_schemas_and_documented(kind: str) -> None:
    result = kdsl("schema", kind)
    assert result.exit_code == 0
    Draft202012Validator.check_schema(json.loads(result.stdout))
    assert f"| `{kind}` |" in (ROOT / "docs/configure.md").read_text(encoding="utf-8")


CHECKS = {"kdsl.check.checker", "kdsl.lang.loader", "kdsl.lang.parser", "lark"}
"""Modules that parse and check rules."""
TREES = {"kdsl.lang.tree"}
RUNS = {"numpy", "kdsl.plan", "kdsl.hooks", "kdsl.cluster"}
"""Modules that run rules."""
QUICKSTART = [f"--{each}=examples/quickstart/{each}.yaml" for each in ("cluster", "pods")]


@pytest.mark.parametrize(
    ("args", "unneeded"),
    [
        (["--help"], CHECKS | TREES | RUNS),
        (["check", "rules", "examples"], CHECKS | TREES | RUNS),
        (["simulate", *QUICKSTART, "-o", "summary"], CHECKS | TREES),
        (["lint", "examples/cookbook"], CHECKS),
        (["test", "examples/teams/platform"], CHECKS),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_rules_that_were_checked_before_are_only_read(
    args: list[str], unneeded: set[str], tmp_path: Path
) -> None:
    """The time of a start is that of its imports: the second one needs neither parser nor checker."""
    modules = {*unneeded, "rich.console"}
    script = (
        f"import sys\nfrom kdsl.cli.main import run\ncode = run({args})\n"
        f"print(code, *sorted({modules} & set(sys.modules)))"
    )
    search = os.pathsep.join((str(ROOT), str(ROOT / "plugins")))
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": search}
    cold, warm = (
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for _ in range(2)
    )
    assert warm == "0"
    assert args == ["--help"] or cold.startswith("0 kdsl.check.checker")


@pytest.mark.parametrize(
    ("body", "legend"),
    [
        ("require node.lables.size() == 0 else 'x'", CERTAIN),
        ("require node.labels['x'] == 'y' else 'x'", CHOICE),
        ("require node.labels['x'] == 'y' else 'x'\n  require node.lables.size() == 0 else 'x'", f"{CERTAIN}; {CHOICE}"),
        ("require node.nothing_of_the_sort else 'x'", ""),
    ],
)  # fmt: skip
def test_the_marks_of_fixes_are_explained(tmp_path: Path, body: str, legend: str) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text(f"kdsl 1\npackage a\n\npredicate P {{\n  {body}\n}}\n", encoding="utf-8")
    last = kdsl("check", str(path)).stdout.splitlines()[-1]
    assert last == legend or (not legend and last.endswith("1 error"))
    assert "[fix …]" not in kdsl("check", "--format", "concise", str(path)).stdout


@pytest.mark.parametrize(
    ("content", "code"), [(b"kdsl 1\npackage \xff\n", "K0356"), (b"//" + b"a" * 131_072, "K0360")]
)
def test_a_file_that_cannot_be_read_is_no_answer(content: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_bytes(content)
    result = kdsl("check", str(tmp_path))
    assert result.exit_code == 2 and f"error[{code}]" in result.stdout


@pytest.mark.parametrize("command", ["check", "lint"])
def test_a_folder_without_rules_names_the_first_step(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "kdsl init DIR" in kdsl(command).stdout
    (tmp_path / "rules").mkdir()
    result = kdsl(command)
    assert result.exit_code == 2 and "kdsl init DIR" in result.stdout
