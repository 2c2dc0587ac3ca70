"""Paths as findings write them."""

from __future__ import annotations

import pytest
from kdsl.base.paths import Path, path_text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("plugins", 0, "args"), "plugins[0].args"),
        (("spec", "requests", "nvidia.com/gpu"), 'spec.requests["nvidia.com/gpu"]'),
        ((2, "name"), "[2].name"),
    ],
)
def test_path_text(path: Path, text: str) -> None:
    assert path_text(path) == text
