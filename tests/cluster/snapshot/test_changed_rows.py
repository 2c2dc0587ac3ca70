"""Logs of changed rows, and the part that a reader has not seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kdsl.base import change_log
from kdsl.base.change_log import ChangeLog
from kdsl.cluster.snapshot.changed_rows import ChangedRows


def test_a_reader_sees_every_change_once() -> None:
    log, other, reader = ChangeLog[int](), ChangeLog[int](), ChangedRows()
    assert reader.take(log, other) is None
    assert reader.take(log, other) == []
    for row in (3, 1, 3):
        log.note(row, 5)
    other.note(2, 5)
    assert reader.take(log, other) == [3, 1, 2]
    assert reader.take(log, other) == []


@given(st.lists(st.integers(0, 3) | st.none(), max_size=60))
def test_who_comes_too_late_is_told_to_look_at_all(steps: list[int | None]) -> None:
    """`None` reads, a number notes a change of that row; at most twice as many changes as rows are kept."""
    spare, change_log._SPARE = change_log._SPARE, 1
    try:
        log, reader = ChangeLog[int](), ChangedRows()
        reader.take(log)
        missed: list[int] = []
        for row in steps:
            if row is not None:
                log.note(row, 4)
                missed.append(row)
                continue
            seen = reader.take(log)
            assert seen == list(dict.fromkeys(missed)) if seen is not None else len(missed) > 5
            missed = []
    finally:
        change_log._SPARE = spare
