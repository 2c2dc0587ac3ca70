"""A team writes links into its folder, so that what is the platform's becomes the team's, or the other way
round.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kdsl.base.disk_cache import DiskCache
from kdsl.rulebook.answer_cache import kept_answer
from kdsl.rulebook.texts import read_texts

from .layouts import PLATFORM, TEAM, TEAMS, company, ended, mounted, write

DISABLED = "disable predicate Fits"
NAMES = ["a", "zz", "A", "0", "platform", "m2"]
"""Of links: they sort before and after the names of the platform's files and of the team's."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("team", ["ml", "zz"])
@pytest.mark.parametrize("how", ["folder", "file", "absolute", "by a link", "by a hidden link"])
def test_a_link_makes_no_file_of_the_platform_the_teams(
    tmp_path: Path, name: str, team: str, how: str
) -> None:
    company(tmp_path, DISABLED)
    if team != "ml":
        (tmp_path / "ml").rename(tmp_path / team)
        write(tmp_path / "teams.kdsl", TEAMS.replace("ml/", f"{team}/"))
    mine = tmp_path / team
    if how == "file":
        (mine / f"{name}.kdsl").symlink_to("../platform/p.kdsl")
    elif how == "absolute":
        (mine / name).symlink_to(tmp_path / "platform")
    else:
        between = {"folder": name, "by a link": "between", "by a hidden link": ".between"}[how]
        (mine / between).symlink_to("../platform")
        if between != name:
            (mine / name).symlink_to(between)
    result = ended("check", "--strict", tmp_path)
    assert result.exit_code == 2
    assert "error[K0361]" in result.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_link_that_the_shell_names_takes_no_file_either(tmp_path: Path, name: str) -> None:
    """`rules/*/*` names links, too: whose a file is goes by where it is, and a name that says otherwise is
    an error.
    """
    company(tmp_path, DISABLED)
    (tmp_path / "ml" / f"{name}.kdsl").symlink_to("../platform/p.kdsl")
    named = sorted([*tmp_path.glob("*.kdsl"), *tmp_path.glob("*/*.kdsl")])
    result = ended("check", "--strict", *named)
    assert result.exit_code == 1
    assert "error[K0414]" in result.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_link_out_of_a_teams_folder_gives_it_no_rights_of_the_platform(tmp_path: Path, name: str) -> None:
    rules = company(tmp_path / "rules")
    evil = "kdsl 1\npackage evil\nimport platform\n"
    write(tmp_path / "evil.kdsl", f"{evil}profile evil extends platform.default {{ {DISABLED} }}")
    (rules / "ml" / f"{name}.kdsl").symlink_to("../../evil.kdsl")
    assert "error[K0361]" in ended("check", rules).stdout
    named = [rules / "teams.kdsl", rules / "platform", *sorted((rules / "ml").iterdir())]
    result = ended("check", *named)
    assert result.exit_code == 1
    assert "error[K0414]" in result.stdout


@pytest.mark.parametrize("name", ["ML", "Ml", "mL"])
def test_another_case_gives_a_team_no_rights_of_the_platform(tmp_path: Path, name: str) -> None:
    company(tmp_path)
    evil = "kdsl 1\npackage evil\nimport platform\n"
    write(tmp_path / name / "e.kdsl", f"{evil}profile evil extends platform.default {{ {DISABLED} }}")
    result = ended("check", tmp_path)
    assert result.exit_code == 1
    assert "differs from the pattern of team `ml` only in capital letters" in result.stdout


@pytest.mark.parametrize("rules", [["platform"], ["teams.kdsl", "platform"], ["teams.kdsl"]])
def test_a_pattern_without_files_is_an_error(tmp_path: Path, rules: list[str]) -> None:
    company(tmp_path)
    write(tmp_path / "platform" / "teams.kdsl", TEAMS.replace("package teams", "package platform"))
    result = ended("check", *(tmp_path / each for each in rules))
    assert result.exit_code == 1
    assert "error[K0420]" in result.stdout


