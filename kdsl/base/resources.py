"""Amounts of named resources, as pods request them and nodes offer them.

Snapshot, back ends and reports use this module.

A resource is counted in its canonical unit, as in kube-scheduler: cpu in thousandths, everything else in
whole units, both rounded up and held as int64. A resource that is not named is zero, so no default is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from kdsl.base.interning import MAX_SHARED, interning
from kdsl.base.quantity import (
    INT64_MAX,
    NANOS_PER_MILLI,
    NANOS_PER_UNIT,
    Quantity,
    QuantityFormat,
)

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
HUGE_PAGES: Final = "hugepages-"
"""The beginning of the names of huge pages; their size follows."""

_LEADING: Final = {CPU: 0, MEMORY: 1, EPHEMERAL_STORAGE: 2}
_BINARY: Final = (MEMORY, EPHEMERAL_STORAGE, HUGE_PAGES)


def is_native(name: str) -> bool:
    """Return whether a resource is one of Kubernetes itself."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended one: not native, nor the quota of one."""
    return not (is_native(name) or name.startswith("requests."))


def canonical(name: str, quantity: Quantity) -> int:
    """Return `quantity` in the canonical unit of `name`, rounded up; OverflowError beyond int64."""
    amount = canonical_nanos(name, quantity.nanos)
    if not -INT64_MAX <= amount <= INT64_MAX:
        raise OverflowError(f"resource {name} exceeds 2^63 - 1 in its canonical unit")
    return amount


def canonical_nanos(name: str, nanos: int) -> int:
    """Return `nanos` thousand-millionths of a unit in the canonical unit of `name`, rounded away
    from zero.
    """
    unit = NANOS_PER_MILLI if name == CPU else NANOS_PER_UNIT
    return -(-nanos // unit) if nanos >= 0 else nanos // unit


def capped(amount: int) -> int:
    """Return `amount`, or the nearest bound of int64."""
    # The hot path: nearly every amount is within the bounds.
    return amount if -INT64_MAX <= amount <= INT64_MAX else INT64_MAX if amount > 0 else -INT64_MAX


def quantity_of(name: str, amount: int) -> Quantity:
    """Return `amount` canonical units of resource `name` as a quantity. Bytes print in Ki, Mi, Gi."""
    if name == CPU:
        return Quantity(amount * NANOS_PER_MILLI)
    binary = name.startswith(_BINARY)
    return Quantity(
        amount * NANOS_PER_UNIT, QuantityFormat.BINARY_SI if binary else QuantityFormat.DECIMAL_SI
    )


def resource_order(name: str) -> tuple[int, str]:
    """Return the key that sorts resources: cpu, memory, ephemeral-storage, then the rest by name."""
    return (_LEADING.get(name, 3), name)


class Resources:
    """An immutable map from resource names to canonical amounts, in `resource_order`, without zeros.

    It is total: a missing resource is zero. Amounts may be negative. `+` and `-` raise OverflowError beyond
    int64. `plus` and `minus` are for running totals, which stay exact at any size, so that subtracting an
    added amount restores the former total. `amount`, `items` and `[]` return at most an int64.
    """

    __slots__ = ("_amounts", "_hash", "_quantities")

    _amounts: dict[str, int]
    _hash: int | None
    _quantities: dict[str, Quantity]

    def __init__(self, amounts: Mapping[str, int] = {}) -> None:
        _check_bounds(amounts)
        self._amounts = {name: amounts[name] for name in sorted(amounts, key=resource_order) if amounts[name]}
        self._quantities = {}
        self._hash = None

    @staticmethod
    def from_quantities(quantities: Mapping[str, Quantity]) -> Resources:
        """Convert quantities to the canonical units of their resources, each rounded up."""
        return Resources({name: canonical(name, quantity) for name, quantity in quantities.items()})

    def amount(self, name: str) -> int:
        """Return the amount of resource `name` in its canonical unit."""
        return capped(self._amounts.get(name, 0))

    def amounts(self) -> Mapping[str, int]:
        """Return the amounts that are not zero, in canonical units and in order; the caller must not write to
        it.

        Amounts of a running total may be beyond int64.
        """
        return self._amounts

    def items(self) -> Iterator[tuple[str, Quantity]]:
        """Yield the resources that are not zero: cpu, memory, ephemeral-storage, then the rest by name."""
        for name in self._amounts:
            yield name, self[name]

    def max(self, other: Resources) -> Resources:
        """Return the larger amount of each resource."""
        names = self._amounts.keys() | other._amounts.keys()
        return Resources({name: max(self.amount(name), other.amount(name)) for name in names})

    def __getitem__(self, name: str) -> Quantity:
        # Rules read the same few amounts of a node repeatedly.
        quantity = self._quantities.get(name)
        if quantity is None:
            quantity = self._quantities[name] = quantity_of(name, self.amount(name))
        return quantity

    def __contains__(self, name: object) -> bool:
        return name in self._amounts

    def __iter__(self) -> Iterator[str]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)

    def plus(self, other: Resources) -> Resources:
        """Return the running total with `other` added."""
        return _total(self, other)

    def minus(self, other: Resources) -> Resources:
        """Return the running total with `other` subtracted."""
        return self._combine(other, -1)

    def __add__(self, other: Resources) -> Resources:
        total = self._combine(other, 1)
        _check_bounds(total._amounts)
        return total

    def __sub__(self, other: Resources) -> Resources:
        rest = self._combine(other, -1)
        _check_bounds(rest._amounts)
        return rest

    def _combine(self, other: Resources, sign: int) -> Resources:
        amounts = self._amounts.copy()
        is_ordered = True
        for name, amount in other._amounts.items():
            old = amounts.get(name)
            new = (old or 0) + sign * amount
            if new:
                is_ordered = is_ordered and old is not None
                amounts[name] = new
            else:
                # INVARIANT: neither map holds zeros, so a sum is zero only where both named the resource.
                del amounts[name]
        if not is_ordered:
            amounts = {name: amounts[name] for name in sorted(amounts, key=resource_order)}
        result = Resources.__new__(Resources)
        result._amounts = amounts
        result._quantities = {}
        result._hash = None
        return result

    def __getstate__(self) -> dict[str, int]:
        # Without the hash: texts have other hashes in another process.
        return self._amounts

    def __setstate__(self, state: dict[str, int]) -> None:
        self._amounts = state
        self._quantities = {}
        self._hash = None

    def __eq__(self, other: object) -> bool:
        return self._amounts == other._amounts if isinstance(other, Resources) else NotImplemented

    def __hash__(self) -> int:
        # The hot path: requests and allocatable amounts are keys that identify signatures and node classes.
        if self._hash is None:
            self._hash = hash(tuple(self._amounts.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"Resources({', '.join(f'{name}={quantity}' for name, quantity in self.items())})"


shared: Final = interning(Resources)
"""Returns one object for equal amounts, so that each amount is hashed only once."""


@lru_cache(MAX_SHARED)
def _total(one: Resources, other: Resources) -> Resources:
    # Equal pods come repeatedly to nodes with equal sums.
    return one._combine(other, 1)


def _check_bounds(amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        if not -INT64_MAX <= amount <= INT64_MAX:
            raise OverflowError(f"resource {name} exceeds 2^63 - 1 in its canonical unit")


NOTHING: Final = Resources()
