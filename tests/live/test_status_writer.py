"""Conditions are written beside the scheduling thread: merged by pod, repeated, and never before bindings."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cycle.decision import Condition
from kdsl.live.access.credentials import FixedCredentials
from kdsl.live.http.client import Client
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.watching.changes import LivePod, PodCondition
from kdsl.live.writing.api import Api
from kdsl.live.writing.conditions import StatusWish
from kdsl.live.writing.outcomes import Done
from kdsl.live.writing.status_writer import StatusWriter

from tests.live.idle import until_idle
from tests.live.pods import live_pod
from tests.live.timeless import LOST, OK, REFUSED, Counts, LoopClock, Script, run, status

UID_MISMATCH = status(422, 'Pod "a" is invalid: metadata.uid: Invalid value', "Invalid", "metadata.uid")
NOT_FOUND = status(404, 'pods "a" not found', "NotFound")
BOUND = status(422, "Forbidden: may not be set on pods that are bound", "Invalid", "status.nominatedNodeName")


def wish(message: str = "m", nominated: str | None = None) -> StatusWish:
    return StatusWish(Condition("PodScheduled", "False", "Unschedulable", message), nominated)


def written(
    script: Script,
    submits: Callable[[StatusWriter], object],
    capacity: int = 100,
    in_flight: int = 32,
    seconds: float = 60,
) -> Counts:
    counts = Counts()

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock(), counts, capacity=capacity, in_flight=in_flight)
        writer.start()
        submits(writer)
        assert await until_idle(seconds, writer)
        await writer.close()

    run(go())
    return counts


def answers(*these: HttpAnswer | NoAnswerError) -> Script:
    """Give these answers, then success."""
    left = list(these)
    return Script(lambda request: left.pop(0) if left else OK)


def test_a_wish_that_the_status_grants_already_sends_nothing() -> None:
    known = PodCondition("PodScheduled", "False", "Unschedulable", "m", "2026-01-01T00:00:00Z", 3)
    script = Script()
    written(script, lambda writer: writer.submit(live_pod(conditions=(known,)), wish()))
    assert script.sent == []


def test_the_newest_wish_for_a_pod_is_written_and_a_nomination_is_kept() -> None:
    script = Script()

    def submits(writer: StatusWriter) -> None:
        writer.submit(live_pod(), wish("old", "n1"))
        writer.submit(live_pod(), wish("new"))

    written(script, submits)
    (body,) = script.bodies()
    assert body["status"]["conditions"][0]["message"] == "new"
    assert body["status"]["nominatedNodeName"] == "n1"


@pytest.mark.parametrize(
    "failure", [status(409, "modified"), status(500, "x"), status(503, "x"), LOST, REFUSED]
)
def test_a_patch_is_repeated_after_10_50_and_250_ms(failure: HttpAnswer | NoAnswerError) -> None:
    script = answers(failure, failure, failure)
    written(script, lambda writer: writer.submit(live_pod(), wish()))
    times = [time for time, _ in script.sent]
    assert [round(b - a, 3) for a, b in itertools.pairwise(times)] == [0.011, 0.051, 0.251]
    assert len({request.body for _, request in script.sent}) == 1


def test_what_fails_four_times_is_given_up_and_tried_again_at_the_next_attempt() -> None:
    script = answers(*[status(500, "x")] * 4)

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock())
        writer.start()
        for expected in (4, 5):
            writer.submit(live_pod(), wish())
            assert await until_idle(10, writer)
            assert len(script.sent) == expected
        await writer.close()

    run(go())


@pytest.mark.parametrize("answer", [status(403, "no"), status(422, "no"), status(429, "slow")])
def test_other_refusals_are_not_repeated(answer: HttpAnswer, caplog: pytest.LogCaptureFixture) -> None:
    script = answers(answer)
    written(script, lambda writer: writer.submit(live_pod(), wish()))
    assert len(script.sent) == 1
    assert "is not written" in caplog.text


@pytest.mark.parametrize("answer", [NOT_FOUND, UID_MISMATCH, BOUND])
def test_a_pod_that_is_gone_or_another_or_bound_is_left_alone(
    answer: HttpAnswer, caplog: pytest.LogCaptureFixture
) -> None:
    script = answers(answer)
    written(script, lambda writer: writer.submit(live_pod(), wish()))
    assert len(script.sent) == 1
    assert not caplog.records


def test_a_pod_that_is_bound_or_forgotten_is_not_written() -> None:
    script = Script()

    def submits(writer: StatusWriter) -> None:
        writer.submit(live_pod("bound", node="n1"), wish())
        writer.submit(live_pod("gone"), wish())
        writer.forget("uid-gone")
        writer.forget("uid-never-seen")

    written(script, submits)
    assert script.sent == []


def test_a_full_queue_takes_only_what_replaces() -> None:
    script = Script()
    taken: list[bool] = []

    def submits(writer: StatusWriter) -> None:
        taken.extend(writer.submit(live_pod(name), wish(name)) for name in ("a", "b", "c", "a"))

    counts = written(script, submits, capacity=2)
    assert taken == [True, True, False, True]
    assert len(script.sent) == 2
    assert counts.longest["status"] == 2


def test_patches_of_one_pod_follow_one_another() -> None:
    script = Script(delay=lambda request: 1.0)

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock())
        writer.start()
        for number in range(3):
            writer.submit(live_pod(), wish(f"m{number}"))
            await asyncio.sleep(0.1)
        assert await until_idle(10, writer)
        await writer.close()

    run(go())
    assert script.most == 1
    assert [body["status"]["conditions"][0]["message"] for body in script.bodies()] == ["m0", "m2"]


def test_while_the_watch_is_late_the_last_patch_counts() -> None:
    def answer(request: HttpRequest) -> HttpAnswer:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "m",
            "lastProbeTime": None,
            "lastTransitionTime": None,
        }
        meta = {"uid": "uid-a", "resourceVersion": "2", "generation": 1}
        pod = {"metadata": meta, "spec": {}, "status": {"conditions": [condition], "nominatedNodeName": "n1"}}
        return HttpAnswer(200, json.dumps(pod).encode())

    script = Script(answer)

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock())
        writer.start()
        for wanted in (wish("m", "n1"), wish("m", "n1"), wish("other", "n1")):
            writer.submit(live_pod(version="1"), wanted)
            assert await until_idle(10, writer)
        await writer.close()

    run(go())
    first, second = script.bodies()
    assert first["status"]["nominatedNodeName"] == "n1"
    assert second["status"] == {
        "$setElementOrder/conditions": [{"type": "PodScheduled"}],
        "conditions": [{"message": "other", "observedGeneration": 1, "type": "PodScheduled"}],
    }


def test_a_watch_that_shows_an_earlier_patch_does_not_hide_the_last_nomination() -> None:
    """The nomination is withdrawn although the watch shows the pod's condition and not yet its nomination."""

    def answer(request: HttpRequest) -> HttpAnswer:
        is_first = len(script.sent) == 1
        meta = {"uid": "uid-a", "resourceVersion": "2" if is_first else "10"}
        state = {} if is_first else {"nominatedNodeName": "n1"}
        return HttpAnswer(200, json.dumps({"metadata": meta, "spec": {}, "status": state}).encode())

    script = Script(answer)

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock())
        writer.start()
        for version, wanted in (("1", wish("m")), ("1", StatusWish(None, "n1")), ("2", wish("other", ""))):
            writer.submit(live_pod(version=version), wanted)
            assert await until_idle(10, writer)
        await writer.close()

    run(go())
    assert [body["status"].get("nominatedNodeName", "unchanged") for body in script.bodies()] == [
        "unchanged",
        "n1",
        None,
    ]


