"""What was found out about cards, by their shape: kept for pods that devices see no difference between."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from kdsl.plan.devices.requests import Request
from kdsl.plan.devices.trying import Verdicts

Shape = tuple[Hashable, ...]
"""`Card.shape`."""
_BYTES: Final = 800
"""About what is kept of one shape for one request."""


@dataclass(slots=True)
class KnownCards:
    """What is known for pods of one kind: equal in all that devices read of pods, and in policy.

    By request there are verdicts of `fit`, by the requests of a container the keys of `order by`.
    """

    _verdicts: dict[Request, Verdicts] = field(default_factory=dict)
    _orders: dict[tuple[Request, ...], dict[Shape, tuple[Any, ...]]] = field(default_factory=dict)

    def verdicts(self, request: Request) -> Verdicts:
        return self._verdicts.setdefault(request, {})

    def orders(self, requests: tuple[Request, ...]) -> dict[Shape, tuple[Any, ...]]:
        """Return the keys of `order by` for the first request of a container that has all of these."""
        return self._orders.setdefault(requests, {})

    def __len__(self) -> int:
        """Return how much is known: so many shapes."""
        return sum(map(len, self._verdicts.values()))

    @property
    def nbytes(self) -> int:
        return _BYTES * len(self)
