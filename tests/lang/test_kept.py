from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.base.span import Source
from kdsl.lang import kept
from kdsl.lang.kept import MAX_TREES, read_tree, write_tree
from kdsl.lang.parser import parse_file
from kdsl.lang.tree import File

SAMPLE = Path(__file__).parent / "samples" / "everything.kdsl"


def sample(path: str = "everything.kdsl", more: str = "") -> tuple[Source, File]:
    source = Source(path, SAMPLE.read_text(encoding="utf-8") + more)
    parsed = parse_file(source)
    assert parsed.file is not None and not parsed.diagnostics
    return source, parsed.file


def test_a_kept_tree_is_the_tree(tmp_path: Path) -> None:
    source, file = sample()
    write_tree(tmp_path, source, file)
    read = read_tree(tmp_path, Source(source.path, source.text))
    assert read == file
    assert read is not None and read.span.source.text == source.text


def test_another_text_path_or_code_is_another_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, file = sample()
    write_tree(tmp_path, source, file)
    assert read_tree(tmp_path, Source(source.path, source.text + " ")) is None
    assert read_tree(tmp_path, Source("other.kdsl", source.text)) is None
    monkeypatch.setattr(kept, "_code", lambda: "another version")
    assert read_tree(tmp_path, source) is None


def test_a_damaged_copy_is_none(tmp_path: Path) -> None:
    source, file = sample()
    write_tree(tmp_path, source, file)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert read_tree(tmp_path, source) is None


def test_without_a_folder_nothing_is_kept() -> None:
    source, file = sample()
    write_tree(None, source, file)
    assert read_tree(None, source) is None


def test_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_TREES > 100
    monkeypatch.setattr(kept, "MAX_TREES", 2)
    source, file = sample()
    for name in ("a.kdsl", "b.kdsl", "c.kdsl"):
        write_tree(tmp_path, Source(name, source.text), file)
    assert len(list(tmp_path.iterdir())) == 2
    assert read_tree(tmp_path, Source("a.kdsl", source.text)) is None
