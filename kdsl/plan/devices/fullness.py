"""The fill level of cards and nodes: HAMi's, in single precision.

It decides ties, so every operation is done in the order and the precision of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.policy import Weights
from kdsl.plan.devices.demand import DeviceRequest

_SCALE: Final = np.float32(10)
_NOTHING: Final = np.float32(0)


def node_score(cards: Sequence[Card]) -> np.float32:
    """Return the fill level of the cards of a node together: 10 for each of slots, compute and memory."""
    slots = cores = memory = used_slots = used_cores = used_memory = 0
    for card in cards:
        slots += card.slots
        cores += card.cores
        memory += card.memory
        used_slots += card.used
        used_cores += card.used_cores
        used_memory += card.used_memory
    totals, used = (slots, cores, memory), (used_slots, used_cores, used_memory)
    score: np.float32 = _score((1, 1, 1), used, totals) if all(totals) else _NOTHING
    return score


def card_score(card: Card, requests: Iterable[DeviceRequest], weights: Weights) -> np.float32:
    """Return the weighted fill level of a card with the requests for exactly its type.

    Cards with their model as type count without requests, as in HAMi.
    """
    totals = (card.slots, card.cores, card.memory)
    if not all(totals):
        return _NOTHING
    asked = [request for request in requests if request.kind == card.type]
    slots = len(asked) + card.used
    cores = sum(request.cores for request in asked) + card.used_cores
    memory = sum(_memory(request, card.memory) for request in asked) + card.used_memory
    score: np.float32 = _kept_score(
        (weights.slot, weights.core, weights.memory), (slots, cores, memory), totals
    )
    return score


def card_scores(
    amounts: Callable[[str], NDArray[np.int64]],
    is_asked: NDArray[np.bool_],
    request: DeviceRequest,
    weights: Weights,
) -> NDArray[np.float64]:
    """Return the `card_score` of many cards with one request, which counts for the cards that are asked.

    `amounts` returns an attribute of each card.
    """
    slots, cores, memory = totals = (amounts("slots"), amounts("cores"), amounts("memory"))
    used = (
        is_asked + amounts("used"),
        is_asked * request.cores + amounts("used_cores"),
        is_asked * _memory(request, memory) + amounts("used_memory"),
    )
    with np.errstate(all="ignore"):
        scores = _score((weights.slot, weights.core, weights.memory), used, totals)
    has_all = (slots != 0) & (cores != 0) & (memory != 0)
    return np.where(has_all, scores, _NOTHING).astype(np.float64)


def _score(weights: Sequence[int], used: Sequence[Any], totals: Sequence[Any]) -> Any:
    """Return the weighted sum of shares of slots, compute and memory, of one card or of many."""
    one, two, three = [
        np.float32(weight) * (np.float32(part) / np.float32(whole))
        for weight, part, whole in zip(weights, used, totals, strict=True)
    ]
    return np.float32(_SCALE * (one + two + three))


_kept_score = lru_cache(maxsize=65536)(_score)
"""Few different cards occur."""


def _memory(request: DeviceRequest, memory: Any) -> Any:
    """Return the requested part of the memory of a card, or of many."""
    if request.percent in (0, 101):
        return request.memory
    share = memory * request.percent
    # Toward zero, as in Go.
    return share // 100 + ((share < 0) & (share % 100 != 0))
