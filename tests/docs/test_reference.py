"""The reference is what the data say today."""

from __future__ import annotations

from kdsl.check.views.view import load_views

from tests.docs.reference import FILE, reference


def test_the_reference_is_fresh() -> None:
    stale = "stale: write it with `python -m tests.docs.reference`"
    assert FILE.read_text(encoding="utf-8") == reference(load_views()), stale
