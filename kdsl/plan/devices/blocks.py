"""Choosers of cards that must not be torn apart, or only late: `blocks` and `zones`."""

from __future__ import annotations

from itertools import chain

from kdsl.eval.values import Value
from kdsl.plan.devices.choice import Candidate, Choice, Chosen, Refusal, too_few


def blocks(choice: Choice) -> Chosen | Refusal:
    """Take whole blocks of `size` cards with the same `block`, in the order of their first cards.

    A refusal counts the cards in whole blocks, out of those that are asked for.
    """
    size = choice.read("size")
    whole = [members for members in _together(choice, "block").values() if len(members) == size]
    needed = whole[: choice.count // size] if size > 0 else []
    if len(needed) * size != choice.count:
        return Refusal(len(whole) * size, total=choice.count)
    return list(chain.from_iterable(needed))


def zones(choice: Choice) -> Chosen | Refusal:
    """Take cards of the smallest `zone` that has enough; else of all zones, the smallest first.

    Cards in zones of 0 or less stand for themselves and come last. Of zones of one size the one whose first
    card is tried first comes first.
    """
    refusal = too_few(choice)
    if refusal is not None or len(choice.fitting) == choice.count:
        return refusal or choice.fitting
    members = _together(choice, "zone")
    real = sorted((cards for zone, cards in members.items() if zone > 0), key=len)
    alone = [one for one in choice.fitting if choice.read("zone", one.card) <= 0]
    enough = next(
        (cards for cards in real if len(cards) >= choice.count), [*chain.from_iterable(real), *alone]
    )
    return enough[: choice.count]


def _together(choice: Choice, field: str) -> dict[Value, list[Candidate]]:
    """Return the cards that fit by the value of a field, in order of trying."""
    members: dict[Value, list[Candidate]] = {}
    for one in choice.fitting:
        members.setdefault(choice.read(field, one.card), []).append(one)
    return members
