"""Exact amounts of capacity and counters, with errors of allocation for those that cannot be held."""

from __future__ import annotations

from kdsl.base.quantity import Quantity
from kdsl.cluster.api.objects import WrittenQuantity, quantity

from kdsl_plugins.dynamic_resources.errors import AllocationError


def read(written: WrittenQuantity, what: str) -> Quantity:
    """Parse a quantity; `what` names its place in the error for an invalid one."""
    try:
        return quantity(written)
    except (ValueError, OverflowError) as error:
        raise AllocationError(f"{what}: {error}") from error


def total(left: Quantity, right: Quantity, what: str) -> Quantity:
    """Return the sum of two amounts."""
    try:
        return left + right
    except OverflowError as error:
        raise AllocationError(f"{what}: {error}") from error


def rest(left: Quantity, right: Quantity, what: str) -> Quantity:
    """Return the difference of two amounts, which may be below zero."""
    return total(left, -right, what)
