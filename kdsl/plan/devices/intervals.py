"""The chooser `intervals`: parts of cards, each at a place of its own, as MIG instances are.

A card with profiles is cut into parts; one without is taken whole, as `first` would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kdsl.cluster.devices.cards import INT32_MAX
from kdsl.eval.values import EvalError, Value
from kdsl.plan.devices.choice import CardCandidate, CardChoice, CardRefusal, Chosen

Interval = tuple[int, int]
"""The start and the length of a part."""

PART = "part"
"""The attribute with the part of a granted card: `profile`, `start` and `size`."""


@dataclass(frozen=True, slots=True)
class _Profile:
    """A way to cut a part from a card, and the places of such parts in the order of trying."""

    name: str
    memory: int
    cores: int
    placements: tuple[Interval, ...]


def intervals(choice: CardChoice) -> Chosen | CardRefusal:
    """Take parts of the first cards that have room, as many of each as it has.

    Cards that were given back are asked before those behind them: their parts may be enough. A part has the
    first of the `profiles` with enough memory, at its first placement that is free of `busy` parts. A card on
    which some part finds no place counts for `infeasible`, and the parts found for the chooser's own reason
    if they are too few. A card with unreadable `busy` parts counts with the error: pods write them, and one
    pod's mistake must not block other cards.
    """
    counts = Counter(choice.rejected)
    for earlier in choice.earlier:
        parts, missed = _found(choice, earlier.cards)
        if len(parts) >= choice.count:
            return parts
        counts += missed + Counter({earlier.reason: len(parts)})
    parts, missed = _found(choice, choice.fitting)
    if len(parts) >= choice.count:
        return parts
    return CardRefusal(counts={**(counts + missed), **({"": len(parts)} if parts else {})})


def _found(
    choice: CardChoice, candidates: Iterable[CardCandidate]
) -> tuple[list[CardCandidate], Counter[str]]:
    """Return the parts of cards, as many as are needed, and count the cards without a place for another."""
    taken: list[CardCandidate] = []
    missed: Counter[str] = Counter()
    for candidate in candidates:
        profiles = [_profile(each) for each in choice.read("profiles", candidate.card)]
        if not profiles:
            taken.append(candidate)
        else:
            try:
                busy = [_interval(each) for each in choice.read("busy", candidate.card)]
            except EvalError as error:
                missed[f"{choice.read('infeasible')} ({error.message})"] += 1
                continue
            parts = _parts(candidate, profiles, busy)
            taken += (part for part, _ in zip(parts, range(choice.count - len(taken)), strict=False))
            if len(taken) < choice.count:
                missed[str(choice.read("infeasible"))] += 1
        if len(taken) >= choice.count:
            break
    return taken, missed


def _parts(
    candidate: CardCandidate, profiles: Sequence[_Profile], busy: list[Interval]
) -> Iterator[CardCandidate]:
    """Yield parts of a card until none finds a place beside `busy` ones, or the card has no slot left."""
    free = candidate.card.slots - candidate.card.used
    while free >= candidate.charge.slots:
        free -= candidate.charge.slots
        found = next(
            (
                (profile, place)
                for profile in profiles
                if profile.memory >= candidate.charge.memory
                for place in profile.placements
                if _is_free(place, busy)
            ),
            None,
        )
        if found is None:
            return
        profile, place = found
        busy.append(place)
        part = {"profile": profile.name, "start": place[0], "size": place[1]}
        card = candidate.card.with_attributes({**candidate.card.attributes, PART: part})
        charge = replace(candidate.charge, memory=profile.memory, cores=profile.cores)
        yield CardCandidate(card, candidate.place, charge)


def _is_free(place: Interval, busy: Iterable[Interval]) -> bool:
    start, size = place
    return all(start + size <= other or other + length <= start for other, length in busy)


def _profile(value: Value) -> _Profile:
    if not isinstance(value, Mapping) or not isinstance(name := value.get("name"), str):
        raise EvalError("a profile is a map with a name")
    places = tuple(map(_interval, _items(value.get("placements"))))
    return _Profile(name, _number(value.get("memory", 0)), _number(value.get("cores", 0)), places)


def _interval(value: Value) -> Interval:
    if not isinstance(value, Mapping):
        raise EvalError("a placement is a map with `start` and `size`")
    return _number(value.get("start", 0)), _number(value.get("size", 0))


def _items(value: Value) -> Sequence[Value]:
    if isinstance(value, (tuple, list)):
        return value
    raise EvalError("the placements of a profile are a list")


def _number(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= INT32_MAX:
        raise EvalError(f"{value!r} is no amount of a profile")
    return int(value)
