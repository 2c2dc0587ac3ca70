"""Which files are opened: what changes between finding and reading, and what the attacks do not reach."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kdsl.base import file_policy
from kdsl.base.file_policy import (
    FoundFile,
    Refusal,
    RefusedError,
    distinct,
    files_below,
    follow,
    named_file,
    read_named,
    replace_file,
)
from kdsl.base.real_path import real_path
from kdsl.lang.codes import LangCode
from kdsl.lang.discovery import find_rule_files, read_rule_file


def _all_below(folder: Path) -> tuple[list[FoundFile], list[OSError]]:
    problems: list[OSError] = []
    return files_below(folder, lambda name: True, problems), problems


def _names(folder: Path) -> list[str]:
    return [file.path.relative_to(folder).as_posix() for file in _all_below(folder)[0]]


def test_a_file_that_became_a_link_after_it_was_found_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.kdsl"
    path.write_text("kdsl 1")
    ((file,), _) = find_rule_files([tmp_path / "in"])
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        file.read(100)


def test_a_file_that_became_a_pipe_after_it_was_found_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("kdsl 1")
    ((file,), _) = find_rule_files([tmp_path])
    path.unlink()
    os.mkfifo(path)
    problem = read_rule_file(file)
    assert getattr(problem, "code", None) == LangCode.SPECIAL_FILE


def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("12345")
    real_read = os.read

    def grown(descriptor: int, most: int) -> bytes:
        with path.open("a") as file:
            file.write("more")
        return real_read(descriptor, most)

    monkeypatch.setattr(os, "read", grown)
    with pytest.raises(RefusedError) as caught:
        read_named(path, 5)
    assert caught.value.refusal is Refusal.TOO_LARGE


@pytest.mark.parametrize(("size", "is_read"), [(0, True), (5, True), (6, False), (2**40, False)])
def test_the_limit_is_the_largest_size(tmp_path: Path, size: int, is_read: bool) -> None:
    path = tmp_path / "a"
    path.touch()
    os.truncate(path, size)
    if is_read:
        assert len(read_named(path, 5)) == size
        return
    with pytest.raises(RefusedError) as caught:
        read_named(path, 5)
    assert (caught.value.refusal, caught.value.size) == (Refusal.TOO_LARGE, size)


@pytest.mark.parametrize(("sent", "is_read"), [(b"", False), (b"12345", True), (b"123456", False)])
def test_pipes_that_are_named(sent: bytes, is_read: bool) -> None:
    reader, writer = os.pipe()
    os.write(writer, sent)
    os.close(writer)
    path = Path(f"/dev/fd/{reader}")
    try:
        if is_read:
            assert read_named(path, 5) == sent
            return
        with pytest.raises(RefusedError) as caught:
            read_named(path, 5)
    finally:
        os.close(reader)
    assert caught.value.refusal is (Refusal.TOO_LARGE if sent else Refusal.NO_WRITER)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_named(tmp_path, 5)


def test_files_are_sorted_as_folders_list_them(tmp_path: Path) -> None:
    for name in ("b/a", "b/c", "a", "b.x", "c/d/e", ".hidden", ".git/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert _names(tmp_path) == ["a", "b/a", "b/c", "b.x", "c/d/e"]


@pytest.mark.parametrize("name", ["a", "zz", "0", "A"])
@pytest.mark.parametrize("target", ["m", "m/n", ".m"])
def test_the_name_that_is_no_link_comes_first(tmp_path: Path, name: str, target: str) -> None:
    (tmp_path / target).mkdir(parents=True)
    (tmp_path / target / "x").touch()
    (tmp_path / name).symlink_to(target)
    shown = name if target.startswith(".") else target
    assert _names(tmp_path) == [f"{shown}/x"]
    ((file,), problems) = _all_below(tmp_path)
    assert not problems
    assert file.places[0] == str(tmp_path / shown / "x")
    assert file.places[-1] == str(tmp_path / target / "x")


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("rules/a", ["rules/a", "rules/..data/a", "rules/..1/a"]),
        ("rules/d/b", ["rules/d/b", "rules/..data/d/b", "rules/..1/d/b"]),
        ("rules/d/../a", ["rules/..1/a"]),
        ("far", ["rules/a", "rules/..data/a", "rules/..1/a"]),
        ("link/a", ["link/a", "rules/a", "rules/..data/a", "rules/..1/a"]),
        ("out", ["out", "link/a", "rules/a", "rules/..data/a", "rules/..1/a"]),
        ("rules/up/x", ["x"]),
        ("none", ["none"]),
    ],
)
def test_places_of_what_is_named(tmp_path: Path, path: str, places: list[str]) -> None:
    """A link that leaves its folder counts for nothing, one that stays counts as well as its target."""
    (tmp_path / "rules" / "..1" / "d").mkdir(parents=True)
    for name, target in {"..data": "..1", "a": "..data/a", "d": "..data/d", "up": ".."}.items():
        (tmp_path / "rules" / name).symlink_to(target)
    (tmp_path / "link").symlink_to(tmp_path / "rules")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "far").symlink_to("../rules/a")
    (tmp_path / "far").symlink_to("sub/far")
    (tmp_path / "out").symlink_to("link/a")
    assert named_file(tmp_path / path).places == tuple(str(tmp_path / each) for each in places)


def test_links_that_lead_in_a_circle_have_a_place(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("../x/b")
    (tmp_path / "b").symlink_to("../x/a")
    file = named_file(tmp_path / "a" / "c")
    assert file.places
    with pytest.raises(OSError, match=r"No such file|symbolic links"):
        file.read(5)


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("in/a", None),
        ("../beside", None),
        ("out", Refusal.LEAVES),
        ("d/x", Refusal.LEAVES),
        ("up", Refusal.LOOP),
    ],
)
def test_what_another_file_names(tmp_path: Path, name: str, refusal: Refusal | None) -> None:
    here = tmp_path / "here"
    (here / "in").mkdir(parents=True)
    for path in (here / "in" / "a", tmp_path / "beside", tmp_path / "far" / "x"):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (here / "out").symlink_to("../beside")
    (here / "d").symlink_to("../far")
    (here / "up").symlink_to("..")
    if refusal is None:
        assert follow(here, name) == real_path(here / name)
        return
    with pytest.raises(RefusedError) as caught:
        follow(here, name)
    assert caught.value.refusal is refusal


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path, other, link = (tmp_path / name for name in ("a", "other", "link"))
    path.write_text("old")
    path.chmod(0o640)
    os.link(path, other)
    link.symlink_to("a")
    replace_file(link, b"new")
    assert (path.read_text(), other.read_text(), link.is_symlink()) == ("new", "old", True)
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "link", "other"]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RefusedError):
        replace_file(tmp_path / "pipe", b"new")


def test_a_file_is_taken_once_under_its_first_name(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to("a")
    os.link(tmp_path / "a", tmp_path / "c")
    files = [named_file(tmp_path / name) for name in ("b", "c", "a", "b", "c")]
    assert [file.path.name for file in distinct(files)] == ["b", "c"]


def test_a_search_gives_up_where_too_much_is_below_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for `/`: the search would take minutes."""
    monkeypatch.setattr(file_policy, "MOST_ENTRIES", 3)
    for number in range(3):
        (tmp_path / f"{number}.kdsl").write_text("kdsl 1")
    assert len(_all_below(tmp_path)[0]) == 3
    (tmp_path / "deep").mkdir()
    files, problems = _all_below(tmp_path)
    assert files == []
    assert [(error.filename, error.strerror) for error in problems] == [
        (str(tmp_path), Refusal.TOO_MANY.value)
    ]
    _, found = find_rule_files([tmp_path])
    assert [each.title for each in found] == [f"cannot read `{tmp_path}`: {Refusal.TOO_MANY}"]
