"""How full cards and nodes are, and the order in which cards are tried: HAMi's, in single precision.

Scores decide ties, so every operation is done in the order and the precision of the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.policy import SPREAD, Policy, Weights
from kdsl.plan.devices.requests import Request

_SCALE: Final = np.float32(10)
_NOTHING: Final = np.float32(0)
_BINPACK: Final = "binpack"
_NUMA: Final = "numa"
_MUTEX: Final = "mutex"


def node_score(cards: Sequence[Card]) -> np.float32:
    """Return how full the cards of a node are together: 10 for each of slots, compute and memory."""
    slots = cores = memory = used_slots = used_cores = used_memory = 0
    for card in cards:
        slots += card.slots
        cores += card.cores
        memory += card.memory
        used_slots += card.used
        used_cores += card.used_cores
        used_memory += card.used_memory
    totals, used = (slots, cores, memory), (used_slots, used_cores, used_memory)
    if not all(totals):
        return _NOTHING
    one, two, three = (np.float32(part) / np.float32(whole) for part, whole in zip(used, totals, strict=True))
    return np.float32(_SCALE * (one + two + three))


def card_score(card: Card, requests: Iterable[Request], weights: Weights) -> np.float32:
    """Return how full a card would be with requests that name exactly its type, as weighted.

    On cards that have their model as type this is how full the card is: so it is in HAMi.
    """
    if not card.slots or not card.cores or not card.memory:
        return _NOTHING
    asked = [request for request in requests if request.kind == card.type]
    slots = len(asked) + card.used
    cores = sum(request.cores for request in asked) + card.used_cores
    memory = sum(_memory(request, card) for request in asked) + card.used_memory
    parts = (
        (weights.slot, slots, card.slots),
        (weights.core, cores, card.cores),
        (weights.memory, memory, card.memory),
    )
    return _weighted(parts)


@lru_cache(maxsize=65536)
def _weighted(parts: tuple[tuple[int, int, int], ...]) -> np.float32:
    """Return the weighted sum of shares; the same few come up again and again."""
    one, two, three = (
        np.float32(weight) * (np.float32(part) / np.float32(whole)) for weight, part, whole in parts
    )
    return np.float32(_SCALE * (one + two + three))


def _memory(request: Request, card: Card) -> int:
    if request.percent in (0, 101):
        return request.memory
    product = card.memory * request.percent
    return product // 100 if product >= 0 else -(-product // 100)


def arrange(cards: Sequence[Card], scores: Mapping[str, float], policy: Policy) -> list[Card]:
    """Put cards into the order of a policy, the last to be tried first; equal ones stay as they were."""
    names = policy.device.split(",")
    if len(names) > 1 or names == [_NUMA]:
        return sorted(cards, key=lambda card: _listed(card, scores[card.id], names, policy.numa_bind))
    return sorted(cards, key=lambda card: _single(card, scores[card.id], policy))


def _single(card: Card, score: float, policy: Policy) -> tuple[Any, ...]:
    if policy.device == _MUTEX:
        return (-card.used, card.numa)
    if policy.numa_bind:
        return (-card.numa, score) if policy.device == _BINPACK else (card.numa, -score)
    return (score, card.numa) if policy.device == _BINPACK else (-score, card.numa)


def _listed(card: Card, score: float, names: Sequence[str], numa_bind: bool) -> tuple[Any, ...]:
    """Return the key of a list of policies, each counted where it stands first."""
    known = {_BINPACK: score, SPREAD: -score, _NUMA: card.numa}
    keys = [known[name] for name in dict.fromkeys(name.strip() for name in names) if name in known]
    keys = keys or [-score]
    return (*([card.numa] if numa_bind else []), *keys, card.index)
