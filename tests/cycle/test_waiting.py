"""Held pods: let go by every plugin, sent back by one, or out of time."""

from __future__ import annotations

import pytest
from kdsl.base.times import go_duration
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.status import Code, Status

SECOND = 10**9


def held(**timeouts: int) -> WaitingPods[str]:
    pods = WaitingPods[str]()
    pods.hold("ns/p", timeouts, 100 * SECOND, "ticket")
    return pods


def test_every_plugin_must_allow() -> None:
    pods = held(A=SECOND, B=SECOND)
    assert pods.allow("ns/p", "A")
    assert pods.take_settled(111 * SECOND) == []
    assert pods.allow("ns/p", "B")
    assert pods.take_settled(111 * SECOND) == [("ticket", None)]
    assert "ns/p" not in pods


def test_one_rejection_is_enough_and_the_first_counts() -> None:
    pods = held(A=SECOND, B=SECOND)
    assert pods.reject("ns/p", "B", "no")
    assert not pods.reject("ns/p", "A", "too late")
    assert pods.take_settled(111 * SECOND) == [("ticket", Status(Code.UNSCHEDULABLE, ("no",), "B"))]


def test_each_wait_is_reported_once_with_its_result_and_length() -> None:
    waits: list[tuple[str, int]] = []
    pods = WaitingPods[str]()
    pods.listen(lambda result, waited: waits.append((result.label, waited)))
    for at, name in enumerate(("allowed", "rejected", "late", "deleted", "held")):
        pods.hold(name, {"A": (100 if name == "held" else 9) * SECOND}, (100 + at) * SECOND, name)
    pods.allow("allowed", "A")
    pods.reject("rejected", "A", "no")
    pods.expire(111 * SECOND)
    assert waits == []
    pods.take_settled(112 * SECOND)
    assert waits == [("Success", 12 * SECOND), ("Unschedulable", 11 * SECOND), ("Unschedulable", 10 * SECOND)]
    assert pods.take("deleted", 113 * SECOND) == "deleted"
    assert pods.take("deleted", 114 * SECOND) is None
    assert waits[3:] == [("Unschedulable", 10 * SECOND)]
    assert "held" in pods


def test_what_is_not_held_cannot_be_settled() -> None:
    pods = held(A=SECOND)
    assert not pods.allow("ns/other", "A")
    assert not pods.allow("ns/p", "B")
    assert not pods.reject("ns/other", "A", "no")
    assert len(pods) == 1


def test_time_runs_out_at_the_deadline_for_the_most_impatient_plugin() -> None:
    pods = held(A=20 * SECOND, B=10 * SECOND)
    pods.expire(110 * SECOND - 1)
    assert pods.take_settled(111 * SECOND) == []
    pods.expire(110 * SECOND)
    (settled,) = pods.take_settled(111 * SECOND)
    assert settled == (
        "ticket",
        Status(Code.UNSCHEDULABLE, ("rejected due to timeout after waiting 10s at plugin B",), "B"),
    )


def test_a_plugin_that_allowed_does_not_time_out() -> None:
    pods = held(A=20 * SECOND, B=10 * SECOND)
    pods.allow("ns/p", "B")
    pods.expire(115 * SECOND)
    assert pods.take_settled(111 * SECOND) == []


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (999, "999ns"),
        (1_000, "1µs"),
        (1_500, "1.5µs"),
        (10**6 - 1, "999.999µs"),
        (10**6, "1ms"),
        (SECOND - 1, "999.999999ms"),
        (SECOND, "1s"),
        (60 * SECOND - 1, "59.999999999s"),
        (3_600 * SECOND - 1, "59m59.999999999s"),
        (100 * 10**6, "100ms"),
        (2_500 * 10**6, "2.5s"),
        (60 * SECOND, "1m0s"),
        (15 * 60 * SECOND, "15m0s"),
        (3_600 * SECOND, "1h0m0s"),
        (3_661 * SECOND + 5 * 10**6, "1h1m1.005s"),
    ],
)
def test_durations_are_written_as_go_writes_them(nanoseconds: int, text: str) -> None:
    assert go_duration(nanoseconds) == text
