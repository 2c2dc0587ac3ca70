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
