"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class PlanCode(StrEnum):
    """Errors that only compiled rules have."""

    BACKOFF = "K0217"  # a `backoff` that is negative, has no value, or begins above its maximum
