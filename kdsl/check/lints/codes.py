"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class IgnoreCode(StrEnum):
    """K080x: comments that silence lints. Each lint has its own code."""

    BAD_IGNORE = "K0802"  # a comment without a code or a reason
    UNUSED_IGNORE = "K0803"  # a comment that silences nothing
