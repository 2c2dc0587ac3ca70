"""How hypothesis runs: the same cases every time, so that a run means the same everywhere.

`HYPOTHESIS_PROFILE=explore make unit` draws new ones.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from kdsl.base.disk_cache import DiskCache

settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    """An empty cache on disk, with its key outside of its folder."""
    return DiskCache(tmp_path / "cache", tmp_path / "state" / "cache-key")
