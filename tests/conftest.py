"""How hypothesis runs: the same cases every time, so that a run means the same everywhere.

`HYPOTHESIS_PROFILE=explore make unit` draws new ones.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from kdsl.base.disk_cache import DiskCache
from kdsl.base.garbage import settled_heap

# Tests start some hundred programs. Each would compile all modules of kdsl again, which takes longer than most commands.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Rules are compiled all the time here, to objects that stay. Python's own thresholds would search them for cycles in
# half of the time of the tests.
gc.set_threshold(50_000, 20, 20)
GARBAGE: Final = 400 * 1024 * 1024
"""The bytes by which a process may grow before the garbage of its tests is collected."""
COLLECTED: Final = pytest.StashKey[int]()
"""The memory of the process after its last collection."""
_PAGE: Final = resource.getpagesize()

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


@pytest.fixture(autouse=True)
def young_heap(pytestconfig: pytest.Config) -> Iterator[None]:
    """Exclude the objects of earlier tests from garbage collection: searching all of them takes seconds."""
    with settled_heap():
        yield
    if _resident_bytes() > pytestconfig.stash.get(COLLECTED, 0) + GARBAGE:
        gc.collect()
        pytestconfig.stash[COLLECTED] = _resident_bytes()


def _resident_bytes() -> int:
    """Return the memory of this process; 0 where Linux does not tell."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    """An empty cache on disk, with its key outside of its folder."""
    return DiskCache(tmp_path / "cache", tmp_path / "state" / "cache-key")
