from __future__ import annotations

import pytest
from kdsl.plan.devices.choice import Refusal
from kdsl.plan.devices.wings import wings

from tests.plan.devices.choices import choose

FILL = {1: [1, 3, 2, 4], 2: [2, 3, 4], 4: [4]}
ACROSS = [[0, 4], [1, 5], [2, 6], [3, 7], [0, 1, 4, 5], [2, 3, 6, 7], [0, 2, 4, 6], [1, 3, 5, 7]]
NONE = Refusal(counts={"": 1})


def chosen(
    count: int, unfit: str, cards: str = "hgfedcba", rejected: dict[str, int] | None = None
) -> str | Refusal:
    """Choose of eight cards, `abcd` and `efgh`: in order of trying the left wing comes last."""
    return choose(
        wings,
        count,
        cards,
        unfit,
        rejected,
        size=4,
        fill=FILL.get(count, []),
        groups=[*ACROSS, [0, 1, 2, 3, 4, 5, 6, 7]],
        told=["Told"],
    )


@pytest.mark.parametrize(
    "count, unfit, expected",
    [
        pytest.param(1, "", "a", id="one of an idle node"),
        pytest.param(1, "abc", "d", id="the only one of a wing"),
        pytest.param(1, "eh", "f", id="one of two before one of four"),
        pytest.param(1, "ae", "b", id="one of three, the left wing first"),
        pytest.param(1, "abe", "f", id="one of three, not one of two"),
        pytest.param(2, "abe", "cd", id="just two before three"),
        pytest.param(2, "e", "fg", id="two of three before four"),
        pytest.param(4, "a", "efgh", id="a whole wing"),
        pytest.param(2, "abcfgh", NONE, id="two without a link"),
        pytest.param(2, "bcdfgh", "ae", id="a linked pair"),
        pytest.param(4, "cdgh", "abef", id="two linked pairs"),
        pytest.param(4, "aehd", NONE, id="no group across"),
        pytest.param(8, "", "abcdefgh", id="all"),
        pytest.param(8, "h", NONE, id="not all"),
        pytest.param(3, "", NONE, id="a number that no group has"),
    ],
)
def test_eight_cards(count: int, unfit: str, expected: str | Refusal) -> None:
    assert chosen(count, unfit) == expected


@pytest.mark.parametrize(
    "links, groups, expected",
    [
        pytest.param([[2, 6]], [[0, 1, 4, 5], [0, 2, 4, 6]], "abef", id="the first leaves c and g, linked"),
        pytest.param(
            [[1, 5]], [[0, 1, 4, 5], [0, 2, 4, 6]], "aceg", id="the first leaves c and g, not linked"
        ),
        pytest.param([], [[0, 1, 4, 5], [0, 1, 2, 4]], "abce", id="the second leaves f and g, of one wing"),
        pytest.param([], [[0, 1, 4, 5], [0, 2, 4, 6]], "aceg", id="none leaves cards that can serve"),
    ],
)
def test_what_is_left(links: list[list[int]], groups: list[list[int]], expected: str) -> None:
    """Of `abc` and `efg` four are taken."""
    assert (
        choose(wings, 4, "hgfedcba", unfit="dh", size=4, fill=[4], groups=[*links, *groups], told=[])
        == expected
    )


def test_wings_are_by_place_and_groups_by_index() -> None:
    assert chosen(1, "", cards="abcdefgh") == "h"
    assert chosen(4, "cdgh", cards="hdgcfbea") == "aebf"
    assert chosen(4, "cdgh", cards="hfdbgeca") == "abef"


def test_told_reasons_stand_alone() -> None:
    assert chosen(8, "abc", rejected={"Told": 2, "Other": 1}) == Refusal(counts={"Told": 2})
    assert chosen(8, "abc", rejected={"Other": 3}) == NONE
