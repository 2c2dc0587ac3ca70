"""The chooser `wings`: cards of a node with two halves that are better linked inside than across."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kdsl.plan.devices.choice import Candidate, Choice, Chosen, Refusal

Group = Sequence[int]
"""Indexes of cards."""


def wings(choice: Choice) -> Chosen | Refusal:
    """Take cards of one wing, else a group across both.

    The last `size` of the cards to be tried are the left wing, the others the right one. `fill` says how many
    cards of a wing should fit, the best number first: the first wing that has it, the left before the right,
    gives its cards, the last to be tried first. Where no wing does, `groups` says which cards may serve
    together, by index.

    A refusal counts what was rejected for a reason that is `told`, and nothing else; else 1 for its own.
    """
    chosen = _of_one_wing(choice) or _across(choice)
    if chosen:
        return chosen
    told = {reason: choice.rejected[reason] for reason in choice.read("told") if choice.rejected.get(reason)}
    return Refusal(counts=told or {"": 1})


def _of_one_wing(choice: Choice) -> Chosen:
    size = choice.read("size")
    first_right = len(choice.cards) - size
    backwards = choice.fitting[::-1]
    left = [one for one in backwards if one.place >= first_right]
    right = [one for one in backwards if one.place < first_right]
    for number in choice.read("fill"):
        for wing in (left, right):
            if len(wing) == number >= choice.count:
                return wing[: choice.count]
    return ()


def _across(choice: Choice) -> Chosen:
    """Take the first group that leaves cards which can serve together, else the last that fits."""
    groups, size = choice.read("groups"), choice.read("size")
    by_index = {one.card.index: one for one in choice.fitting}
    fitting = [group for group in groups if len(group) == choice.count and set(group) <= by_index.keys()]
    kept = (group for group in fitting if _serve(by_index.keys() - set(group), groups, size))
    best = next(kept, fitting[-1] if fitting else ())
    return _cards(by_index, best)


def _serve(indexes: Collection[int], groups: Sequence[Group], size: int) -> bool:
    """Tell whether cards are of one wing or a group."""
    return len({index < size for index in indexes}) <= 1 or any(set(group) == indexes for group in groups)


def _cards(by_index: dict[int, Candidate], group: Group) -> list[Candidate]:
    return [by_index[index] for index in group]
