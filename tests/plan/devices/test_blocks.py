from __future__ import annotations

import pytest
from kdsl.plan.devices.blocks import blocks, zones
from kdsl.plan.devices.choice import Refusal

from tests.plan.devices.choices import choose

PAIRS = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}


@pytest.mark.parametrize(
    "count, cards, unfit, expected",
    [
        (2, "abcd", "", "ab"),
        (2, "cbad", "", "cd"),
        (4, "acbd", "", "abcd"),
        (2, "abcd", "a", "cd"),
        (4, "abcdef", "c", "abef"),
        (2, "abcd", "ad", Refusal(0, total=2)),
        (4, "abcd", "d", Refusal(2, total=4)),
        (3, "abcd", "", Refusal(4, total=3)),
    ],
)
def test_whole_blocks_only(count: int, cards: str, unfit: str, expected: str | Refusal) -> None:
    assert choose(blocks, count, cards, unfit, block=PAIRS, size=2) == expected


def test_blocks_of_nothing() -> None:
    assert choose(blocks, 2, "ab", block=PAIRS, size=0) == Refusal(0, total=2)


@pytest.mark.parametrize(
    "count, zone, expected",
    [
        pytest.param(2, "112222", "ab", id="the smallest that has enough"),
        pytest.param(2, "122211", "ae", id="of one size, the first"),
        pytest.param(3, "112222", "cde", id="small ones have too few"),
        pytest.param(5, "112222", "abcde", id="all zones, the smallest first"),
        pytest.param(5, "122333", "abcde", id="of three zones"),
        pytest.param(1, "011222", "b", id="a zone before no zone"),
        pytest.param(5, "001222", "cdefa", id="no zone comes last"),
        pytest.param(6, "221100", "abcdef", id="just enough stay in order"),
        pytest.param(1, "000000", "a", id="no zones at all"),
        pytest.param(7, "111111", Refusal(6), id="too few"),
    ],
)
def test_zones(count: int, zone: str, expected: str | Refusal) -> None:
    by_name = {name: int(digit) for name, digit in zip("abcdef", zone, strict=True)}
    assert choose(zones, count, "abcdef", zone=by_name) == expected


def test_zones_count_only_cards_that_fit() -> None:
    by_name = dict(zip("abcdef", (1, 1, 1, 2, 2, 2), strict=True))
    assert choose(zones, 2, "abcdef", unfit="a", zone=by_name) == "bc"
    assert choose(zones, 3, "abcdef", unfit="a", zone=by_name) == "def"
