"""Each test makes several schedulers of all shipped profiles, which are in cycles: collect them in time."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_garbage_of_other_tests() -> Iterator[None]:
    yield
    gc.collect()