def test_a_newer_wish_ends_the_repeats_of_an_older_one() -> None:
    script = Script(lambda request: status(500, "x") if b"old" in request.body else OK)

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock())
        writer.start()
        writer.submit(live_pod(), wish("old"))
        await asyncio.sleep(0.03)
        writer.submit(live_pod(), wish("new"))
        assert await until_idle(10, writer)
        await writer.close()

    run(go())
    assert [b"new" in request.body for _, request in script.sent] == [False, False, True]


def test_a_patch_that_waits_for_its_repetition_is_not_sent_once_its_pod_is_forgotten() -> None:
    async def go() -> list[str]:
        script = Script(lambda request: HttpAnswer(429, b"", {"retry-after": "1"}))
        client = Client(Asked(script), FixedCredentials(), host="h", agent="a")  # type: ignore[arg-type]
        writer = StatusWriter(Api(client), LoopClock())
        writer.start()
        pod = live_pod()
        writer.submit(pod, wish())
        await asyncio.sleep(1.5)
        writer.forget(pod.info.uid)
        began = asyncio.get_running_loop().time()
        await writer.settled(pod.info.uid)
        assert asyncio.get_running_loop().time() - began < 1
        await writer.close()
        return script.lines

    assert len(run(go())) == 2


class Asked:
    """A pool whose answers are those of a script."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def ask(self, data: bytes, deadline: float) -> HttpAnswer:
        method, path, *_ = data.decode().split(" ")
        return await self._script.send(HttpRequest(method, path))


def test_two_thousand_conditions_do_not_keep_bindings_waiting() -> None:
    script = Script(delay=lambda request: 0.02)

    async def go() -> float:
        api = Api(script)
        writer = StatusWriter(api, LoopClock())
        writer.start()
        for number in range(2000):
            assert writer.submit(live_pod(f"p{number}"), wish())
        await asyncio.sleep(0.001)
        binds = await asyncio.gather(*(api.bind(live_pod(f"b{n}").info, "n1") for n in range(500)))
        assert all(isinstance(bind, Done) for bind in binds)
        took = asyncio.get_running_loop().time()
        assert not writer.is_idle
        assert await until_idle(60, writer)
        await writer.close()
        return took

    # 500 bindings, 48 at a time, are 11 rounds of 20 ms; the conditions alone take 63 rounds.
    assert run(go()) < 0.3
    assert script.most <= 64
    assert len(script.sent) == 2500


def test_threads_submit_at_once() -> None:
    script = Script()

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock(), capacity=5000)
        writer.start()

        def submit(thread: int) -> None:
            for number in range(100):
                writer.submit(live_pod(f"p{thread}-{number}"), wish())

        threads = [threading.Thread(target=submit, args=(each,)) for each in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert await until_idle(60, writer)
        await writer.close()

    run(go())
    assert len(set(script.lines)) == len(script.lines) == 400


def test_what_is_submitted_before_the_start_is_written() -> None:
    script = Script()

    async def go(writer: StatusWriter) -> None:
        writer.start()
        assert await until_idle(1, writer)
        await writer.close()

    writer = StatusWriter(Api(script), LoopClock())
    writer.submit(live_pod(), wish())
    run(go(writer))
    assert len(script.sent) == 1


def test_closing_ends_what_is_under_way() -> None:
    script = Script(delay=lambda request: 1000.0)

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock(), in_flight=1)
        writer.start()
        writer.submit(live_pod("a"), wish())
        writer.submit(live_pod("b"), wish())
        await asyncio.sleep(0.1)
        await writer.close()
        assert writer.is_idle
        assert asyncio.get_running_loop().time() < 1

    run(go())
    assert len(script.sent) == 1


def test_the_time_of_a_condition_moves_with_its_status_only() -> None:
    gated = PodCondition("PodScheduled", "True", "", "", "2026-01-01T00:00:00Z", 1)
    script = Script()
    pod: LivePod = live_pod(conditions=(gated,))
    written(script, lambda writer: writer.submit(pod, wish()))
    (body,) = script.bodies()
    assert body["status"]["conditions"] == [
        {
            "lastTransitionTime": "2025-11-23T03:28:03Z",
            "message": "m",
            "reason": "Unschedulable",
            "status": "False",
            "type": "PodScheduled",
        }
    ]


def test_after_a_lost_answer_nobody_knows_what_the_status_says() -> None:
    script = answers(LOST)

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock())
        writer.start()
        writer.submit(live_pod(), wish("m", "n1"))
        await asyncio.sleep(0.005)
        writer.submit(live_pod(), wish("m", ""))  # what the watch still shows
        assert await until_idle(10, writer)
        await writer.close()

    run(go())
    lost, sent = script.bodies()
    assert lost["status"]["nominatedNodeName"] == "n1"
    assert sent["status"]["nominatedNodeName"] is None
    assert sent["status"]["conditions"][0]["message"] == "m"


def test_while_the_server_is_away_wishes_wait_for_it() -> None:
    script = Script()
    script.answer = lambda request: OK if asyncio.get_running_loop().time() > 30 else REFUSED
    written(script, lambda writer: [writer.submit(live_pod(f"p{n}"), wish()) for n in range(100)], seconds=60)
    # Each pod is written once the server is back, after tries that fail.
    assert {request.path for time, request in script.sent if time > 30} == {
        request.path for _, request in script.sent
    }
    assert len(script.sent) < 4 * 32 * 31  # and it is not besieged


class Server:
    """Keeps conditions and nominations of pods as patches leave them."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self.nominated: dict[str, str] = {}

    def take(self, request: HttpRequest) -> None:
        name = request.path.split("/")[-2]
        patch = json.loads(request.body)["status"]
        for condition in patch.get("conditions", ()):
            self.messages[name] = condition["message"]
        if "nominatedNodeName" in patch:
            self.nominated[name] = patch["nominatedNodeName"] or ""

    def answer(self, request: HttpRequest) -> HttpAnswer:
        name = request.path.split("/")[-2]
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        condition["message"] = self.messages.get(name, "")
        meta = {"uid": f"uid-{name}", "resourceVersion": "9", "generation": 1}
        pod_status = {"conditions": [condition], "nominatedNodeName": self.nominated.get(name, "")}
        return HttpAnswer(200, json.dumps({"metadata": meta, "spec": {}, "status": pod_status}).encode())


