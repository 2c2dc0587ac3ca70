"""Ways to choose among cards that fit: one function for each entry of `kdsl.check.devices.forms.CHOOSERS`.

To add one: declare its name and fields there, write a function of the type `Chooser` here or in a module of
its own, name it in `CHOOSERS`, list it in docs/devices.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Final

from kdsl.plan.devices.blocks import blocks, zones
from kdsl.plan.devices.choice import Choice, Chooser, Chosen, Refusal, too_few
from kdsl.plan.devices.grouping import groups
from kdsl.plan.devices.intervals import intervals
from kdsl.plan.devices.ranking import rank
from kdsl.plan.devices.runs import runs
from kdsl.plan.devices.wings import wings


def first(choice: Choice) -> Chosen | Refusal:
    """Take the first cards. `GREEDY` choosers are asked as soon as enough cards fit."""
    return too_few(choice) or choice.fitting[: choice.count]


def pairs(choice: Choice) -> Chosen | Refusal:
    """Take the cards with the largest sum of `affinity` over pairs, the first such; see `forms.CHOOSERS`."""
    refusal = too_few(choice)
    if refusal is not None or len(choice.fitting) == choice.count:
        return refusal or choice.fitting
    near = {
        (one.place, other.place): choice.read("affinity", one.card, other.card)
        for one in choice.fitting
        for other in choice.fitting
        if one is not other
    }
    if choice.count == 1:
        return [
            min(
                choice.fitting,
                key=lambda one: sum(
                    near[one.place, other.place] for other in choice.fitting if other is not one
                ),
            )
        ]
    return max(
        combinations(choice.fitting, choice.count),
        key=lambda some: sum(near[one.place, other.place] for one, other in combinations(some, 2)),
    )


CHOOSERS: Final[Mapping[str, Chooser]] = {
    "blocks": blocks,
    "first": first,
    "groups": groups,
    "intervals": intervals,
    "pairs": pairs,
    "rank": rank,
    "runs": runs,
    "wings": wings,
    "zones": zones,
}
GREEDY: Final = frozenset({"first"})
"""Choosers that need no more cards than are asked for: those behind are not tried."""
