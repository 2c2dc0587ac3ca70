"""The cache on disk gives back what this user wrote, and takes everything else for a miss."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from kdsl.base import disk_cache as module
from kdsl.base.disk_cache import DiskCache, disk_cache


def test_the_folders_of_the_user() -> None:
    both = {"XDG_CACHE_HOME": "/x", "XDG_STATE_HOME": "/s", "HOME": "/h"}
    assert disk_cache(both) == DiskCache(Path("/x/kdsl"), Path("/s/kdsl/cache-key"))
    assert disk_cache({"HOME": "/h"}) == DiskCache(
        Path("/h/.cache/kdsl"), Path("/h/.local/state/kdsl/cache-key")
    )
    assert disk_cache({}) is None
    assert disk_cache({"XDG_CACHE_HOME": "/x"}) is None
    assert disk_cache({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) is None


def test_what_was_written_is_read(disk: DiskCache) -> None:
    assert disk.read("a") is None
    disk.write("a", b"payload")
    disk.write("b", b"")
    assert disk.read("a") == b"payload" and disk.read("b") == b"" and disk.read("c") is None


def test_files_are_private_whatever_the_umask(disk: DiskCache) -> None:
    before = os.umask(0)
    try:
        disk.write("a", b"payload")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (disk.folder, disk.folder / "a", disk.key)]
    assert modes == [0o700, 0o600, 0o600]


Tampering = Callable[[DiskCache, Path], object]


def _renamed(disk: DiskCache, entry: Path) -> None:
    disk.write("b", b"another answer")
    (disk.folder / "b").rename(entry)


def _linked(disk: DiskCache, entry: Path) -> None:
    entry.rename(disk.folder / "elsewhere")
    entry.symlink_to("elsewhere")


def _fifo(disk: DiskCache, entry: Path) -> None:
    entry.unlink()
    os.mkfifo(entry, 0o600)


def _of_another_user(disk: DiskCache, entry: Path) -> None:
    """Write the entry as somebody would who has not the key."""
    DiskCache(disk.folder, disk.key.with_name("another-key")).write(entry.name, b"payload")


TAMPERINGS: dict[str, Tampering] = {
    "flipped": lambda disk, entry: entry.write_bytes(entry.read_bytes()[:-1] + b"X"),
    "torn": lambda disk, entry: entry.write_bytes(entry.read_bytes()[:-1]),
    "empty": lambda disk, entry: entry.write_bytes(b""),
    "another entry renamed": _renamed,
    "another key": _of_another_user,
    "key gone": lambda disk, entry: disk.key.unlink(),
    "key short": lambda disk, entry: disk.key.write_bytes(b"short"),
    "key others may read": lambda disk, entry: disk.key.chmod(0o640),
    "key folder others may write": lambda disk, entry: disk.key.parent.chmod(0o770),
    "others may read it": lambda disk, entry: entry.chmod(0o644),
    "others may write it": lambda disk, entry: entry.chmod(0o620),
    "folder others may write": lambda disk, entry: disk.folder.chmod(0o777),
    "a link": _linked,
    "a FIFO": _fifo,
    "a folder": lambda disk, entry: (entry.unlink(), entry.mkdir()),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_what_cannot_be_trusted_is_a_miss(disk: DiskCache, tampering: str) -> None:
    disk.write("a", b"payload")
    assert disk.read("a") == b"payload"
    TAMPERINGS[tampering](disk, disk.folder / "a")
    assert disk.read("a") is None
    disk.write("a", b"again")
    is_refused = "folder" in tampering
    assert disk.read("a") == (None if is_refused else b"again")


def test_a_cache_of_another_user_is_a_miss(disk: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.write("a", b"payload")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert disk.read("a") is None


def test_a_restored_cache_is_a_miss_where_its_key_is_not(disk: DiskCache) -> None:
    disk.write("a", b"payload")
    elsewhere = DiskCache(disk.folder, disk.key.parent.with_name("other-state") / "cache-key")
    assert elsewhere.read("a") is None
    elsewhere.write("a", b"new")
    assert elsewhere.read("a") == b"new" and disk.read("a") is None


def test_an_entry_over_the_limit_is_neither_written_nor_read(
    disk: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.write("a", bytes(1000))
    monkeypatch.setattr(module, "MAX_ENTRY_BYTES", 500)
    assert disk.read("a") is None
    disk.write("b", bytes(1000))
    assert not (disk.folder / "b").exists()


def test_the_oldest_entries_go(disk: DiskCache) -> None:
    for number, name in enumerate(("x-1", "x-2", "y-1", "x-3")):
        disk.write(name, b"")
        os.utime(disk.folder / name, ns=(number, number))
    disk.prune("x-", 2)
    assert sorted(path.name for path in disk.folder.iterdir()) == ["x-2", "x-3", "y-1"]
