"""Ways to choose among cards that fit: one function for each entry of `kdsl.check.devices.forms.CHOOSERS`.

To add one: declare its name and fields there, write a function of the type `Chooser` here or in a module of
its own, name it in `CHOOSERS`, list it in docs/devices.md. Most choices need none: see `listed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Final

from kdsl.eval.values import EvalError
from kdsl.plan.devices.choice import CardCandidate, CardChoice, CardRefusal, Chooser, Chosen, too_few
from kdsl.plan.devices.intervals import intervals


def first(choice: CardChoice) -> Chosen | CardRefusal:
    """Take the first cards. `GREEDY` choosers are asked as soon as enough cards fit."""
    return too_few(choice) or choice.fitting[: choice.count]


def listed(choice: CardChoice) -> Chosen | CardRefusal:
    """Take the first cards of the first of `choices`, lists of the numbers of cards; refuse if it is empty.

    A refusal counts the rejected cards by reason, and `counted` cards for the chooser's own reason, out of
    `total`. Their defaults are all cards that fit, and all cards. With `reported` it counts the cards
    rejected for one of these reasons, else `counted` alone.
    """
    choices = choice.read("choices") if len(choice.fitting) >= choice.count else ()
    if choices:
        numbers = choices[0][: choice.count]
        if len(set(numbers)) < len(numbers) or not all(0 <= number < len(choice.cards) for number in numbers):
            raise EvalError(f"a choice must be different numbers below {len(choice.cards)}")
        return [CardCandidate(choice.cards[place], place, choice.charges[place]) for place in numbers]
    counted, reported = choice.read("counted"), choice.read("reported")
    count = len(choice.fitting) if counted is None else counted
    if reported is None:
        return CardRefusal(count, choice.read("total"))
    counts = {reason: choice.rejected[reason] for reason in reported if choice.rejected.get(reason)}
    return CardRefusal(counts=counts or {"": count})


def pairs(choice: CardChoice) -> Chosen | CardRefusal:
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
    "first": first,
    "intervals": intervals,
    "listed": listed,
    "pairs": pairs,
}
GREEDY: Final = frozenset({"first"})
"""Choosers that need no more cards than are asked for: those behind are not tried."""
PAIRED: Final = frozenset({"pairs"})
"""Choosers that find cards whenever enough fit, if `affinity` has a value for each pair."""
COUNTED: Final = frozenset({"counted", "total", "reported"})
"""The fields of `listed` that make its refusals other than the counts of all reasons."""
SILENT: Final = frozenset({"intervals", "pairs"})
"""Choosers that do not count cards given back: `intervals` counts parts, HAMi none for pairs."""
