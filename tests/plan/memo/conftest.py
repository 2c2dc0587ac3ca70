"""Tests of what is kept begin with pods whose kinds were met before: of a kind that is new nothing is kept."""

from __future__ import annotations

import pytest
from kdsl.plan.memo.met import Met


@pytest.fixture(autouse=True)
def kinds_were_met_before(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every kind of pod be one that comes again, but in the tests of joined rules, which meet new ones."""
    if not request.module.__name__.endswith((".test_joined", ".test_new_kinds")):
        monkeypatch.setattr(Met, "meet", lambda self, signature: True)
