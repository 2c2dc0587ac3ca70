"""Amounts of resources as people write them."""

from __future__ import annotations

from kdsl.base.quantity import NANOS_PER_UNIT, Quantity, QuantityFormat
from kdsl.base.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY

_MEBI = 2**20
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount_text(resource: str, amount: int) -> str:
    """Return a canonical amount for people: cores for cpu, Ki/Mi/Gi for bytes, a count for the rest."""
    if resource == CPU:
        return f"{amount / 1000:,.1f}"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES):
        return bytes_text(amount)
    return f"{amount:,}"


def quantity_text(quantity: Quantity, exact: bool = False) -> str:
    """Return a quantity as people write it: `7000`, `1500m`, `3Gi`; odd bytes in Mi, unless `exact`."""
    units, rest = divmod(abs(quantity.nanos), NANOS_PER_UNIT)
    is_bytes = quantity.format is QuantityFormat.BINARY_SI and not rest
    if exact or not is_bytes or units < _MEBI or units % _MEBI == 0:
        return quantity.written
    places = f"{units / _MEBI:.2f}".rstrip("0").rstrip(".")
    return f"{'-' if quantity.nanos < 0 else ''}{places}Mi"


def bytes_text(amount: int) -> str:
    """Return a number of bytes with a binary suffix and at most one decimal."""
    value = float(amount)
    for suffix in _BINARY:
        if abs(value) < 1024 or suffix == _BINARY[-1]:
            return f"{value:,.0f}{suffix}" if suffix == "" or value >= 100 else f"{value:,.1f}{suffix}"
        value /= 1024
    raise AssertionError("unreachable: the last suffix takes every value")
