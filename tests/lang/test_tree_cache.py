from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.base.disk_cache import DiskCache
from kdsl.base.span import Source
from kdsl.lang import tree_cache
from kdsl.lang.parser import parse_file
from kdsl.lang.tree import File
from kdsl.lang.tree_cache import MAX_TREES, read_tree, write_tree

SAMPLE = Path(__file__).parent / "samples" / "everything.kdsl"


def sample(path: str = "everything.kdsl", more: str = "") -> tuple[Source, File]:
    source = Source(path, SAMPLE.read_text(encoding="utf-8") + more)
    parsed = parse_file(source)
    assert parsed.file is not None and not parsed.diagnostics
    return source, parsed.file


def test_a_kept_tree_is_the_tree(disk: DiskCache) -> None:
    source, file = sample()
    write_tree(disk, source, file)
    read = read_tree(disk, Source(source.path, source.text))
    assert read == file
    assert read is not None and read.span.source.text == source.text


def test_another_text_path_or_code_is_another_tree(disk: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    source, file = sample()
    write_tree(disk, source, file)
    assert read_tree(disk, Source(source.path, source.text + " ")) is None
    assert read_tree(disk, Source("other.kdsl", source.text)) is None
    monkeypatch.setattr(tree_cache, "_code", lambda: "another version")
    assert read_tree(disk, source) is None


@pytest.mark.parametrize(
    "name", ["lang/grammar.lark", "lang/tree.py", "base/record_codec.py", "base/span.py"]
)
def test_trees_of_other_code_go_by_another_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, read = tree_cache._code.__wrapped__(), Path.read_text

    def changed(path: Path, encoding: str) -> str:
        return read(path, encoding) + ("#" if path.match(f"kdsl/{name}") else "")

    assert tree_cache._code.__wrapped__() == before
    monkeypatch.setattr(Path, "read_text", changed)
    assert tree_cache._code.__wrapped__() != before


def test_a_damaged_copy_is_none(disk: DiskCache) -> None:
    source, file = sample()
    write_tree(disk, source, file)
    (path,) = disk.folder.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert read_tree(disk, source) is None


def test_without_a_folder_nothing_is_kept() -> None:
    source, file = sample()
    write_tree(None, source, file)
    assert read_tree(None, source) is None


def test_the_oldest_go(disk: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_TREES > 100
    monkeypatch.setattr(tree_cache, "MAX_TREES", 2)
    source, file = sample()
    for name in ("a.kdsl", "b.kdsl", "c.kdsl"):
        write_tree(disk, Source(name, source.text), file)
    assert len(list(disk.folder.iterdir())) == 2
    assert read_tree(disk, Source("a.kdsl", source.text)) is None
