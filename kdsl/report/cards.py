"""The cards of a cluster after a run: what of them is taken, by whom, and how much of the rest is of use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.base.visible import visible_lines
from kdsl.cluster.devices.cards import Card, Tenant
from kdsl.plan.devices.requests import Request
from kdsl.report.decisions import Json
from kdsl.report.tables import table

SHADES: Final = "·▁▂▃▄▅▆▇█"
"""How full a card is, from idle to full."""
BROKEN: Final = "x"
LEGEND: Final = f"each character is a card: {SHADES[0]} idle to {SHADES[-1]} full, {BROKEN} broken"
SHOWN: Final = 40
"""How many nodes the text lists; `wide` lists all."""


@dataclass(frozen=True, slots=True)
class CardReport:
    """The cards by node, and what the pods of the run ask for of one kind of card: how many pods each."""

    nodes: Mapping[str, Sequence[Card]]
    demands: Mapping[Request, int]

    @property
    def cards(self) -> list[Card]:
        return [card for cards in self.nodes.values() for card in cards]

    @property
    def allocated(self) -> float:
        """The share of all cards that is taken, from 0 to 1."""
        cards = self.cards
        return sum(1 - free(card) for card in cards) / len(cards) if cards else 0.0

    @property
    def fragmentation(self) -> float:
        """The share of what is free that a pod of the run, drawn at random, could not use, from 0 to 1.

        After "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
        (USENIX ATC 2023), for cards alone: a card that has less free than the pod needs of one is of no use
        to it, and a node that has too few other cards is of none at all.
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


def count_demands(requests: Iterable[Request]) -> dict[Request, int]:
    """Count requests that ask for the same."""
    return dict(Counter(requests))


def free(card: Card) -> float:
    """Return the share of a card that is free: of compute or memory, whichever has less; 0 without a slot."""
    if not card.healthy or card.used >= card.slots:
        return 0.0
    parts = ((card.used_cores, card.cores), (card.used_memory, card.memory))
    return max(0.0, 1 - max((used / whole for used, whole in parts if whole > 0), default=0.0))


def summary_lines(report: CardReport) -> list[str]:
    """Return what the cards came to, in one line."""
    return [
        f"{len(report.cards):,} cards, {report.allocated:.1%} allocated, "
        f"{report.fragmentation:.1%} of the rest fragmented"
    ]


def cards_text(report: CardReport, wide: bool = False) -> str:
    """Return a map of all cards, then each card with what is taken and who has it."""
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
    """Return what of slots, memory and compute is taken of some cards."""
    return [
        f"{sum(card.used for card in cards)}/{sum(card.slots for card in cards)}",
        f"{sum(card.used_memory for card in cards)}/{sum(card.memory for card in cards)}",
        f"{sum(card.used_cores for card in cards)}/{sum(card.cores for card in cards)}",
    ]


def _tenant(tenant: Tenant) -> str:
    return f"{tenant.namespace}/{tenant.name} ({tenant.memory} MiB, {tenant.cores})"


def _lost(cards: Sequence[Card], request: Request) -> float:
    """Return how many cards' worth of what is free on a node a request cannot use."""
    word = request.kind.lower()
    shares = [(free(card), _needed(card, request)) for card in cards if word in card.type.lower()]
    usable = [share for share, needed in shares if share >= needed]
    total = sum(map(free, cards))
    return total - sum(usable) if len(usable) >= request.count else total


def _needed(card: Card, request: Request) -> float:
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
    """Return what a card has, and what of it is taken."""
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
