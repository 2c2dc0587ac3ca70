"""Files that are written wholly or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from kdsl.base.whole_file import whole_file, write_new


def test_an_error_keeps_the_former_file_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("former")
    with pytest.raises(OSError, match=r"page\.html") as error, whole_file(path) as beside:
        beside.write_text("half of a")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert error.value.filename == str(path)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("page.html", "former")]
    with whole_file(path) as beside:
        beside.write_text("new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("page.html", "new")]


@pytest.mark.parametrize("follows_link", [True, False])
def test_the_target_of_a_link_is_written_unless_links_are_foreign(tmp_path: Path, follows_link: bool) -> None:
    target, link = tmp_path / "page.html", tmp_path / "latest.html"
    target.write_text("former")
    target.chmod(0o600)
    link.symlink_to(target.name)
    with whole_file(link, follows_link) as beside:
        beside.write_text("new")
    assert link.is_symlink() == follows_link and link.read_text() == "new"
    assert target.read_text() == ("new" if follows_link else "former")
    assert target.stat().st_mode & 0o777 == 0o600
    assert follows_link or not link.stat().st_mode & 0o002
    assert {each.name for each in tmp_path.iterdir()} == {"page.html", "latest.html"}


def test_a_device_is_written_itself() -> None:
    with whole_file(Path("/dev/null")) as beside:
        assert beside == Path("/dev/null")
    assert beside.is_char_device()


def test_a_new_file_of_which_a_half_fits_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_new(tmp_path / "a", "text")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", "other")

    real = Path.open

    def full(path: Path, *args: object, **options: object) -> object:
        if path.name == "b":
            real(path, "x").close()
            return real(Path("/dev/full"), "w")
        return real(path, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left"):
        write_new(tmp_path / "b", "text")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
