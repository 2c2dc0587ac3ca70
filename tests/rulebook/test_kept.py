"""Checked rules that were kept are those that would be made: until anything that they depend on changes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from kdsl.check.lints import lint
from kdsl.check.model import CheckedPredicate
from kdsl.rulebook import kept
from kdsl.rulebook.checking import CheckedRules, check_rules
from kdsl.rulebook.kept import kept_answer
from kdsl.rulebook.texts import read_texts

RULES = """\
kdsl 1
package team
import kubernetes.v1_36 as kubernetes

predicate Large {
  require node.allocatable["cpu"] >= quantity("%s") else "node(s) were small"
}

profile team extends kubernetes.default {
  scheduler "team"
  add predicate Large
}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules" / "team.kdsl"
    path.parent.mkdir()
    path.write_text(RULES % 8)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def answers(folder: Path) -> list[Path]:
    return sorted(folder.glob("checked-*"))


def ours(checked: CheckedRules) -> CheckedPredicate:
    assert checked.rules is not None
    return checked.rules.profiles["team.team"].predicates[-1]


def test_what_was_kept_is_what_was_made(rules: Path, folder: Path) -> None:
    made = check_rules([rules], keep=folder)
    answer = kept_answer(folder, read_texts([rules]))
    assert answer.path in answers(folder)
    assert answer.verdict() == made.verdict
    again = answer.rules()
    assert again is not None and again is not made
    assert again.rules == made.rules
    assert again.program.files == made.program.files and again.program.digest == made.program.digest
    assert ours(again).span.site == ours(made).span.site == f"{rules}:5"


def test_it_is_taken_without_a_check(rules: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = check_rules([rules], keep=folder)
    monkeypatch.setattr("kdsl.rulebook.checking.check_program", None)
    monkeypatch.setattr("kdsl.rulebook.checking._checked", {})
    assert check_rules([rules], keep=folder).rules == made.rules
    with pytest.raises(TypeError):
        check_rules([rules])


def test_kept_rules_and_trees_belong_together(rules: Path, folder: Path) -> None:
    made, again = (check_rules([rules], keep=folder) for _ in range(2))
    assert made.rules is not None and again.rules is not None
    assert {file.span.source for file in again.program.files} >= {ours(again).span.source}
    (finding,), (same,) = (lint(each.program, each.rules) for each in (made, again))
    assert (finding.code, str(finding.span)) == (same.code, str(same.span)) == ("K0701", f"{rules}:6:11")


def test_mistakes_are_kept_too(rules: Path, folder: Path) -> None:
    rules.write_text(RULES % "8 cores")
    made = check_rules([rules], keep=folder)
    again = kept_answer(folder, read_texts([rules])).verdict()
    assert made.rules is None and again is not None and again.profiles is None
    assert [str(each.span) for each in again.diagnostics] == [str(each.span) for each in made.diagnostics]


@pytest.mark.parametrize("change", ["text", "place", "folder", "library", "code", "plugins", "undeclared"])
def test_another_question_has_another_answer(
    change: str, rules: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name(plugins: tuple[str, ...] = ("default-binder",), undeclared: tuple[str, ...] = ()) -> Path | None:
        return kept_answer(folder, read_texts([rules]), plugins, undeclared).path

    before = name()
    assert before is not None and before == name()
    match change:
        case "text":
            rules.write_text(RULES % 9)
        case "place":
            rules = rules.rename(rules.with_name("other.kdsl"))
        case "folder":
            monkeypatch.chdir(tmp_path)
        case "library":
            monkeypatch.setattr("kdsl.rulebook.texts.libraries", lambda: ())
        case "code":
            monkeypatch.setattr(kept, "_code", lambda: "another version")
        case "plugins":
            assert name(()) not in (before, None)
            return
        case "undeclared":
            assert name(undeclared=("default-binder",)) not in (before, None)
            return
    assert name() not in (before, None)


def test_nothing_is_kept_without_a_folder_or_of_files_that_cannot_be_read(rules: Path, folder: Path) -> None:
    assert kept_answer(None, read_texts([rules])).path is None
    texts = read_texts([rules, rules.with_name("none.kdsl")])
    assert texts.problems and kept_answer(folder, texts).path is None
    assert check_rules([rules]).rules is not None
    assert not folder.exists()


def test_nothing_is_kept_of_plugins_of_others(
    rules: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_OWN", "another distribution")
    check_rules([rules], keep=folder)
    assert not folder.exists()


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 5000])
def test_a_damaged_answer_is_made_again(rules: Path, folder: Path, damage: bytes) -> None:
    made = check_rules([rules], keep=folder)
    (path,) = answers(folder)
    whole = path.read_bytes()
    path.write_bytes(damage or whole[:-1])
    assert kept_answer(folder, read_texts([rules])).verdict() is None
    assert check_rules([rules], keep=folder).rules == made.rules
    assert kept_answer(folder, read_texts([rules])).verdict() == made.verdict


def test_a_folder_that_cannot_be_written_costs_only_time(rules: Path, folder: Path) -> None:
    folder.write_text("a file")
    assert check_rules([rules], keep=folder).rules is not None


def test_many_may_check_at_once(rules: Path, folder: Path) -> None:
    found: list[CheckedRules] = []
    threads = [
        threading.Thread(target=lambda: found.append(check_rules([rules], keep=folder))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len({each.rules.digest for each in found if each.rules is not None}) == 1
    assert len(list(folder.iterdir())) == 1


def test_the_oldest_go(rules: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_ANSWERS", 2)
    for cpus in (1, 2, 3):
        rules.write_text(RULES % cpus)
        check_rules([rules], keep=folder)
    assert len(answers(folder)) == 2
    rules.write_text(RULES % 1)
    assert kept_answer(folder, read_texts([rules])).verdict() is None
