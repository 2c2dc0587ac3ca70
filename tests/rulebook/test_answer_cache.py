"""Checked rules that were kept are those that would be made: until anything that they depend on changes."""

from __future__ import annotations

import hashlib
import pickle
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kdsl.base.disk_cache import DiskCache
from kdsl.base.record_codec import RecordCodec
from kdsl.check.lints import lint
from kdsl.check.model.rule_set import CheckedPredicate
from kdsl.lang.loader import _parse
from kdsl.rulebook import answer_cache
from kdsl.rulebook.answer import CheckedRules
from kdsl.rulebook.answer_cache import kept_answer
from kdsl.rulebook.checking import check_rules
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


def entries(disk: DiskCache) -> list[Path]:
    return sorted(disk.folder.glob("*-*"))


def ours(checked: CheckedRules) -> CheckedPredicate:
    assert checked.rules is not None
    return checked.rules.profiles["team.team"].predicates[-1]


def test_what_was_kept_is_what_was_made(rules: Path, disk: DiskCache) -> None:
    made = check_rules([rules], keep=disk)
    answer = kept_answer(disk, read_texts([rules]))
    kept = [f"{part}-{answer.name}" for part in ("rules", "verdict")]
    assert [path.name for path in entries(disk)] == kept
    assert answer.verdict() == made.verdict
    again = answer.rules(with_trees=True)
    assert again is not None and again is not made
    assert again.rules == made.rules
    assert again.program is not None and made.program is not None
    assert again.program.files == made.program.files and again.program.digest == made.program.digest
    assert (again.profiles, again.borrowed) == (made.profiles, made.borrowed)
    assert again.profiles == ("kubernetes.v1_36.default", "team.team")
    without = answer.rules()
    assert without is not None and without.program is None
    assert (without.rules, without.profiles, without.borrowed) == (made.rules, made.profiles, made.borrowed)
    assert ours(again).span.site == ours(made).span.site == f"{rules}:5"


