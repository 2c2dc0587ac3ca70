"""The path without links: what stands where no file is, and where a link names itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.base.real_path import real_path


def test_links_are_followed_and_a_loop_is_no_exception(tmp_path: Path) -> None:
    base = real_path(tmp_path)
    (base / "folder").mkdir()
    (base / "link").symlink_to("folder")
    (base / "loop").symlink_to("loop")
    assert real_path(base / "link" / "missing") == base / "folder" / "missing"
    assert real_path(str(base / "loop")) == base / "loop"
    for name in ("loop", "missing"):
        with pytest.raises(OSError, match=name):
            real_path(base / name, strict=True)
