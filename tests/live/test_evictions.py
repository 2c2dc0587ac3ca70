"""Victims go in kube-scheduler's order; what goes wrong leaves the last one where it is."""

from __future__ import annotations

import asyncio

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Condition
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.watching.changes import LivePod, PodCondition
from kdsl.live.writing.api import Api
from kdsl.live.writing.evictions import Eviction, Evictions, PlannedPreemption
from kdsl.live.writing.recorder import EventRecorder
from kdsl.live.writing.reporter import Reporter

from tests.live.pods import live_pod
from tests.live.timeless import LOST, OK, Counts, LoopClock, Script, run, status

WHY = Condition("DisruptionTarget", "True", "PreemptionByScheduler", "default-scheduler: preempting")
BOUND = (PodCondition("PodScheduled", "True", "", "", "2026-01-01T00:00:00Z", 0),)
PREEMPTOR = PodInfo("high", "default", "uid-high")


def victim(name: str) -> Eviction:
    return Eviction(live_pod(name, node="n1", conditions=BOUND), WHY)


def preemption(*names: str, displaced: tuple[LivePod, ...] = ()) -> PlannedPreemption:
    return PlannedPreemption(PREEMPTOR, "n1", "default-scheduler", tuple(map(victim, names)), displaced)


def carried_out(script: Script, *these: PlannedPreemption) -> tuple[list[tuple[str, str]], Counts]:
    """Carry preemptions out; return how each ended."""
    ended: list[tuple[str, str]] = []
    counts = Counts()

    async def go() -> None:
        clock, api = LoopClock(), Api(script)
        recorder = EventRecorder(api, clock)
        evictions = Evictions(
            api,
            recorder,
            Reporter("h"),
            clock,
            lambda done, problem: ended.append((done.preemptor.name, problem)),
            counts,
        )
        recorder.start()
        evictions.start()
        for each in these:
            assert evictions.submit(each)
        while not (evictions.is_idle and recorder.is_idle):
            await asyncio.sleep(0.1)
        await evictions.close()
        await recorder.close()

    run(go())
    return ended, counts


def of(script: Script, name: str) -> list[str]:
    """Return the requests for one pod: its patch, deletion and event."""
    found = []
    for _, request in script.sent:
        if f"/pods/{name}" in request.path:
            found.append(request.method)
        elif f'"name":"{name}.'.encode() in request.body:
            found.append("EVENT")
    return found


def failing(method: str, name: str, answer: HttpAnswer | NoAnswerError) -> Script:
    def answers(request: HttpRequest) -> HttpAnswer | NoAnswerError:
        return answer if request.method == method and f"/pods/{name}" in request.path else OK

    return Script(answers)


def test_one_victim_is_told_deleted_and_recorded() -> None:
    script = Script()
    ended, _ = carried_out(script, preemption("low"))
    assert ended == [("high", "")]
    assert of(script, "low") == ["PATCH", "DELETE", "EVENT"]
    patch, deletion, event = script.bodies()
    assert patch["metadata"] == {"uid": "uid-low"}
    assert patch["status"]["$setElementOrder/conditions"] == [
        {"type": "PodScheduled"},
        {"type": "DisruptionTarget"},
    ]
    assert deletion == {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "uid-low"}}
    assert event["note"] == "Preempted by pod uid-high on node n1"
    assert (event["reason"], event["action"], event["type"]) == ("Preempted", "Preempting", "Normal")


def test_the_last_victim_goes_when_all_the_others_did() -> None:
    slow = Script(delay=lambda request: 0.5 if "v3" in request.path else 0.001)
    ended, _ = carried_out(slow, preemption("v1", "v2", "v3", "last"))
    assert ended == [("high", "")]
    lines = slow.lines
    last = lines.index("PATCH /api/v1/namespaces/default/pods/last/status")
    assert {f"DELETE /api/v1/namespaces/default/pods/v{n}" for n in (1, 2, 3)} <= set(lines[:last])


