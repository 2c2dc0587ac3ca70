"""The chooser `rank`: the cards that are best by their own merits."""

from __future__ import annotations

from kdsl.plan.devices.choice import Choice, Chosen, Refusal, too_few


def rank(choice: Choice) -> Chosen | Refusal:
    """Take the cards with the smallest lists `by`, compared item by item; equal cards in order of trying.

    Where just enough cards fit their order stays that of trying.
    """
    refusal = too_few(choice)
    if refusal is not None or len(choice.fitting) == choice.count:
        return refusal or choice.fitting
    ranked = sorted(choice.fitting, key=lambda one: tuple(choice.read("by", one.card)))
    return ranked[: choice.count]
