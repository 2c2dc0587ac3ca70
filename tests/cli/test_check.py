"""`kdsl check` in every format, and `kdsl schema`."""

from __future__ import annotations

import json
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


def test_strict_takes_warnings_for_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from kdsl import app
    from kdsl.base.diagnostic import Diagnostic, Severity

    checked = app.check_rules([ROOT / "rules"])
    warning = Diagnostic("K0601", "has no effect", severity=Severity.WARNING, where="a")
    monkeypatch.setattr(app, "check_rules", lambda *_, **__: replace(checked, diagnostics=(warning,)))
    assert kdsl("check").exit_code == 0
    strict = kdsl("check", "--strict", "--format", "concise")
    assert (strict.exit_code, strict.stdout) == (1, "a: error[K0601] has no effect\n1 error\n")


def test_a_configuration_is_checked_with_its_rules(tmp_path: Path, broken: str) -> None:
    file = tmp_path / "kdsl.yaml"
    file.write_text(f"{CONFIG}rules: {{paths: [{broken}]}}\n")
    assert "K0302" in kdsl("check", "--config", str(file)).stdout
    file.write_text(f"{CONFIG}profile: none\nplugins: [{{name: nobody}}]\n")
    result = kdsl("check", "--config", str(file), "--format", "concise")
    assert result.exit_code == 1
    assert [line.split(" ")[1] for line in result.stdout.splitlines()[:2]] == ["error[K0301]", "error[K1001]"]
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
