"""The cards of a cluster after a run: their use by pods, and the usable part of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.base.visible import visible_lines
from kdsl.cluster.devices.cards import Card, Tenant
from kdsl.plan.devices.demand import DeviceRequest
from kdsl.report.decisions import Json
from kdsl.report.tables import plural, table

SHADES: Final = "·▁▂▃▄▅▆▇█"
"""Symbols for the use of a card, from idle to full."""
BROKEN: Final = "x"
LEGEND: Final = f"each character is a card: {SHADES[0]} idle to {SHADES[-1]} full, {BROKEN} broken"
SHOWN: Final = 40
"""The most listed nodes in text; `wide` lists all."""


@dataclass(frozen=True, slots=True)
class CardReport:
    """The cards by node, and the number of pods of the run by their request for one kind of card."""

    nodes: Mapping[str, Sequence[Card]]
    demands: Mapping[DeviceRequest, int]

    @property
    def cards(self) -> list[Card]:
        return [card for cards in self.nodes.values() for card in cards]

    @property
    def allocated(self) -> float:
        """Return the allocated share of all cards, from 0 to 1."""
        cards = self.cards
        return sum(1 - free(card) for card in cards) / len(cards) if cards else 0.0

    @property
    def fragmentation(self) -> float:
        """Return the share of free capacity that a random pod of the run could not use, from 0 to 1.

        After "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
        (USENIX ATC 2023), for cards only: a card with less free capacity than the pod needs counts as
        unusable, and so does a node with too few usable cards.
        """
        total = sum(map(free, self.cards))
        pods = sum(self.demands.values())
        if not total or not pods:
            return 0.0
        lost = sum(
            count * sum(_lost(cards, request) for cards in self.nodes.values())
            for request, count in self.demands.items()
        )
        return lost / pods / total

    def document(self) -> dict[str, Json]:
        """Return the cards as JSON."""
        return {
            "allocatedShare": round(self.allocated, 6),
            "fragmentation": round(self.fragmentation, 6),
            "nodes": [
                {"node": node, "cards": [_card_document(card) for card in cards]}
                for node, cards in self.nodes.items()
            ],
        }


def count_demands(requests: Iterable[DeviceRequest]) -> dict[DeviceRequest, int]:
    """Count pods by request."""
    return dict(Counter(requests))


def free(card: Card) -> float:
    """Return the free share of a card: of compute or memory, whichever is less; 0 without a slot."""
    if not card.healthy or card.used >= card.slots:
        return 0.0
    parts = ((card.used_cores, card.cores), (card.used_memory, card.memory))
    return max(0.0, 1 - max((used / whole for used, whole in parts if whole > 0), default=0.0))


def summary_lines(report: CardReport) -> list[str]:
    """Return a one-line summary of the cards."""
    return [
        f"{plural(len(report.cards), 'card')}, {report.allocated:.1%} allocated, "
        f"{report.fragmentation:.1%} of the rest fragmented"
    ]


def cards_text(report: CardReport, wide: bool = False) -> str:
    """Return a map of all cards, then each card with its use and its pods."""
    nodes = list(report.nodes.items())
    shown = nodes if wide else nodes[:SHOWN]
    totals = [[node, "".join(map(_shade, cards)), *_amounts(cards)] for node, cards in shown]
    lines = table(["NODE", "CARDS", "SLOTS", "MEMORY", "CORES"], totals, right={2, 3, 4})
    rows = [
        [
            node,
            card.id,
            card.type if card.healthy else f"{card.type} (broken)",
            *_amounts([card]),
            ", ".join(map(_tenant, card.tenants)),
        ]
        for node, cards in shown
        for card in cards
        if wide or card.tenants
    ]
    if rows:
        header = ["NODE", "CARD", "TYPE", "SLOTS", "MEMORY", "CORES", "PODS"]
        lines += ["", *table(header, rows, right={3, 4, 5})]
    if len(nodes) > len(shown):
        lines += [f"… and {len(nodes) - len(shown):,} more nodes (-o wide lists all)"]
    return visible_lines([*lines, "", LEGEND, *summary_lines(report)])


def _amounts(cards: Sequence[Card]) -> list[str]:
    """Return the used slots, memory and compute of some cards."""
    return [
        f"{sum(card.used for card in cards)}/{sum(card.slots for card in cards)}",
        f"{sum(card.used_memory for card in cards)}/{sum(card.memory for card in cards)}",
        f"{sum(card.used_cores for card in cards)}/{sum(card.cores for card in cards)}",
    ]


def _tenant(tenant: Tenant) -> str:
    return f"{tenant.namespace}/{tenant.name} ({tenant.memory} MiB, {tenant.cores})"


def _lost(cards: Sequence[Card], request: DeviceRequest) -> float:
    """Return the free capacity of a node, in cards, that a request cannot use."""
    word = request.kind.lower()
    shares = [(free(card), _needed(card, request)) for card in cards if word in card.type.lower()]
    usable = [share for share, needed in shares if share >= needed]
    total = sum(map(free, cards))
    return total - sum(usable) if len(usable) >= request.count else total


def _needed(card: Card, request: DeviceRequest) -> float:
    """Return the share of a card that a request takes."""
    memory = request.memory or (card.memory * request.percent // 100 if request.percent <= 100 else 0)
    parts = ((request.cores, card.cores), (memory, card.memory))
    return max((wanted / whole for wanted, whole in parts if whole > 0), default=0.0)


def _shade(card: Card) -> str:
    if not card.healthy:
        return BROKEN
    taken = 1 - free(card)
    return SHADES[min(len(SHADES) - 1, -int(-taken * (len(SHADES) - 1) // 1))]


def usage_document(card: Card) -> dict[str, Json]:
    """Return the capacity and the use of a card."""
    return {
        "slots": card.slots,
        "usedSlots": card.used,
        "memory": card.memory,
        "usedMemory": card.used_memory,
        "cores": card.cores,
        "usedCores": card.used_cores,
    }


def _card_document(card: Card) -> dict[str, Json]:
    return {
        "id": card.id,
        "type": card.type,
        "healthy": card.healthy,
        **usage_document(card),
        "pods": [
            {"pod": f"{each.namespace}/{each.name}", "memory": each.memory, "cores": each.cores}
            for each in card.tenants
        ],
    }
