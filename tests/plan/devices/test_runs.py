from __future__ import annotations

import pytest
from kdsl.plan.devices.choice import Refusal
from kdsl.plan.devices.runs import runs

from tests.plan.devices.choices import choose

NONE = Refusal(counts={"": 1})


@pytest.mark.parametrize(
    "count, unfit, step, expected",
    [
        pytest.param(2, "", 1, "ab", id="at the beginning"),
        pytest.param(2, "a", 1, "bc", id="anywhere"),
        pytest.param(3, "ad", 1, "efg", id="behind a gap"),
        pytest.param(2, "a", 2, "cd", id="at multiples only"),
        pytest.param(4, "a", 4, "efgh", id="the second half"),
        pytest.param(4, "ae", 4, NONE, id="both halves are broken"),
        pytest.param(3, "cfg", 1, NONE, id="no run is long enough"),
        pytest.param(8, "", 8, "abcdefgh", id="all"),
        pytest.param(9, "", 1, NONE, id="more than there are"),
        pytest.param(2, "", 0, NONE, id="no run will do"),
    ],
)
def test_runs(count: int, unfit: str, step: int, expected: str | Refusal) -> None:
    """Cards are tried from the end, so the first to stand is the last to be tried."""
    assert choose(runs, count, "hgfedcba", unfit, step=step) == expected


@pytest.mark.parametrize(
    "count, order, unfit, step, expected",
    [
        pytest.param(2, "dcba", "", 1, "ab", id="places and indexes are the same"),
        pytest.param(2, "dbac", "c", 1, "bc", id="the card of an index is taken whether it fits or not"),
        pytest.param(2, "abcd", "d", 2, "cd", id="places decide which run does"),
        pytest.param(2, "fe", "", 1, NONE, id="no card has the indexes"),
        pytest.param(2, "abcd", "bd", 1, NONE, id="no run fits"),
    ],
)
def test_places_as_indexes(count: int, order: str, unfit: str, step: int, expected: str | Refusal) -> None:
    assert choose(runs, count, order, unfit, step=step, byIndex=True) == expected
