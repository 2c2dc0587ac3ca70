"""Amounts of resources as people write them."""

from __future__ import annotations

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount_text(resource: str, amount: int) -> str:
    """Return a canonical amount for people: cores for cpu, Ki/Mi/Gi for bytes, a count for the rest."""
    if resource == "cpu":
        return f"{amount / 1000:,.1f}"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return bytes_text(amount)
    return f"{amount:,}"


def bytes_text(amount: int) -> str:
    """Return a number of bytes with a binary suffix and at most one decimal."""
    value = float(amount)
    for suffix in _BINARY:
        if abs(value) < 1024 or suffix == _BINARY[-1]:
            return f"{value:,.0f}{suffix}" if suffix == "" or value >= 100 else f"{value:,.1f}{suffix}"
        value /= 1024
    raise AssertionError("unreachable: the last suffix takes every value")
