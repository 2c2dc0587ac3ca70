from __future__ import annotations

from typing import Any

import pytest
from kdsl.cluster.devices.cards import Card
from kdsl.eval.values import EvalError
from kdsl.plan.devices.choice import CardCandidate, CardCharge, CardChoice, CardRefusal
from kdsl.plan.devices.intervals import PART, intervals


def profile(name: str, memory: int, size: int, *starts: int) -> dict[str, Any]:
    places = [{"start": start, "size": size} for start in starts]
    return {"name": name, "memory": memory, "cores": memory // 10, "placements": places}


A100 = [
    profile("1g", 100, 1, 6, 5, 4, 3, 2, 1, 0),
    profile("2g", 200, 2, 0, 2, 4),
    profile("3g", 400, 4, 4, 0),
    profile("7g", 800, 8, 0),
]


def choose(count: int, *cards: tuple[str, int, list[dict[str, Any]]], **fields: Any) -> str | CardRefusal:
    """Cut parts from cards, given as name, memory to hold and profiles; return `card:profile@start` of each."""
    by_name = {name: (memory, profiles) for name, memory, profiles in cards}
    values = {"busy": {}, "infeasible": "Full", **fields}

    def read(name: str, device: Card | None = None, other: Card | None = None) -> Any:
        if device is None:
            return values[name]
        if name == "profiles":
            return by_name[device.id][1]
        return values["busy"].get(device.id, []) if name == "busy" else values[name]

    fitting = [
        CardCandidate(Card(name, "K", "K", 7, 800, 100), place, CardCharge(memory, 0, 1, "K"))
        for place, (name, (memory, _)) in enumerate(by_name.items())
    ]
    cards = [one.card for one in fitting]
    chosen = intervals(CardChoice(count, fitting, cards, read, {"Sick": 1}, [one.charge for one in fitting]))
    if isinstance(chosen, CardRefusal):
        return chosen
    return " ".join(_shown(one) for one in chosen)


def _shown(one: CardCandidate) -> str:
    part = one.card.attributes.get(PART)
    return one.card.id if part is None else f"{one.card.id}:{part['profile']}@{part['start']}"


@pytest.mark.parametrize(
    "count, memory, expected",
    [
        (1, 150, "a:2g@0"),  # the first profile that holds it, at its first placement
        (1, 100, "a:1g@6"),  # placements in the order of the list
        (3, 150, "a:2g@0 a:2g@2 a:2g@4"),
        (4, 150, "a:2g@0 a:2g@2 a:2g@4 b:2g@0"),  # then the next card
        (3, 300, "a:3g@4 a:3g@0 b:3g@4"),
        (2, 401, "a:7g@0 b:7g@0"),
    ],
)
def test_parts(count: int, memory: int, expected: str) -> None:
    assert choose(count, ("a", memory, A100), ("b", memory, A100)) == expected


def test_a_larger_profile_where_the_smaller_has_no_place() -> None:
    busy = {"a": [{"start": 0, "size": 4}, {"start": 4, "size": 2}]}
    profiles = [profile("2g", 200, 2, 0, 4), profile("odd", 250, 2, 6)]
    assert choose(1, ("a", 150, profiles), busy=busy) == "a:odd@6"


def test_cards_without_profiles_are_taken_whole() -> None:
    assert choose(2, ("a", 5, []), ("b", 100, A100)) == "a b:1g@6"


def test_too_few_parts() -> None:
    """Each card that ran full counts, and so do the parts that were found."""
    assert choose(3, ("a", 500, A100), ("b", 500, A100)) == CardRefusal(counts={"Sick": 1, "Full": 2, "": 2})


def test_no_part_at_all() -> None:
    busy = {"a": [{"start": 3, "size": 1}]}
    assert choose(1, ("a", 500, A100), busy=busy) == CardRefusal(counts={"Sick": 1, "Full": 1})


@pytest.mark.parametrize("broken", [{"memory": 5}, {"name": "1g", "memory": "5", "placements": []}, 7])
def test_a_profile_that_is_none(broken: Any) -> None:
    with pytest.raises(EvalError):
        choose(1, ("a", 5, [broken]))


@pytest.mark.parametrize("field", ["memory", "cores"])
def test_amounts_of_a_profile_are_within_32_bits(field: str) -> None:
    largest = 2**31 - 1
    assert choose(1, ("a", 5, [profile("1g", 100, 1, 0) | {"cores": 0, field: largest}])) == "a:1g@0"
    for beyond in (largest + 1, -1):
        with pytest.raises(EvalError, match="no amount of a profile"):
            choose(1, ("a", 5, [profile("1g", 100, 1, 0) | {field: beyond}]))