def test_at_most_sixteen_victims_go_at_once() -> None:
    script = Script(delay=lambda request: 0.1)
    ended, counts = carried_out(script, preemption(*(f"v{number}" for number in range(40))))
    assert ended == [("high", "")]
    ((is_done, seconds),) = counts.preemptions
    assert is_done and 0.5 < seconds < 5
    assert 16 <= script.most <= 32  # and the events of those before
    assert len([line for line in script.lines if line.startswith("DELETE")]) == 40


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_victim_that_is_gone_is_no_problem_and_no_event(method: str) -> None:
    gone = status(404, 'pods "v1" not found', "NotFound")
    script = failing(method, "v1", gone)
    ended, _ = carried_out(script, preemption("v1", "last"))
    assert ended == [("high", "")]
    assert "EVENT" not in of(script, "v1")
    assert of(script, "last") == ["PATCH", "DELETE", "EVENT"]


def test_another_pod_under_the_name_is_not_deleted() -> None:
    text = "the UID in the precondition (x) does not match the UID in record (y)."
    script = failing("DELETE", "v1", status(409, text, "Conflict"))
    ended, _ = carried_out(script, preemption("v1"))
    assert ended == [("high", "")]
    assert of(script, "v1") == ["PATCH", "DELETE"]


@pytest.mark.parametrize("answer", [status(500, "x"), status(403, "no"), LOST])
def test_a_deletion_that_fails_leaves_the_last_victim_alone(answer: HttpAnswer | NoAnswerError) -> None:
    script = failing("DELETE", "v1", answer)
    ended, counts = carried_out(script, preemption("v1", "last"))
    assert [is_done for is_done, _ in counts.preemptions] == [False]
    ((name, problem),) = ended
    assert name == "high"
    assert "pod default/v1 is not evicted" in problem
    assert of(script, "v1") == ["PATCH", "DELETE"]
    assert of(script, "last") == []


def test_a_problem_ends_what_has_not_begun() -> None:
    script = failing("PATCH", "v0", status(403, "no"))
    ended, _ = carried_out(script, preemption(*(f"v{number}" for number in range(100))))
    assert ended[0][1] != ""
    deleted = [line for line in script.lines if line.startswith("DELETE")]
    assert len(deleted) < 16


def test_a_condition_that_is_there_is_not_written_again() -> None:
    known = (*BOUND, PodCondition("DisruptionTarget", "True", WHY.reason, WHY.message, "t", 1))
    again = Eviction(live_pod("low", node="n1", conditions=known), WHY)
    script = Script()
    carried_out(script, PlannedPreemption(PREEMPTOR, "n1", "default-scheduler", (again,)))
    assert of(script, "low") == ["DELETE", "EVENT"]


def test_pods_of_lower_priority_lose_their_promise_first_and_keep_nobody_up() -> None:
    mid = live_pod("mid", nominated="n1")
    script = failing("PATCH", "mid", status(403, "no"))
    ended, _ = carried_out(script, preemption("low", displaced=(mid, live_pod("none"))))
    assert ended == [("high", "")]
    assert script.bodies()[0] == {"metadata": {"uid": "uid-mid"}, "status": {"nominatedNodeName": None}}
    assert of(script, "none") == []
    assert of(script, "low") == ["PATCH", "DELETE", "EVENT"]


def test_a_preemption_without_bound_victims_ends_at_once() -> None:
    script = Script()
    ended, _ = carried_out(script, preemption())
    assert ended == [("high", "")]
    assert script.sent == []


def test_too_many_preemptions_are_turned_away() -> None:
    async def go() -> list[bool]:
        clock, api = LoopClock(), Api(Script())
        evictions = Evictions(
            api, EventRecorder(api, clock), Reporter("h"), clock, lambda done, problem: None
        )
        return [evictions.submit(preemption("a")) for _ in range(1001)]

    assert run(go()).count(False) == 1


def test_several_preemptions_are_carried_out_beside_each_other() -> None:
    script = Script(delay=lambda request: 1.0)
    ended, _ = carried_out(script, preemption("a"), preemption("b"), preemption("c"))
    assert [name for name, _ in ended] == ["high"] * 3
    assert max(time for time, request in script.sent if request.method == "DELETE") < 1.5


def test_a_victim_that_goes_already_is_left_alone() -> None:
    script = Script()
    info = PodInfo("going", "default", "uid-going", node_name="n1", deletion_timestamp=1)
    these = (Eviction(LivePod(info, "1", 1, BOUND), WHY), victim("bound"))
    ended, _ = carried_out(script, PlannedPreemption(PREEMPTOR, "n1", "default-scheduler", these))
    assert ended == [("high", "")]
    assert of(script, "going") == [] and of(script, "bound") == ["PATCH", "DELETE", "EVENT"]
