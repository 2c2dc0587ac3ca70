"""A decision becomes a condition and an event with kube-scheduler's words, and names its rules beside them."""

from __future__ import annotations

import pytest
from kdsl.cycle.decision import Condition, Decision, Outcome, Rejection
from kdsl.live.writing.conditions import StatusWish
from kdsl.live.writing.reporter import RULES, Reporter, rule_lines
from msgspec.structs import replace

from tests.live.pods import live_pod

REPORTER = Reporter("h")


def decision(outcome: Outcome, message: str = "m", rejections: tuple[Rejection, ...] = ()) -> Decision:
    return Decision("default/a", "team", outcome, message=message, rejections=rejections)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [(Outcome.UNSCHEDULABLE, "Unschedulable"), (Outcome.ERROR, "SchedulerError")],
)
def test_a_failure_has_its_reason(outcome: Outcome, reason: str) -> None:
    report = REPORTER.failed(decision(outcome), live_pod(), "n1")
    assert report is not None
    assert report.wish == StatusWish(Condition("PodScheduled", "False", reason, "m"), "n1")
    assert (report.event.controller, report.event.instance) == ("default-scheduler", "default-scheduler-h")
    assert (report.event.type, report.event.action) == ("Warning", "Scheduling")


@pytest.mark.parametrize("outcome", [Outcome.PLACED, Outcome.WAITING, Outcome.GATED, Outcome.SKIPPED])
def test_what_is_no_failure_is_not_reported(outcome: Outcome) -> None:
    assert REPORTER.failed(decision(outcome), live_pod(), "") is None


def test_a_pod_that_is_being_deleted_gets_an_event_only() -> None:
    pod = live_pod()
    pod = replace(pod, info=replace(pod.info, deletion_timestamp=1))
    text = "skip schedule deleting pod: default/a"
    report = REPORTER.failed(decision(Outcome.SKIPPED, text), pod, "")
    assert report is not None
    assert report.wish is None
    assert report.event.note == text


def test_the_note_is_cut_and_the_condition_is_whole() -> None:
    text = "0/9 nodes are available: " + "ü" * 2000
    report = REPORTER.failed(decision(Outcome.UNSCHEDULABLE, text), live_pod(), "")
    assert report is not None
    assert report.wish is not None
    assert report.wish.condition is not None
    assert report.wish.condition.message == text
    assert len(report.event.note.encode()) <= 1024


def test_rules_are_named_with_their_lines() -> None:
    rejections = (
        Rejection("Fit", "Unschedulable", "Insufficient cpu", "fit.kdsl:12", 3),
        Rejection("Fit", "Unschedulable", "Insufficient memory", "fit.kdsl:12", 1),
        Rejection("Fit", "Unschedulable", "Too many pods", "fit.kdsl:15", 1),
        Rejection("InterPodAffinity", "Unschedulable", "x", "", 2),
        Rejection("", "Unschedulable", "not visited", "", 9),
    )
    report = REPORTER.failed(decision(Outcome.UNSCHEDULABLE, "m", rejections), live_pod(), "")
    assert report is not None
    assert report.event.annotations == {RULES: "4 Fit fit.kdsl:12\n1 Fit fit.kdsl:15\n2 InterPodAffinity"}
    assert report.event.note == "m"


def test_many_rules_are_cut() -> None:
    lines = rule_lines(Rejection(f"rule-{n}", "c", "r", "x" * 50, 1) for n in range(1000))
    assert len(lines.encode()) <= 2048


def test_a_victim_in_memory_is_told_so() -> None:
    event = REPORTER.preempted(live_pod("v"), live_pod("p").info, "n1", "team", in_memory=True)
    assert event.note == "Preempted by pod uid-p on node n1 (in kube-scheduler memory)."


def test_halves_of_characters_can_be_sent() -> None:
    report = REPORTER.failed(decision(Outcome.ERROR, "bad \udfff"), live_pod(), "")
    assert report is not None
    assert report.wish is not None
    assert report.wish.condition is not None
    assert report.wish.condition.message == "bad \\udfff" == report.event.note
