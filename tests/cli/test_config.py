"""`--config` as a user has it: the file decides, flags win, mistakes point into the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kdsl.cli.main import cli

ROOT = Path(__file__).parent.parent.parent
QUICKSTART = ("--cluster", "examples/quickstart/cluster.yaml", "--pods", "examples/quickstart/pods.yaml")
HEAD = "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\n"


@pytest.fixture(autouse=True)
def _at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def kdsl(*args: str) -> Result:
    return CliRunner().invoke(cli, args, prog_name="kdsl")


def config(folder: Path, body: str) -> str:
    path = folder / "kdsl.yaml"
    path.write_text(HEAD + body, encoding="utf-8")
    return str(path)


def decisions(*args: str) -> list[dict[str, str]]:
    result = kdsl("simulate", *QUICKSTART, "-o", "json", *args)
    assert result.exit_code == 0, result.output
    found: list[dict[str, str]] = json.loads(result.stdout)["decisions"]
    return found


def test_the_file_decides_and_flags_win(tmp_path: Path) -> None:
    file = config(tmp_path, "profile: binpacking\ntieBreak: first\n")
    decided = decisions("--config", file)
    assert {each["profile"] for each in decided} == {"policies.binpacking.binpacking"}
    assert "first" in {each["tieBreak"] for each in decided}
    decided = decisions("--config", file, "--profile", "default", "--tie-break", "random")
    assert {each["profile"] for each in decided} == {"kubernetes.v1_36.default"}
    assert "first" not in {each["tieBreak"] for each in decided}


def test_profiles_in_use(tmp_path: Path) -> None:
    file = config(tmp_path, "profiles: [binpacking]\n")
    assert {each["outcome"] for each in decisions("--config", file)} == {"skipped"}


def test_rules_are_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "team.kdsl").write_text(
        "kdsl 1\npackage team\nimport kubernetes.v1_36 as kubernetes\n\n"
        'profile team extends kubernetes.default {\n  scheduler "team"\n}\n'
    )
    file = config(tmp_path, "rules: {paths: [rules]}\nprofile: team\n")
    assert {each["profile"] for each in decisions("--config", file)} == {"team.team"}


def test_plugins_that_are_not_listed_are_not_active(tmp_path: Path) -> None:
    decided = decisions("--config", config(tmp_path, "plugins: []\n"))
    assert "no bind plugin took the pod" in {each["message"] for each in decided}


@pytest.mark.parametrize(
    ("body", "place", "title"),
    [
        ("profile: binpaking\n", "3:10", "there is no profile `binpaking`"),
        ("plugins:\n- name: default-bindr\n", "4:9", "plugin `default-bindr` is not installed"),
        (
            "plugins:\n- name: default-binder\n  args: {x: 1}\n",
            "5:13",
            "plugin `default-binder` has no argument `x`",
        ),
        ("sed: 1\n", "3:1", "unknown key `sed`"),
    ],
)
def test_mistakes_point_into_the_file(tmp_path: Path, body: str, place: str, title: str) -> None:
    file = config(tmp_path, body)
    result = kdsl("simulate", *QUICKSTART, "--config", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"--> {file}:{place}" in result.stderr and title in result.stderr
    assert kdsl("explain", "web-1", *QUICKSTART, "--config", file).exit_code == 2


def test_rules_without_a_profile_are_an_error(tmp_path: Path) -> None:
    """`kdsl run` refuses them, so CI must as well."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.kdsl").write_text("kdsl 1\npackage mine\n")
    result = kdsl("check", "--config", config(tmp_path, "rules: {paths: [rules]}\n"))
    assert result.exit_code == 1
    assert "the rules have no profile: they decide about no pod" in result.output
    assert kdsl("check", str(tmp_path / "rules")).exit_code == 0


def test_rules_whose_only_profile_is_imported_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    rules = "kdsl 1\npackage mine\nimport kubernetes.v1_36\n"
    (tmp_path / "rules" / "a.kdsl").write_text(rules)
    file = config(tmp_path, "rules: {paths: [rules]}\n")
    result = kdsl("check", "--config", file)
    assert result.exit_code == 0
    assert "K1141" in result.output and "only `kubernetes.v1_36.default` decides" in result.output
    assert kdsl("check", "--strict", "--config", file).exit_code == 1
    (tmp_path / "rules" / "a.kdsl").write_text(
        rules + 'profile p extends v1_36.default {\n  scheduler "p"\n}\n'
    )
    assert kdsl("check", "--strict", "--config", file).exit_code == 0


def test_rules_that_no_pod_selects_are_a_warning(tmp_path: Path) -> None:
    text = 'import kubernetes.v1_36\nprofile p extends v1_36.default {\n  scheduler "SCHEDULER"\n}\n'
    rules = tmp_path / "a.kdsl"
    rules.write_text(f"kdsl 1\npackage mine\n{text}".replace("SCHEDULER", "p"))
    result = kdsl("simulate", *QUICKSTART, "--rules", str(rules))
    assert result.exit_code == 0
    assert "no pod selects a profile of the rules: `kubernetes.v1_36.default` decided" in result.stderr
    assert "`--profile p`" in result.stderr and "`schedulerName: p`" in result.stderr
    assert (
        "no pod selects" not in kdsl("simulate", *QUICKSTART, "--rules", str(rules), "--profile", "p").stderr
    )
    rules.write_text(f"kdsl 1\npackage mine\n{text}".replace("SCHEDULER", "default-scheduler"))
    assert "no pod selects" not in kdsl("simulate", *QUICKSTART, "--rules", str(rules)).stderr
