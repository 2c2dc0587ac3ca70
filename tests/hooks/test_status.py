"""`StatusTable`: one number for each status, and what the cycle may take as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn, StatusTable

FULL = Status(Code.UNSCHEDULABLE, ("full",), "F")
OLD = Status(Code.UNRESOLVABLE, ("old",), "F")


def test_equal_statuses_have_one_number() -> None:
    table = StatusTable()
    assert [table.number(each) for each in (FULL, OLD, Status(Code.SUCCESS))] == [1, 2, 0]
    assert table.number(Status(Code.UNSCHEDULABLE, ("full",), "F")) == 1
    assert table == [SUCCESS, FULL, OLD]


@pytest.mark.parametrize(
    ("status", "is_settled"),
    [
        (FULL, True),
        (Status(Code.PENDING, ("later",), "F"), True),
        (Status(Code.UNSCHEDULABLE, ("full",)), False),
        (Status(Code.ERROR, ("broken",), "F"), False),
        (Status(Code.SKIP, plugin="F"), False),
    ],
)
def test_only_stamped_rejections_are_taken_as_they_are(status: Status, is_settled: bool) -> None:
    table = StatusTable()
    table.number(FULL)
    table.number(status)
    assert table.is_settled is is_settled
    table.number(OLD)
    assert table.is_settled is is_settled


def test_only_what_a_column_uses_is_translated() -> None:
    table = StatusTable()
    table.number(OLD)
    column = StatusColumn(np.array([2, 0, 2], np.int32), [SUCCESS, Status(Code.ERROR), FULL])
    assert table.translate(column).tolist() == [2, 0, 2]
    assert table == [SUCCESS, OLD, FULL]
    assert table.translate(StatusColumn(np.array([1, 0], np.int32), table)).tolist() == [1, 0]
    assert table.translate(StatusColumn(np.zeros(0, np.int32), [SUCCESS])).tolist() == []


def test_threads_agree_on_numbers() -> None:
    table = StatusTable()
    statuses = [Status(Code.UNSCHEDULABLE, (str(number),), "F") for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        each = list(threads.map(lambda _: [table.number(status) for status in statuses], range(8)))
    assert all(numbers == each[0] for numbers in each)
    assert [table[number] for number in each[0]] == statuses
    assert len(table) == len(statuses) + 1
