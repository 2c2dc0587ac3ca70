"""Mistakes of several inputs and options of one command are told in one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.command_line import kdsl

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 1, pods: 10}}\n"
POD = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n"
FILES = {
    "cluster.yaml": NODE + POD,
    "broken.yaml": NODE + POD.replace("name: a", "name: A"),
    "broken.kdsl": "kdsl 1\npackage a\npredicate P { require node.nme == 1 else 'x' }\n",
    "other.kdsl": "kdsl 1\npackage a\npredicate P { require node.nam == 1 else 'x' }\n",
    "plain.kdsl": "kdsl 1\npackage a\nfn f(): int = 1\n",
    "kdsl.yaml": "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nsed: 1\n",
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def _codes(args: Sequence[str]) -> list[str]:
    ended = kdsl(*args)
    assert ended.exit_code == 2
    lines = (ended.stdout + ended.stderr).splitlines()
    return [line[len("error[") :][:5] for line in lines if line.startswith("error[")]


@pytest.mark.parametrize("command", [("simulate",), ("explain", "a")], ids=lambda each: each[0])
@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (("--cluster", "broken.yaml", "--rules", "broken.kdsl"), ["K0302", "K1109"]),
        (("--cluster", "none.yaml", "--rules", "none.kdsl"), ["K0355", "K1101"]),
        (("--cluster", "broken.yaml", "--config", "kdsl.yaml"), ["K1109", "K1131"]),
        (("--cluster", "broken.yaml", "--profile", "none"), ["K0301", "K1109"]),
        (
            ("--cluster", "broken.yaml", "--pods", "none.yaml", "--profile", "none"),
            ["K0301", "K1101", "K1109"],
        ),
    ],
)
def test_mistakes_of_rules_and_objects(
    command: Sequence[str], options: Sequence[str], codes: list[str]
) -> None:
    assert sorted(_codes((*command, *options))) == codes


def test_mistakes_of_rules_beside_a_form_that_takes_other_inputs() -> None:
    ended = kdsl("simulate", "--cluster", "cluster.yaml", "--format", "openb", "--rules", "broken.kdsl")
    assert ended.exit_code == 2
    assert "K0302" in ended.stderr and "--format openb takes" in ended.stderr


def test_what_is_asked_for_and_is_not_there() -> None:
    asked = ("explain", "b", "--cluster", "cluster.yaml", "--node", "n2", "--what-if", "x", "--what-if", "y")
    assert sorted(_codes(asked)) == ["K1109", "K1109", "K1114", "K1114"]
    assert _codes(("diff", "one", "two")) == ["K0301", "K0301"]


@pytest.mark.parametrize(
    ("args", "codes"),
    [
        (("diff", "broken.kdsl", "other.kdsl"), ["K0302", "K0302"]),
        (("diff", "broken.kdsl", "broken.kdsl"), ["K0302"]),
        (("diff", "broken.kdsl", "plain.kdsl", "--config", "kdsl.yaml"), ["K0302", "K1131"]),
        (("show", "p", "--config", "kdsl.yaml", "--rules", "none.kdsl"), ["K0355", "K1131"]),
        (("rbac", "--config", "kdsl.yaml", "--rules", "broken.kdsl"), ["K0302", "K1131"]),
    ],
)
def test_mistakes_of_rules_and_configuration(args: Sequence[str], codes: list[str]) -> None:
    assert sorted(_codes(args)) == codes


def test_a_file_for_placements_that_cannot_be_written() -> None:
    ended = kdsl("simulate", "--cluster", "cluster.yaml", "--placements", "none/file")
    assert ended.stderr == "error: cannot write `none/file`: no such file or directory\n"


def test_rules_without_a_profile_have_no_plan() -> None:
    ended = kdsl("check", "--plan", "plain.kdsl")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr.startswith("the rules have no profile: none will run\n")
    ended = kdsl("check", "--plan", "--profile", "p", "plain.kdsl")
    assert ended.exit_code == 2 and "= help: the rules have no profile\n" in ended.stderr