def test_hard_links_are_two_files_each_of_its_folder(tmp_path: Path) -> None:
    company(tmp_path, DISABLED)
    os.link(tmp_path / "platform" / "p.kdsl", tmp_path / "ml" / "a.kdsl")
    result = ended("check", tmp_path)
    assert result.exit_code == 1
    assert "is declared twice" in result.stdout


def test_another_target_is_another_check(tmp_path: Path, disk: DiskCache) -> None:
    """A kept answer is not taken where the names and texts are the same and a link leads elsewhere."""
    company(tmp_path)
    answers = set()
    for place in ("one", "two"):
        write(tmp_path / place / "x.kdsl", "kdsl 1\npackage x")
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(place)
        answers.add(kept_answer(disk, read_texts([tmp_path / "link"])).name)
    assert len(answers) == 2


@pytest.mark.parametrize("pattern", ["ml/**.kdsl", "ml/*.kdsl"])
@pytest.mark.parametrize("does", ["", DISABLED])
def test_a_config_map_belongs_to_the_folder_that_it_is_mounted_in(
    tmp_path: Path, pattern: str, does: str
) -> None:
    """Its files are the team's by the names that people see, found in their folder or named one by one."""
    rules = tmp_path / "rules"
    mounted(rules / "platform", teams=TEAMS.replace("ml/**.kdsl", pattern), p=PLATFORM)
    mounted(rules / "ml", m=TEAM.replace("DO", does))
    named = sorted(rules.glob("*/*.kdsl"))
    assert len(named) == 3
    for paths in ([rules], named, [rules / "platform", rules / "ml" / "m.kdsl"]):
        result = ended("check", "--strict", *paths)
        assert (result.exit_code, "K0411" in result.stdout) == ((1, True) if does else (0, False))
        assert does or "3 files checked" in result.stderr


def test_a_config_map_may_change_while_it_is_mounted(tmp_path: Path) -> None:
    folder = mounted(tmp_path, a="kdsl 1\npackage a")
    assert ended("check", folder).exit_code == 0
    write(folder / "..2027" / "a.kdsl", "kdsl 1\npackage b\npredicate {")
    (folder / "..new").symlink_to("..2027")
    (folder / "..new").replace(folder / "..data")
    assert ended("check", folder).exit_code == 1


@pytest.mark.parametrize("pattern", ["ml/**.kdsl", "ml/*.kdsl", "ml/m?.kdsl"])
def test_a_link_within_a_folder_is_the_teams(tmp_path: Path, pattern: str) -> None:
    """The name of the target need not match: else a team could get rid of its owner."""
    company(tmp_path)
    write(tmp_path / "teams.kdsl", TEAMS.replace("ml/**.kdsl", pattern))
    (tmp_path / "ml" / "m.kdsl").rename(tmp_path / "ml" / "m0.kdsl")
    write(tmp_path / "ml" / "x.txt", "kdsl 1\npackage x\nimport platform\n" + TEAM.split("platform\n", 1)[1])
    text = (tmp_path / "ml" / "x.txt").read_text().replace("profile ml", "profile x").replace("DO", DISABLED)
    (tmp_path / "ml" / "x.txt").write_text(text)
    (tmp_path / "ml" / "m1.kdsl").symlink_to("x.txt")
    for paths in (
        [tmp_path],
        [tmp_path / "teams.kdsl", tmp_path / "platform", *(tmp_path / "ml").glob("*.kdsl")],
    ):
        result = ended("check", *paths)
        assert (result.exit_code, "error[K0411]" in result.stdout) == (1, True)


def test_rules_by_a_link_that_the_user_names(tmp_path: Path) -> None:
    company(tmp_path / "v1")
    (tmp_path / "current").symlink_to("v1")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "rules").symlink_to(tmp_path / "current")
    for path in (tmp_path / "current", tmp_path / "elsewhere" / "rules"):
        result = ended("check", "--strict", path)
        assert (result.exit_code, result.stdout) == (0, "")
        assert "3 files checked" in result.stderr
