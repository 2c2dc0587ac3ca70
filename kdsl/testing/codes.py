"""The codes of errors in test files. `docs/test-rules.md` lists them.

Text that is not YAML has a code of `kdsl.lang.codes`.
"""

from __future__ import annotations

from enum import StrEnum


class TestCode(StrEnum):
    """K09: test files, and their subjects."""

    __test__ = False  # pytest must not collect it

    UNREADABLE = "K0901"
    NOT_ONE = "K0902"
    UNKNOWN_KEY = "K0903"
    MISSING_KEY = "K0904"
    WRONG_VALUE = "K0905"
    NO_EXPECTATION = "K0906"
    UNKNOWN_FIXTURE = "K0907"
    UNKNOWN_RULE = "K0908"
    BAD_FIXTURE = "K0909"
    DUPLICATE_NAME = "K0910"
    BAD_MATRIX = "K0911"
    BAD_LAW = "K0912"
    NO_MANIFEST = "K0913"
    NO_TESTS = "K0914"
