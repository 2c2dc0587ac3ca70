"""Pods that request cards: what their containers request and get, and the answers about cards that such pods
share.

Most answers about a card depend on its shape, the facts that are read of it and its node, and the answers of
identity tests. A `CardMemo` keeps those.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from msgspec import Struct

from kdsl.cluster.devices.cards import DeviceGrant
from kdsl.cluster.devices.codec import encode
from kdsl.cluster.devices.pods import DeviceContainer, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import NO_QUOTA, Quota
from kdsl.eval.values import Value
from kdsl.plan.devices.choice import CardCharge
from kdsl.plan.devices.identity import IdentityAnswer


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """The request of one container for one kind of device. Fields are those of the `DeviceRequest` view."""

    kind: str
    count: int = 0
    memory: int = 0
    percent: int = 0
    cores: int = 0


Requests = tuple[Mapping[str, DeviceRequest], ...]
"""The requests of each container, by kind."""


@dataclass(frozen=True, slots=True)
class Allotment:
    """The cards of one kind for one container. Fields are those of the `DeviceAllotment` view."""

    container: DeviceContainer
    request: DeviceRequest
    cards: tuple[DeviceGrant, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """The cards of one kind for a pod: the view `DeviceAllocation`."""

    containers: tuple[Allotment, ...]

    @property
    def cards(self) -> tuple[DeviceGrant, ...]:
        return tuple(grant for allotment in self.containers for grant in allotment.cards)

    @property
    def text(self) -> str:
        return encode(allotment.cards for allotment in self.containers)


CardKey = tuple[Hashable, ...]
"""`Facts.key` of a card."""
CardClass = tuple[CardKey, IdentityAnswer, int]
"""The key of a card, the answers of identity tests about it, and the number of steps with one answer."""
SortKeys = dict[CardKey, tuple[Any, ...]]
_MEMO_BYTES: Final = 800
"""About the size of a memo entry: one card class and one request."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of steps that have one answer for all cards of a class: the reason against the cards, empty
    if they fit; the value of each `together by` until then; and the number of steps of the meter.
    """

    reason: str
    apart: tuple[Value, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Verdict(Outcome):
    """The outcome for cards of a class, with their charge."""

    charge: CardCharge


Verdicts = dict[CardClass, Verdict]


@dataclass(slots=True)
class CardMemo:
    """Answers about cards for pods of which devices read the same, and that have the same policy."""

    _verdicts: dict[tuple[DeviceRequest, Hashable], Verdicts] = field(default_factory=dict)
    _sort_keys: dict[tuple[Hashable, ...], SortKeys] = field(default_factory=dict)
    choosers: dict[tuple[Hashable, ...], int | None] = field(default_factory=dict)
    """The place of the chooser of nodes, None if it is not settled: see `InventoryClasses.choosers`."""
    read: dict[str, Hashable] = field(default_factory=dict)
    """For each kind, once computed: the part of the pod that identity tests read."""

    def verdicts(self, request: DeviceRequest, facts: Hashable = ()) -> Verdicts:
        """Return the verdicts on the cards of nodes with these facts."""
        return self._verdicts.setdefault((request, facts), {})

    def sort_keys(self, facts: Hashable, requests: tuple[DeviceRequest, ...]) -> SortKeys:
        """Return the keys of `order by` for the first of these requests; all are of one container."""
        return self._sort_keys.setdefault((facts, *requests), {})

    def __len__(self) -> int:
        kept = sum(map(len, self._verdicts.values())) + sum(map(len, self._sort_keys.values()))
        return len(self.choosers) + kept

    @property
    def nbytes(self) -> int:
        return _MEMO_BYTES * len(self)


_NO_MEMO: Final = CardMemo()


@dataclass(frozen=True, slots=True)
class Demand:
    """A pod that requests cards, after admission.

    Pods of one `signature`, which have the same `key` and an equal quota, get the same cards of a node. The
    `memo` is that of all pods with the same policy of which devices read the same: it only saves time.
    """

    pod: DevicePod
    requests: Requests
    policy: Policy
    quota: Quota = NO_QUOTA
    key: tuple[Hashable, ...] = ()
    memo: CardMemo = field(default_factory=CardMemo, compare=False, repr=False)

    def with_memo(self, memo: CardMemo) -> Demand:
        """Return the demand with another memo."""
        return Demand(self.pod, self.requests, self.policy, self.quota, self.key, memo)

    def without_usage(self) -> Demand:
        """Return the demand as if its namespace had no cards."""
        return replace(self, quota=Quota(self.quota.limits)) if self.quota.used else self

    @property
    def signature(self) -> Hashable:
        return self.key, self.quota.signature

    def without_memo(self) -> Demand:
        """Return the demand without known answers."""
        return self.with_memo(_NO_MEMO)

    @property
    def pod_signature(self) -> Hashable:
        """The part of `key` that pods with the same memo share."""
        return self.key[0]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of devices that the pod requests."""
        return tuple(dict.fromkeys([kind for requests in self.requests for kind in requests]))


REFUSED: Final = "refused"
"""The signature of pods that are refused on every node."""


class DemandKind(Struct, frozen=True, cache_hash=True):
    """The values of a sleeping pod that the queueing hint of devices reads. It keeps its hash: the signature
    of a demand is large.
    """

    namespace: str
    signature: Hashable
