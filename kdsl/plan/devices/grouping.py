"""The chooser `groups`: cards that belong together, out of as few groups as can be."""

from __future__ import annotations

from itertools import chain

from kdsl.plan.devices.choice import Candidate, Choice, Chosen, Refusal, too_few


def groups(choice: Choice) -> Chosen | Refusal:
    """Take whole groups, the largest first; of groups of one size the one whose first card is tried first.

    Where there is something to choose, a card without a group (an empty text) is left out even if too few are
    left: as in HAMi, whose device plugins register a group with every card. One card is the first that fits.
    """
    refusal = too_few(choice)
    if refusal is not None or choice.count in (1, len(choice.fitting)):
        return refusal or choice.fitting[: choice.count]
    members: dict[object, list[Candidate]] = {}
    for one in choice.fitting:
        if group := choice.read("by", one.card):
            members.setdefault(group, []).append(one)
    largest_first = sorted(members.values(), key=len, reverse=True)
    return list(chain.from_iterable(largest_first))[: choice.count]
