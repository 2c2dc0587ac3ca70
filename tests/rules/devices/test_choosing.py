"""The functions of `devices/choosing.kdsl` and the wings of Kunlun cards, in devices that choose by them."""

from __future__ import annotations

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from kdsl.cluster.devices.cards import Card

from tests.rules.devices.trial import given

BODY = """
  order by int(device.attributes[?"place"].orValue(0))
  choose listed else "Own" {{
    let groups = devices.map(card, card.mode)
    {}
  }}
"""


def choose(fields: str, count: int, cards: str, unfit: str = "", groups: str = "") -> str:
    """Return the names of the chosen cards, or the reason of the node.

    `cards` are names of one letter in the order of trying; the index of a card is that of its letter, its mode
    the letter in the same place of `groups`, none for `.`.
    """
    found = [
        Card(
            name,
            "K",
            "K",
            4,
            100,
            100,
            index=ord(name) - ord("a"),
            mode=groups[at : at + 1].strip("."),
            healthy=name not in unfit,
            attributes={"place": at},
        )
        for at, name in enumerate(cards)
    ]
    return given(BODY.format(fields), found, count)


LARGEST = "set choices = [choosing.largestGroups(groups, fitting, request.count)]"
SMALLEST = "set choices = [choosing.smallestGroup(groups, fitting, request.count)]"
WHOLE = """
    let whole = choosing.wholeGroups(groups, fitting, 2)
    set choices = whole.size() >= request.count && request.count % 2 == 0 ? [whole] : []
    set counted = whole.size()
    set total = request.count
"""
RUNS = """
    let row = lists.range(devices.size()).reverse()
    set choices = choosing.runs(row, fitting, request.count, {}).map(at, row.slice(at, at + request.count))
"""
WINGS = """
    set choices = kunlun.choices(devices.map(card, card.index), fitting, request.count)
    set counted = 1
    set reported = ["Unfit"]
"""


@pytest.mark.parametrize(
    "groups, count, expected",
    [
        pytest.param("xyy", 2, "bc", id="the largest group"),
        pytest.param("xyxy", 2, "ac", id="of groups of one size the one that is tried first"),
        pytest.param("xyxzy", 4, "acbe", id="then the next"),
        pytest.param("xyy", 1, "a", id="one is the first"),
        pytest.param("xyy", 3, "abc", id="all, in the order of trying"),
        pytest.param("..xx", 2, "cd", id="cards without a group are left out"),
        pytest.param("...x", 2, "d", id="even where too few are left"),
        pytest.param("...", 2, "", id="or none"),
        pytest.param("..", 2, "ab", id="but not where there is nothing to choose"),
    ],
)
def test_the_largest_groups(groups: str, count: int, expected: str) -> None:
    assert choose(LARGEST, count, "abcdef"[: len(groups)], groups=groups) == expected


@for_all(st.text("xyz", min_size=1, max_size=9), st.integers(2, 9))
def test_no_choice_has_fewer_groups(groups: str, count: int) -> None:
    if count > len(groups):
        return
    chosen = choose(LARGEST, count, "abcdefghi"[: len(groups)], groups=groups)
    sizes = sorted((groups.count(group) for group in set(groups)), reverse=True)
    needed = next(number for number in range(1, 4) if sum(sizes[:number]) >= count)
    assert len({groups[ord(name) - ord("a")] for name in chosen}) == needed


@pytest.mark.parametrize(
    "count, groups, expected",
    [
        pytest.param(2, "112222", "ab", id="the smallest that has enough"),
        pytest.param(2, "122211", "ae", id="of one size, the first"),
        pytest.param(3, "112222", "cde", id="small ones have too few"),
        pytest.param(5, "112222", "abcde", id="all groups, the smallest first"),
        pytest.param(5, "122333", "abcde", id="of three groups"),
        pytest.param(1, ".11222", "b", id="a group before no group"),
        pytest.param(5, "..1222", "cdefa", id="no group comes last"),
        pytest.param(6, "2211..", "abcdef", id="just enough stay in order"),
        pytest.param(1, "......", "a", id="no groups at all"),
    ],
)
def test_the_smallest_group(count: int, groups: str, expected: str) -> None:
    assert choose(SMALLEST, count, "abcdef", groups=groups) == expected