FAULTS = st.sampled_from(["none", "none", "before", "after", "409", "500"])
STEPS = st.tuples(
    st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from([None, "", "n1"]), st.integers(0, 600)
)


@given(steps=st.lists(STEPS, min_size=1, max_size=12), faults=st.lists(FAULTS, max_size=30))
def test_whatever_fails_the_last_wish_is_granted(
    steps: list[tuple[str, str, str | None, int]], faults: list[str]
) -> None:
    server, left = Server(), list(faults)
    last: dict[str, StatusWish] = {}

    def answer(request: HttpRequest) -> HttpAnswer | NoAnswerError:
        fault = left.pop(0) if left else "none"
        if fault == "before":
            return REFUSED
        if fault in ("409", "500"):
            return status(int(fault), "x")
        server.take(request)
        return LOST if fault == "after" else server.answer(request)

    async def go() -> None:
        writer = StatusWriter(Api(Script(answer, delay=lambda request: 0.1)), LoopClock())
        writer.start()
        for name, message, nominated, pause in steps:
            given_wish = wish(message, nominated)
            writer.submit(live_pod(name), given_wish)
            last[name] = given_wish.over(last.get(name, StatusWish()))
            await asyncio.sleep(pause / 1000)
        for _ in range(len(faults) // 4 + 1):  # what failed for good is wished again at the next attempt
            assert await until_idle(300, writer)
            for name, wanted in last.items():
                writer.submit(live_pod(name), wanted)
        assert await until_idle(300, writer)
        await writer.close()

    run(go())
    for name, wanted in last.items():
        assert wanted.condition is not None
        assert server.messages[name] == wanted.condition.message
        if wanted.nominated is not None:
            assert server.nominated.get(name, "") == wanted.nominated
