"""`kdsl check --config`: the mistakes of the file, its plugins, its profiles and its rules, in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import kdsl

HEAD = "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\n"
RULES = """\
kdsl 1
package team

predicate One {
  require node.unschedulble else "a"
}

queue Q { order by pod.priority }

profile p {
  scheduler "team"
  queue Q
  predicates { One }
}
"""
FIELD = "rules/team.kdsl:5:16 K0302"


def found(folder: Path, body: str, rules: str = RULES, head: str = HEAD) -> list[str]:
    """Return the places and codes of the errors."""
    (folder / "rules").mkdir()
    (folder / "rules" / "team.kdsl").write_text(rules, encoding="utf-8")
    (folder / "kdsl.yaml").write_text(head + body, encoding="utf-8")
    ended = kdsl("check", "--config", str(folder / "kdsl.yaml"), "--format", "concise")
    assert ended.exit_code == 1
    lines = [line for line in ended.stdout.splitlines() if ": error[" in line]
    return sorted(
        f"{place.removeprefix(f'{folder}/')} {rest[:5]}"
        for place, _, rest in (line.partition(": error[") for line in lines)
    )


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        (
            "paralellism: 4\nrules: {paths: [rules]}\nprofile: team.q\nplugins: [{name: default-bindr}]\nseed: -1\n",
            [
                "kdsl.yaml:3:1 K1131",
                "kdsl.yaml:5:10 K0301",
                "kdsl.yaml:6:18 K1001",
                "kdsl.yaml:7:7 K1134",
                FIELD,
            ],
        ),
        # The name of a profile is right, though its rules are not.
        ("rules: {paths: [rules]}\nprofiles: [team.p, p, kubernetes]\n", ["kdsl.yaml:4:23 K0301", FIELD]),
        # The rules and plugins are unknown: nothing is said about them and their profiles.
        ("rules: {paths: rules}\nprofile: team.q\n", ["kdsl.yaml:3:16 K1133"]),
        ("rulez: {paths: [rules]}\nprofile: team.q\n", ["kdsl.yaml:3:1 K1131"]),
        ("rules:\nprofile: team.q\n", ["kdsl.yaml:3:7 K1133"]),
        ("rules: {paths: [rules]}\nplugin: []\nprofile: team.q\n", ["kdsl.yaml:4:1 K1131"]),
        (
            "rules: {paths: [rules]}\nprofile: team.q\nplugins: [{nme: x}, {name: default-bindr}]\n",
            ["kdsl.yaml:5:12 K1131", "kdsl.yaml:5:28 K1001"],
        ),
    ],
)
def test_all_mistakes(tmp_path: Path, body: str, errors: list[str]) -> None:
    assert found(tmp_path, body) == errors


def test_without_a_version(tmp_path: Path) -> None:
    body = "rules: {paths: [rules]}\n"
    assert found(tmp_path, body, head="kind: KdslConfiguration\n") == ["kdsl.yaml:1:1 K1132", FIELD]


def test_a_profile_that_may_be_in_an_unread_line_is_not_reported(tmp_path: Path) -> None:
    body = "rules: {paths: [rules]}\nprofile: team.q\n"
    broken = RULES.replace("predicate One", "predicat One")
    assert found(tmp_path, body, broken) == ["rules/team.kdsl:4:1 K0104"]


def test_a_simulation_reports_them_too(tmp_path: Path) -> None:
    found(tmp_path, "rules: {paths: [rules]}\nprofile: team.q\nseed: -1\n")
    nodes = Path(__file__).parents[2] / "examples" / "quickstart" / "cluster.yaml"
    ended = kdsl("simulate", "--cluster", str(nodes), "--config", str(tmp_path / "kdsl.yaml"))
    assert ended.exit_code == 2
    assert [code for code in ("K0301", "K0302", "K1134") if f"error[{code}]" not in ended.stderr] == []