def test_it_is_taken_without_a_check(rules: Path, disk: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    made = check_rules([rules], keep=disk)
    monkeypatch.setattr("kdsl.rulebook.fresh.check_program", None)
    monkeypatch.setattr("kdsl.rulebook.fresh._checked", {})
    assert check_rules([rules], keep=disk).rules == made.rules
    with pytest.raises(TypeError):
        check_rules([rules])


def test_kept_rules_and_trees_belong_together(rules: Path, disk: DiskCache) -> None:
    made, again = (check_rules([rules], keep=disk, with_trees=True) for _ in range(2))
    assert made.rules is not None and again.rules is not None and again is not made
    assert made.program is not None and again.program is not None
    assert {file.span.source for file in again.program.files} >= {ours(again).span.source}
    (finding,), (same,) = lint(made.program, made.rules), lint(again.program, again.rules)
    assert (finding.code, str(finding.span)) == (same.code, str(same.span)) == ("K0701", f"{rules}:6:11")


def test_mistakes_are_kept_too(rules: Path, disk: DiskCache) -> None:
    rules.write_text(RULES % "8 cores")
    made = check_rules([rules], keep=disk)
    again = kept_answer(disk, read_texts([rules])).verdict()
    assert made.rules is None and again is not None and again.profiles is None
    assert [str(each.span) for each in again.diagnostics] == [str(each.span) for each in made.diagnostics]


@pytest.mark.parametrize("change", ["text", "place", "folder", "library", "code", "plugins", "undeclared"])
def test_another_question_has_another_answer(
    change: str, rules: Path, disk: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name(plugins: tuple[str, ...] = ("default-binder",), undeclared: tuple[str, ...] = ()) -> str:
        return kept_answer(disk, read_texts([rules]), plugins, undeclared).name

    before = name()
    assert before and before == name()
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
            monkeypatch.setattr(answer_cache, "_code", lambda: "another version")
        case "plugins":
            assert name(()) not in (before, "")
            return
        case "undeclared":
            assert name(undeclared=("default-binder",)) not in (before, "")
            return
    assert name() not in (before, "")


def test_the_current_folder_matters_only_to_relative_paths(
    rules: Path, disk: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[Path, set[str]] = {rules: set(), rules.relative_to(tmp_path): set()}
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rules").symlink_to(rules.parent)
        monkeypatch.chdir(tmp_path / folder)
        for path, found in names.items():
            found.add(kept_answer(disk, read_texts([path])).name)
    assert [len(found) for found in names.values()] == [1, 2]


def test_nothing_is_kept_without_a_folder_or_of_files_that_cannot_be_read(
    rules: Path, disk: DiskCache
) -> None:
    assert kept_answer(None, read_texts([rules])).name == ""
    texts = read_texts([rules, rules.with_name("none.kdsl")])
    assert texts.problems and kept_answer(disk, texts).name == ""
    assert check_rules([rules]).rules is not None
    assert not disk.folder.exists()


def test_nothing_is_kept_of_plugins_of_others(
    rules: Path, disk: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_cache, "_OWN", "another distribution")
    check_rules([rules], keep=disk)
    assert not disk.folder.exists()


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 5000])
def test_a_damaged_answer_is_made_again(rules: Path, disk: DiskCache, damage: bytes) -> None:
    made = check_rules([rules], keep=disk)
    for path in entries(disk):
        path.write_bytes(damage or path.read_bytes()[:-1])
    assert kept_answer(disk, read_texts([rules])).verdict() is None
    assert check_rules([rules], keep=disk).rules == made.rules
    assert kept_answer(disk, read_texts([rules])).verdict() == made.verdict


class _Run:
    """A pickle of it runs code where it is read."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('code ran')",)


def test_a_pickle_in_place_of_an_answer_is_a_miss(rules: Path, disk: DiskCache) -> None:
    made = check_rules([rules], keep=disk)
    payload = pickle.dumps(_Run())
    for path in entries(disk):
        path.write_bytes(hashlib.sha256(payload).digest() + payload)
    answer = kept_answer(disk, read_texts([rules]))
    assert answer.verdict() is None and answer.rules() is None
    for path in entries(disk):
        disk.write(path.name, payload)
        assert disk.read(path.name) == payload
    assert answer.verdict() is None and answer.rules() is None
    assert check_rules([rules], keep=disk).rules == made.rules


OTHERS = [(), (("another", "value"),), ("another", "value"), ("three", "other", "values")]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_another_record_in_place_of_an_answer_is_a_miss(
    other: tuple[object, ...], rules: Path, disk: DiskCache
) -> None:
    check_rules([rules], keep=disk)
    for path in entries(disk):
        disk.write(path.name, RecordCodec(()).encode(other))
    answer = kept_answer(disk, read_texts([rules]))
    assert answer.verdict() is None and answer.rules() is None and answer.rules(with_trees=True) is None


@pytest.mark.parametrize("damage", ["lost", "foreign", "pickle", "record", "place"])
def test_damaged_trees_are_parsed_again(
    damage: str, rules: Path, disk: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdsl.lang.loader.disk_cache", lambda environ: disk)
    _parse.cache_clear()
    made = check_rules([rules], keep=disk)
    answer = kept_answer(disk, read_texts([rules]))
    trees = list(disk.folder.glob("tree-*"))
    assert len(trees) > 1
    for path in trees:
        match damage:
            case "lost":
                path.unlink()
            case "foreign":
                path.write_bytes(path.read_bytes()[::-1])
            case "pickle":
                disk.write(path.name, pickle.dumps(_Run()))
            case "record":
                disk.write(path.name, RecordCodec(()).encode(("another", "value")))
            case "place":
                disk.write(path.name, b'{"classes":[],"scalars":[],"groups":[[0,[99]]]}')
    again = answer.rules(with_trees=True)
    assert again is not None and again.program is not None and made.program is not None
    assert again.program == replace(made.program, packages=again.program.packages)
    assert dict(again.program.packages) == dict(made.program.packages)
    assert ours(again).span.source in {file.span.source for file in again.program.files}
    monkeypatch.setattr("kdsl.lang.twin.parse_rules", None)
    kept = answer.rules(with_trees=True)
    assert kept is not None and kept.program == again.program


def test_kept_trees_are_not_parsed_again(
    rules: Path, disk: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdsl.lang.loader.disk_cache", lambda environ: disk)
    _parse.cache_clear()
    check_rules([rules], keep=disk)
    monkeypatch.setattr("kdsl.lang.twin.parse_rules", None)
    again = check_rules([rules], keep=disk, with_trees=True)
    assert again.program is not None and len(again.program.files) > 1


CHECKED = [
    Path("rules"),
    *sorted(path for path in Path("examples").iterdir() if any(path.rglob("*.kdsl*"))),
    *sorted(Path("tests/check/broken").glob("*.kdsl")),
]


@pytest.mark.parametrize("path", CHECKED, ids=str)
def test_every_answer_can_be_kept(path: Path, disk: DiskCache) -> None:
    made = check_rules([path], keep=disk)
    answer = kept_answer(disk, read_texts([path]))
    again = answer.rules(with_trees=True)
    assert again is not None and answer.verdict() is not None
    assert (again.program is None) == (again.rules is None)
    assert again.program is None or again.program == made.program
    assert (again.profiles, again.borrowed) == (made.profiles, made.borrowed)
    assert again.rules == made.rules and again.files == made.files
    assert list(map(str, again.diagnostics)) == list(map(str, made.diagnostics))
    assert [repr(each.code) for each in again.diagnostics] == [repr(each.code) for each in made.diagnostics]


def test_a_folder_that_cannot_be_written_costs_only_time(rules: Path, disk: DiskCache) -> None:
    disk.folder.write_text("a file")
    assert check_rules([rules], keep=disk).rules is not None


def test_many_may_check_at_once(rules: Path, disk: DiskCache) -> None:
    found: list[CheckedRules] = []
    threads = [
        threading.Thread(target=lambda: found.append(check_rules([rules], keep=disk))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len({each.rules.digest for each in found if each.rules is not None}) == 1
    assert len(list(disk.folder.iterdir())) == 2


def test_the_oldest_go(rules: Path, disk: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cache, "MAX_ANSWERS", 2)
    for cpus in (1, 2, 3):
        rules.write_text(RULES % cpus)
        check_rules([rules], keep=disk)
    assert len(entries(disk)) == 4
    rules.write_text(RULES % 1)
    assert kept_answer(disk, read_texts([rules])).verdict() is None
