from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.plan.devices.choice import Candidate, Choice, Refusal
from kdsl.plan.devices.grouping import groups

from tests.plan.devices.devices import card


def choose(written: str, count: int) -> str | int:
    """Choose among cards named by their groups; return their places, or how many are too few."""
    cards = [card(f"{place}", memory=1) for place in range(len(written))]
    names = {each.id: written[place].strip(".") for place, each in enumerate(cards)}
    fitting = [Candidate(each, place, 1, 1, 1, "K") for place, each in enumerate(cards)]
    chosen = groups(Choice(count, fitting, cards, lambda _, each: names[each.id], {}, fitting.__getitem__))
    return chosen.count if isinstance(chosen, Refusal) else "".join(str(one.place) for one in chosen)


@pytest.mark.parametrize(
    "cards, count, expected",
    [
        pytest.param("abb", 2, "12", id="the largest group"),
        pytest.param("abab", 2, "02", id="of groups of one size the one that is tried first"),
        pytest.param("abacb", 4, "0214", id="then the next"),
        pytest.param("abb", 1, "0", id="one is the first"),
        pytest.param("abb", 3, "012", id="all, in the order of trying"),
        pytest.param("abb", 4, 3, id="too few"),
        pytest.param("..aa", 2, "23", id="cards without a group are left out"),
        pytest.param("...a", 2, "3", id="even where too few are left"),
        pytest.param("..", 2, "01", id="but not where there is nothing to choose"),
    ],
)
def test_groups(cards: str, count: int, expected: str | int) -> None:
    assert choose(cards, count) == expected


@given(st.text("abc", min_size=1, max_size=9), st.integers(1, 9))
def test_no_choice_has_fewer_groups(cards: str, count: int) -> None:
    chosen = choose(cards, count)
    if isinstance(chosen, int) or count == 1:
        return
    sizes = sorted((cards.count(group) for group in set(cards)), reverse=True)
    needed = next(number for number in range(1, 4) if sum(sizes[:number]) >= count)
    assert len({cards[int(place)] for place in chosen}) == needed
