"""How hypothesis runs: the same cases every time, so that a run means the same everywhere.

`HYPOTHESIS_PROFILE=explore make unit` draws new ones.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from kdsl.base.disk_cache import DiskCache

# Rules are compiled all the time here, to things that stay: looking for cycles among them so often as Python does of
# itself takes half of the time of the tests.
gc.set_threshold(50_000, 20, 20)

settings.register_profile(
    "repeatable",
    derandomize=True,
    max_examples=50,
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
