"""A shadow follows pods from their first sight to their node, and decides them as the other one binds them."""

from __future__ import annotations

import json

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, NodeVerdict, Outcome
from kdsl.live.rules import shadow as shadows
from kdsl.live.rules.comparison_reports import shadow_document, shadow_text
from kdsl.live.rules.differences import DifferenceCause
from kdsl.live.rules.shadow import Shadow
from kdsl.live.watching.changes import LivePod, ObjectChange, PodCondition, Verb
from pytest import MonkeyPatch

REFUSED = (PodCondition("PodScheduled", "False", "Unschedulable", "no"),)


class Seen:
    def __init__(self) -> None:
        self.decided: list[str] = []
        self.causes: list[str] = []

    def decide(self, pod: PodInfo) -> Decision | None:
        assert not pod.node_name
        self.decided.append(pod.key)
        if pod.scheduler_name == "other":
            return None
        verdicts = (NodeVerdict("n1", True, total=1), NodeVerdict("n2", True, total=1))
        if pod.name == "large":
            return Decision(pod.key, "p", Outcome.UNSCHEDULABLE, message="too large")
        return Decision(pod.key, "p", Outcome.PLACED, node="n1", verdicts=verdicts)

    def compared(self, cause: str) -> None:
        self.causes.append(cause)


def change(
    name: str,
    node: str = "",
    uid: str = "u",
    verb: Verb = Verb.PUT,
    conditions: tuple[PodCondition, ...] = (),
    **fields: object,
) -> ObjectChange:
    pod = PodInfo(name, uid=uid, node_name=node).with_fields(**fields)
    return ObjectChange(verb, "pods", pod.key, uid, "1", LivePod(pod, "1", conditions=conditions))


def test_a_pod_is_decided_when_it_is_bound_and_compared_once() -> None:
    seen = Seen()
    shadow = Shadow(seen.decide, seen.compared)
    assert shadow.take(change("a")) is None and shadow.take(change("a")) is None
    assert seen.decided == []
    found = shadow.take(change("a", "n1"))
    assert found is not None and found.is_equal
    assert shadow.take(change("a", "n1")) is None
    assert seen.decided == ["default/a"] and seen.causes == ["equal"]


def test_a_difference_is_kept_with_its_cause() -> None:
    seen = Seen()
    shadow = Shadow(seen.decide, seen.compared)
    shadow.take(change("a"))
    shadow.take(change("a", "n2"))
    shadow.take(change("b"))
    report = shadow.report()
    assert (report.compared, report.equal, report.waiting) == (1, 0, 1)
    assert report.causes == {DifferenceCause.TIE: 1}
    assert shadow_text(report) == (
        "1 pod compared, 0 equal (0.0%), 1 not bound yet\n\n"
        "PODS  CAUSE  RULE\n   1  tie\n\n"
        "POD        OURS  THEIRS  WHY\ndefault/a  n1    n2      both nodes have equal totals"
    )
    document = json.loads(json.dumps(shadow_document(report)))
    assert document["differences"][0]["cause"] == "tie" and document["causes"] == {"tie": 1}


def test_a_pod_that_only_we_would_place_is_counted_once() -> None:
    seen = Seen()
    shadow = Shadow(seen.decide, seen.compared)
    for name in ("a", "large"):
        shadow.take(change(name))
        shadow.take(change(name, conditions=REFUSED))
        shadow.take(change(name, conditions=REFUSED))
    assert seen.causes == ["ours only"]
    assert shadow.report().waiting == 2


def test_pods_that_are_not_compared() -> None:
    seen = Seen()
    shadow = Shadow(seen.decide, seen.compared)
    assert shadow.take(change("old", "n1")) is None  # bound before it was seen
    shadow.take(change("gated", scheduling_gates=("g",)))
    shadow.take(change("going", deletion_timestamp=1))
    shadow.take(change("other", scheduler_name="other"))
    assert shadow.take(change("other", "n1", scheduler_name="other")) is None
    shadow.take(change("deleted"))
    shadow.take(change("deleted", verb=Verb.DROP))
    assert shadow.take(change("deleted", "n1")) is None
    assert seen.decided == ["default/other"] and seen.causes == []


def test_another_pod_of_the_name_is_another_pod() -> None:
    seen = Seen()
    shadow = Shadow(seen.decide, seen.compared)
    shadow.take(change("a"))
    assert shadow.take(change("a", "n1", uid="w")) is None
    assert shadow.take(change("a", "n1")) is None
    assert seen.decided == []


def test_what_is_kept_has_a_bound(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(shadows, "MAX_WAITING", 2)
    seen = Seen()
    shadow = Shadow(seen.decide, seen.compared)
    for name in "abc":
        shadow.take(change(name))
    assert shadow.report().waiting == 2
    assert shadow.take(change("a", "n1")) is None
