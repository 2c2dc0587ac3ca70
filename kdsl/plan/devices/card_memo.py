"""The answers about cards for pods of one signature.

Most answers about a card depend on its shape and the answers of identity tests alone. A `CardMemo` keeps
those.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kdsl.cluster.devices.cards import Shape
from kdsl.eval.values import Value
from kdsl.plan.devices.choice import CardCharge
from kdsl.plan.devices.identity import IdentityAnswer
from kdsl.plan.devices.requests import DeviceRequest

CardClass = tuple[Shape, IdentityAnswer, bool]
"""The shape of a card, the answers of identity tests about it, and whether there are quotas."""
SortKeys = dict[Shape, tuple[Any, ...]]
_MEMO_BYTES: Final = 800
"""About the size of a memo entry: one card class and one request."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome of cards of one class that does not depend on other cards: the reason against them, empty
    if they fit; the value of each `together by` until then; and the steps of all of it.
    """

    reason: str
    apart: tuple[Value, ...]
    steps: int


@dataclass(slots=True)
class CardVerdict:
    """The memo of cards of one class: the charge, the answer of each group of tests, and their steps."""

    charge: CardCharge
    steps: int
    answers: list[tuple[Value, int] | None]
    settled: Settled | None = None


Verdicts = dict[CardClass, CardVerdict]


@dataclass(slots=True)
class CardMemo:
    """Answers about cards for pods of one signature."""

    _verdicts: dict[DeviceRequest, Verdicts] = field(default_factory=dict)
    _sort_keys: dict[tuple[DeviceRequest, ...], SortKeys] = field(default_factory=dict)
    choosers: dict[tuple[DeviceRequest | str, tuple[Shape, ...]], int | None] = field(default_factory=dict)
    """The choosers of `CardCounts`, by request (or kind, if they do not read it) and shapes of idle cards."""

    def verdicts(self, request: DeviceRequest) -> Verdicts:
        return self._verdicts.setdefault(request, {})

    def sort_keys(self, requests: tuple[DeviceRequest, ...]) -> SortKeys:
        """Return the keys of `order by` for the first of these requests; all are of one container."""
        return self._sort_keys.setdefault(requests, {})

    def __len__(self) -> int:
        return len(self.choosers) + sum(map(len, self._verdicts.values()))

    @property
    def nbytes(self) -> int:
        return _MEMO_BYTES * len(self)
