from __future__ import annotations

import pytest
from kdsl.plan.devices.choice import Refusal
from kdsl.plan.devices.ranking import rank

from tests.plan.devices.choices import choose


@pytest.mark.parametrize(
    "count, by, expected",
    [
        pytest.param(1, [[1], [0], [2]], "b", id="the smallest"),
        pytest.param(2, [[1, 0], [0, 9], [0, 1]], "cb", id="item by item"),
        pytest.param(2, [[0], [0], [0]], "ab", id="equal ones in order"),
        pytest.param(3, [[2], [1], [0]], "abc", id="just enough stay in order"),
        pytest.param(4, [[0], [0], [0]], Refusal(3), id="too few"),
    ],
)
def test_rank(count: int, by: list[list[int]], expected: str | Refusal) -> None:
    assert choose(rank, count, "abc", by=dict(zip("abc", by, strict=True))) == expected
