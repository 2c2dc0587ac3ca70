"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class LabCode(StrEnum):
    """K117x: results of experiments."""

    RESULTS = "K1175"  # a folder or file of results that cannot be read
    IN_USE = "K1176"  # a folder of results that another process is writing to
