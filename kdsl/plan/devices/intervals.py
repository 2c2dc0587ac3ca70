"""The chooser `intervals`: parts of cards, each at a place of its own, as MIG instances are.

A card with profiles is cut into parts; one without is taken whole, as `first` would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kdsl.cluster.devices.cards import INT32_MAX
from kdsl.eval.values import EvalError, Value
from kdsl.plan.devices.choice import Candidate, Choice, Chosen, Refusal

Interval = tuple[int, int]
"""Where a part starts and how long it is."""

PART = "part"
"""The attribute of a granted card that says which part it is: `profile`, `start` and `size`."""


@dataclass(frozen=True, slots=True)
class _Profile:
    """A way to cut a part from a card, and where parts of it may be, the first to be tried first."""

    name: str
    memory: int
    cores: int
    slices: int
    placements: tuple[Interval, ...]


def intervals(choice: Choice) -> Chosen | Refusal:
    """Take parts of the first cards that have room, as many of each as it has.

    A part is of the profile with the least `memory`, then the fewest `slices`, that holds what the card would
    give and has a place free of `busy` parts. Places are tried in rising order, in falling order for profiles
    whose name begins as `fromEnd` says. A card on which some part finds no place counts for `infeasible`, and
    the parts found for the chooser's own reason where they are too few. A card whose `busy` parts cannot be
    read counts with why: pods say them, and what one says must not hold up the other cards.
    """
    taken: list[Candidate] = []
    unknown: Counter[str] = Counter()
    infeasible = 0
    for candidate in choice.fitting:
        profiles = _profiles(choice, candidate)
        if not profiles:
            taken.append(candidate)
        else:
            try:
                busy = [_interval(each) for each in choice.read("busy", candidate.card)]
            except EvalError as error:
                unknown[error.message] += 1
                continue
            parts = _parts(candidate, profiles, busy)
            taken += (part for part, _ in zip(parts, range(choice.count - len(taken)), strict=False))
            infeasible += len(taken) < choice.count
        if len(taken) >= choice.count:
            return taken
    counts = {**choice.rejected}
    reason = choice.read("infeasible") if infeasible or unknown else ""
    if infeasible:
        counts[reason] = counts.get(reason, 0) + infeasible
    counts |= {f"{reason} ({why})": count for why, count in unknown.items()}
    return Refusal(counts=counts | ({"": len(taken)} if taken else {}))


def _parts(candidate: Candidate, profiles: Sequence[_Profile], busy: list[Interval]) -> Iterator[Candidate]:
    """Yield parts of a card until none finds a place beside `busy` ones, or the card has no slot left."""
    free = candidate.card.slots - candidate.card.used
    while free >= candidate.slots:
        free -= candidate.slots
        found = next(
            (
                (profile, place)
                for profile in profiles
                if profile.memory >= candidate.memory
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
        card = replace(candidate.card, attributes={**candidate.card.attributes, PART: part})
        yield replace(candidate, card=card, memory=profile.memory, cores=profile.cores)


def _is_free(place: Interval, busy: Iterable[Interval]) -> bool:
    start, size = place
    return all(start + size <= other or other + length <= start for other, length in busy)


def _profiles(choice: Choice, candidate: Candidate) -> list[_Profile]:
    prefixes = tuple(choice.read("fromEnd", candidate.card))
    read = (_profile(each, prefixes) for each in choice.read("profiles", candidate.card))
    return sorted(read, key=lambda profile: (profile.memory, profile.slices))


def _profile(value: Value, from_end: tuple[str, ...]) -> _Profile:
    if not isinstance(value, Mapping) or not isinstance(name := value.get("name"), str):
        raise EvalError("a profile is a map with a name")
    places = sorted(map(_interval, _items(value.get("placements"))), reverse=name.startswith(from_end))
    memory, cores, slices = (_number(value.get(key, 0)) for key in ("memory", "cores", "slices"))
    return _Profile(name, memory, cores, slices, tuple(places))


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
