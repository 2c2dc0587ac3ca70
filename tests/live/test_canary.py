"""Two rule sets, each for its share of the pods."""

from __future__ import annotations

import json

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome, Rejection
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import QueuedPod
from kdsl.live.rules.canary import CANARY, Canary, Side, side_of
from kdsl.live.rules.comparison_reports import canary_document, canary_text

PODS = [PodInfo(f"p{number}", uid=f"uid-{number}") for number in range(5_000)]


def test_the_share_is_about_what_was_asked_for_and_only_grows() -> None:
    few = {pod.uid for pod in PODS if side_of(pod, 5) is Side.CANARY}
    many = {pod.uid for pod in PODS if side_of(pod, 30) is Side.CANARY}
    assert 190 <= len(few) <= 310 and 1_350 <= len(many) <= 1_650 and few < many


def test_the_side_depends_on_the_uid_alone() -> None:
    assert len({side_of(PodInfo(str(name), uid="u"), 50) for name in range(50)}) == 1


@pytest.mark.parametrize("percent", [0, 100, -1, float("nan")])
def test_shares_that_are_none(percent: float) -> None:
    with pytest.raises(ValueError, match="percent"):
        Canary({Side.STABLE: "a", Side.CANARY: "b"}, percent, _ignore)


def test_both_sides_are_reported() -> None:
    counted: list[tuple[str, str]] = []
    digests = {Side.STABLE: "digest1", Side.CANARY: "digest2" + 20 * "0"}
    canary = Canary(digests, 10, lambda side, outcome: counted.append((side, outcome)))
    queued = QueuedPod(PODS[0], 0, 0)
    placed = Decision("a/b", "p", Outcome.PLACED, node="n")
    rejection = Rejection("Fit", "Unschedulable", "full", "", 3)
    waits = placed.with_fields(outcome=Outcome.UNSCHEDULABLE, node="", rejections=(rejection, rejection))
    profile = "p" + CANARY
    canary.decided(placed, queued, 0.001)
    canary.decided(waits.with_fields(profile=profile, faults=(Fault("Mine", "broke"),)), queued, 0.003)
    canary.decided(placed.with_fields(profile=profile), queued, 0.001)
    assert counted == [("stable", "placed"), ("canary", "unschedulable"), ("canary", "placed")]
    stable, other = canary.report()
    assert (stable.placed_share, other.placed_share) == (1.0, 0.5)
    assert other.rejections == {"Fit": 1} and other.errors == {"Mine": 1}
    assert canary_text([stable, other]).splitlines() == [
        "                  STABLE        CANARY",
        "rules            digest1  digest200000",
        "attempts               1             2",
        "placed            100.0%         50.0%",
        "ms a decision       1.00          2.00",
        "rejected by Fit        0             1",
        "errors of Mine         0             1",
    ]
    document = json.loads(json.dumps(canary_document([stable, other], 10)))
    assert document["sides"][1]["outcomes"] == {"placed": 1, "unschedulable": 1}


def _ignore(side: str, outcome: str) -> None:
    """Count nothing."""


def test_equal_rules_on_both_sides_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    run = Canary({Side.STABLE: "a", Side.CANARY: "b"}, 10, _ignore)
    assert caplog.messages == []
    run.begin({Side.STABLE: "b", Side.CANARY: "b"})
    assert caplog.messages == ["the canary has the same rules as the other side: both decide alike"]
