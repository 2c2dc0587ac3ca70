"""The parts that other repositories use: the pre-commit hooks and the GitHub action."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kdsl.cli.main import COMMANDS
from kdsl.testing.discovery import is_test_file

from tests.cli.command_line import kdsl
from tests.published_schemas import published

ROOT = Path(__file__).parent.parent
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GUIDE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_hooks_run_commands_on_rule_files(hook: dict[str, str]) -> None:
    program, command = hook["entry"].split()
    assert program == "kdsl" and command in COMMANDS
    assert hook["language"] == "python"
    assert re.search(hook["files"], "teams/ml/ml.kdsl") and not re.search(hook["files"], "a.yaml")
    assert f"- id: {hook['id']}" in GUIDE


def test_the_hook_that_runs_tests_sees_tests_and_rules_and_takes_no_files() -> None:
    (hook,) = (hook for hook in HOOKS if hook["id"] == "kdsl-test")
    assert hook["pass_filenames"] is False
    seen = [name for name in ("a.test.yaml", "a_test.yaml", "a.kdsl", "a.kdsl.yaml", "b.yaml") if re.search(hook["files"], name)]  # fmt: skip
    assert seen == ["a.test.yaml", "a_test.yaml", "a.kdsl", "a.kdsl.yaml"]
    assert all(is_test_file(Path(name)) for name in seen[:2])


def test_github_takes_the_action_and_the_workflow() -> None:
    for kind, path in (("action", "action.yml"), ("workflow", "examples/teams/.github/workflows/rules.yaml")):
        written = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
        # `on` is a boolean to YAML 1.1, and a name to GitHub.
        published(f"github-{kind}").validate({"on" if key is True else key: written[key] for key in written})


def test_inputs_are_documented_and_used() -> None:
    (check,) = [step for step in ACTION["runs"]["steps"] if step.get("name") == "Check"]
    assert all(f"| `{name}` |" in GUIDE for name in ACTION["inputs"])
    used = re.findall(r"inputs\.([a-z-]+)", yaml.safe_dump(ACTION["runs"]))
    assert set(used) == set(ACTION["inputs"])
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert check["run"] in scripts
    assert not any("${{" in script for script in scripts), "inputs pasted into a script could be commands"


def run_check(
    folder: Path, step: str = "Check", summary: str = "", **inputs: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of the action as GitHub does, with a `kdsl` that is this one."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "kdsl").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kdsl.cli.main "$@"\n')
    (programs / "kdsl").chmod(0o755)
    (check,) = [each for each in ACTION["runs"]["steps"] if each.get("name") == step]
    variables = {
        name: re.sub(
            r"\$\{\{ inputs\.([a-z-]+) \}\}",
            lambda match: inputs.get(match[1].replace("-", "_"), ACTION["inputs"][match[1]]["default"]),
            value,
        )
        for name, value in check["env"].items()
    }
    search = [str(ROOT), str(ROOT / "plugins")]
    environment = {
        **os.environ,
        **variables,
        **({"GITHUB_STEP_SUMMARY": summary} if summary else {}),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(search),
    }
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", check["run"]]
    return subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_action_annotates_what_is_wrong(tmp_path: Path) -> None:
    rules = tmp_path / "my rules"
    rules.mkdir()
    (rules / "a.kdsl").write_text('kdsl 1\npackage a\npredicate P { require node.lables else "no" }\n')
    result = run_check(tmp_path, paths="my rules\n", strict="true")
    assert result.returncode == 1, result.stderr
    assert result.stdout.startswith("::error file=my rules/a.kdsl,line=3,endLine=3,col=")


SOUND = (
    'kdsl 1\npackage a\n\npredicate P {\n  require node.podCount < 5\n    else "full"\n}\n\n'
    "queue Q {\n  order by pod.queuedAt\n}\n\n"
    'profile p {\n  scheduler "s"\n  queue Q\n  predicates { P }\n}\n'
)
LINTED = SOUND.replace("  require", "  let unused = 1\n  require")
TEST = """apiVersion: kdsl.dev/v1
kind: RuleTest
predicate: a.P
rules: [my rules]
fixtures: {nodes: {n: {cpu: "1"}}, pods: {p: {namespace: x}}}
tests:
- {name: there is room, pod: p, expect: {FEASIBLE: [n]}}
"""


def repository(folder: Path, rule: str = LINTED, test: str = TEST.replace("FEASIBLE", "feasible")) -> Path:
    """Write rules with a lint finding (nothing uses the `let`), a configuration and a test."""
    (folder / "my rules").mkdir()
    (folder / "my rules" / "a.kdsl").write_text(rule)
    (folder / "kdsl.yaml").write_text(
        "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules: {paths: [my rules]}\n"
    )
    if test:
        (folder / "a.test.yaml").write_text(test)
    return folder


def test_the_action_lints_and_tests(tmp_path: Path) -> None:
    result = run_check(repository(tmp_path), config="kdsl.yaml")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("::warning file=my rules/a.kdsl,line=5")
    assert "1 passed" in result.stdout


def test_lints_are_errors_of_a_strict_action_and_hide_no_test(tmp_path: Path) -> None:
    failing = TEST.replace("{FEASIBLE: [n]}", "{feasible: []}")
    result = run_check(repository(tmp_path, test=failing), config="kdsl.yaml", strict="true")
    assert result.returncode == 1, result.stderr
    assert result.stdout.startswith("::error file=my rules/a.kdsl,line=5")
    assert "1 failed" in result.stdout


@pytest.mark.parametrize(
    ("inputs", "code", "said"),
    [
        ({}, 0, "::notice::no rule tests"),
        ({"tests": "none"}, 0, ""),
        ({"tests": "nowhere"}, 2, ""),
    ],
)
def test_which_tests_the_action_runs(tmp_path: Path, inputs: dict[str, str], code: int, said: str) -> None:
    result = run_check(repository(tmp_path, rule=SOUND, test=""), config="kdsl.yaml", **inputs)
    assert result.returncode == code, result.stderr
    assert result.stdout.startswith(said) and (said or not result.stdout)


@pytest.mark.parametrize(
    ("thresholds", "code"),
    [("", 0), ("pending > 0\n", 0), ("pending > 0\nmoved == 3\n", 1), ("moved > `rm -rf .`", 2)],
)
def test_the_action_replays_a_record(tmp_path: Path, thresholds: str, code: int) -> None:
    quickstart = ROOT / "examples" / "quickstart"
    record, summary = tmp_path / "my run.jsonl", tmp_path / "summary.md"
    files = ("--cluster", str(quickstart / "cluster.yaml"), "--pods", str(quickstart / "pods.yaml"))
    assert kdsl("simulate", *files, "--record", str(record), "-o", "summary").exit_code == 0
    inputs = {"replay": "my run.jsonl", "replay_new": "binpacking", "fail_if": thresholds}
    result = run_check(tmp_path, "Replay", summary=str(summary), replay_comment="a comment.md", **inputs)
    assert result.returncode == code, result.stderr
    comment = tmp_path / "a comment.md"
    assert comment.exists() == summary.exists() == (code < 2)
    if code < 2:
        text = comment.read_text(encoding="utf-8")
        assert text.startswith("### Replay: 3 of 8 decisions differ")
        assert text == summary.read_text(encoding="utf-8")