def test_groups_hold_only_cards_that_fit() -> None:
    assert choose(SMALLEST, 2, "abcdef", unfit="a", groups="111222") == "bc"
    assert choose(SMALLEST, 3, "abcdef", unfit="a", groups="111222") == "def"
    assert choose(SMALLEST, 6, "abcdef", unfit="a", groups="111222") == "1/6 Unfit, 5/6 Own"


@pytest.mark.parametrize(
    "count, cards, groups, unfit, expected",
    [
        (2, "abcd", "xxyy", "", "ab"),
        (2, "cbad", "yxxy", "", "cd"),
        (4, "acbd", "xyxy", "", "abcd"),
        (2, "abcd", "xxyy", "a", "cd"),
        (4, "abcdef", "xxyyzz", "c", "abef"),
        (2, "abcd", "xxyy", "ad", "0/2 Own, 2/2 Unfit"),
        (4, "abcd", "xxyy", "d", "1/4 Unfit, 2/4 Own"),
        (3, "abcd", "xxyy", "", "4/3 Own"),
    ],
)
def test_whole_groups_only(count: int, cards: str, groups: str, unfit: str, expected: str) -> None:
    assert choose(WHOLE, count, cards, unfit, groups) == expected


@pytest.mark.parametrize(
    "count, unfit, step, expected",
    [
        pytest.param(2, "", 1, "ab", id="at the beginning"),
        pytest.param(2, "a", 1, "bc", id="anywhere"),
        pytest.param(3, "ad", 1, "efg", id="behind a gap"),
        pytest.param(2, "a", 2, "cd", id="at multiples only"),
        pytest.param(4, "a", 4, "efgh", id="the second half"),
        pytest.param(4, "ae", 4, "2/8 Unfit, 6/8 Own", id="both halves are broken"),
        pytest.param(3, "cfg", 1, "3/8 Unfit, 5/8 Own", id="no run is long enough"),
        pytest.param(8, "", 8, "abcdefgh", id="all"),
        pytest.param(2, "", 0, "8/8 Own", id="no run will do"),
    ],
)
def test_runs(count: int, unfit: str, step: int, expected: str) -> None:
    """Cards are tried from the end, so the last to be tried stands first."""
    assert choose(RUNS.format(step), count, "hgfedcba", unfit) == expected


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
        pytest.param(2, "abcfgh", "6/8 Unfit", id="two without a link"),
        pytest.param(2, "bcdfgh", "ae", id="a linked pair"),
        pytest.param(4, "cdgh", "abef", id="two linked pairs"),
        pytest.param(4, "abgh", "4/8 Unfit", id="no group across"),
        pytest.param(4, "dh", "abef", id="the first group leaves c and g, linked"),
        pytest.param(4, "cf", "adeh", id="the only group"),
        pytest.param(4, "ch", "abef", id="the only group, though it leaves cards without a link"),
        pytest.param(8, "", "abcdefgh", id="all"),
        pytest.param(8, "h", "1/8 Unfit", id="not all"),
        pytest.param(3, "", "1/8 Own", id="a number that no group has"),
    ],
)
def test_wings(count: int, unfit: str, expected: str) -> None:
    """Of eight cards the four that are tried last are the left wing."""
    assert choose(WINGS, count, "hgfedcba", unfit) == expected


def test_wings_are_by_place_and_groups_by_index() -> None:
    assert choose(WINGS, 1, "abcdefgh") == "h"
    assert choose(WINGS, 4, "hdgcfbea", "cdgh") == "aebf"
    assert choose(WINGS, 4, "hfdbgeca", "cdgh") == "abef"
