"""The signatures of these tests count as seen before: answers for a new signature are not kept."""

from __future__ import annotations

from typing import TypeVar

import pytest
from kdsl.base.bounded_dict import BoundedDict
from kdsl.plan.memo import signature_memo

K = TypeVar("K")
V = TypeVar("V")


class _HasAll(BoundedDict[K, V]):
    def __contains__(self, key: object) -> bool:
        return True


@pytest.fixture(autouse=True)
def signatures_were_seen_before(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every signature as seen, except in tests that need new ones."""
    if not request.module.__name__.endswith((".test_joined", ".test_new_signatures", ".test_rule_memo")):
        monkeypatch.setattr(signature_memo, "BoundedDict", _HasAll)
