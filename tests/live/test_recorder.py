"""Events are recorded in series, repeated while the server is away, and dropped where there are too many."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable

import pytest
from kdsl.live.http.lanes import SHARES, Lane
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.process import events_api
from kdsl.live.writing.api import Api
from kdsl.live.writing.events import Event, EventsApi, EventType, Reference, cut, event_name
from kdsl.live.writing.recorder import EventRecorder

from tests.live.timeless import LOST, OK, REFUSED, Counts, LoopClock, Script, run, status

HOUR = 3600.0


def event(name: str = "a", version: str = "1", note: str = "n", reason: str = "FailedScheduling") -> Event:
    about = Reference("Pod", "default", name, f"uid-{name}", version)
    kind = EventType.WARNING
    return Event.of(about, kind, reason, "Scheduling", note, controller="default-scheduler", host="h")


def recorded(
    script: Script,
    scene: Callable[[EventRecorder], Awaitable[None]],
    api: EventsApi = EventsApi.EVENTS,
    capacity: int = 1000,
) -> Counts:
    counts = Counts()

    async def go() -> None:
        recorder = EventRecorder(Api(script), LoopClock(), api, counts, capacity=capacity, jitter=lambda: 0.0)
        recorder.start()
        await scene(recorder)
        await recorder.close()

    run(go())
    return counts


def answers(*these: HttpAnswer | NoAnswerError) -> Script:
    left = list(these)
    return Script(lambda request: left.pop(0) if left else OK)


def repeats(times: int, pause: float = 1.0, **fields: str) -> Callable[[EventRecorder], Awaitable[None]]:
    async def scene(recorder: EventRecorder) -> None:
        for _ in range(times):
            recorder.record(event(**fields))
            await asyncio.sleep(pause)

    return scene


def test_the_first_is_posted_the_second_patched_the_others_counted() -> None:
    script = Script()
    recorded(script, repeats(5))
    made, patched = script.sent
    assert made[1].method == "POST"
    name = script.bodies("POST")[0]["metadata"]["name"]
    assert name == f"a.{1_763_868_483 * 10**9:x}"
    assert patched[1].path == f"/apis/events.k8s.io/v1/namespaces/default/events/{name}"
    assert patched[1].content_type == "application/strategic-merge-patch+json"
    assert script.bodies("PATCH") == [
        {"series": {"count": 2, "lastObservedTime": "2025-11-23T03:28:04.000000Z"}}
    ]


def test_a_clock_that_is_set_back_stamps_events_with_its_new_time() -> None:
    times, script = [3 * 10**9, 3 * 10**9, 10**9, 2 * 10**9], Script()

    class Back:
        def now(self) -> int:
            return times.pop(0)

    async def go() -> None:
        recorder = EventRecorder(Api(script), Back())
        recorder.start()
        for name in "aaaa":
            recorder.record(event(name, version=str(len(times))))
        await asyncio.sleep(1)
        await recorder.close()

    run(go())
    made = script.bodies("POST")
    assert [each["eventTime"][17:19] for each in made] == ["03", "03", "01", "02"]
    assert len({each["metadata"]["name"] for each in made}) == 4


def test_in_core_v1_another_text_is_another_event() -> None:
    async def scene(recorder: EventRecorder) -> None:
        for note in ("x became leader", "x stopped leading", "x became leader"):
            recorder.record(event(note=note))
            await asyncio.sleep(1.0)

    script = Script()
    recorded(script, scene, EventsApi.CORE)
    assert [body["message"] for body in script.bodies("POST")] == ["x became leader", "x stopped leading"]
    assert [body["count"] for body in script.bodies("PATCH")] == [2]


def test_another_version_of_the_pod_begins_another_series() -> None:
    script = Script()

    async def scene(recorder: EventRecorder) -> None:
        for version in ("1", "2", "2"):
            recorder.record(event(version=version, note=f"not in the key {version}"))
            await asyncio.sleep(1)

    recorded(script, scene)
    assert [line.split()[0] for line in script.lines] == ["POST", "POST", "PATCH"]


def test_a_series_that_is_quiet_for_six_minutes_gets_its_count_and_ends() -> None:
    script = Script()

    async def scene(recorder: EventRecorder) -> None:
        await repeats(5)(recorder)
        await asyncio.sleep(0.3 * HOUR)
        recorder.record(event())
        await asyncio.sleep(1)

    recorded(script, scene)
    assert [line.split()[0] for line in script.lines] == ["POST", "PATCH", "PATCH", "POST"]
    assert script.bodies("PATCH")[1]["series"]["count"] == 5
    assert 360 <= script.sent[2][0] <= 720


def test_a_series_that_goes_on_is_brought_up_to_date_every_half_hour() -> None:
    script = Script()
    recorded(script, repeats(61, pause=60.0))
    patches = [(time, request) for time, request in script.sent if request.method == "PATCH"]
    assert [round(time / 60) for time, _ in patches] == [1, 30, 60]
    counts = [body["series"]["count"] for body in script.bodies("PATCH")]
    assert counts == [2, 30, 60]


def test_a_single_event_is_forgotten_after_six_minutes_without_a_word() -> None:
    script = Script()
    recorded(script, repeats(2, pause=0.3 * HOUR))
    assert [line.split()[0] for line in script.lines] == ["POST", "POST"]


def test_a_patch_of_an_event_that_is_gone_makes_it_anew_with_its_series() -> None:
    script = answers(OK, status(404, "not found"))
    recorded(script, repeats(2))
    assert [line.split()[0] for line in script.lines] == ["POST", "PATCH", "POST"]
    first, again = script.bodies("POST")
    assert again == {**first, "series": {"count": 2, "lastObservedTime": "2025-11-23T03:28:04.000000Z"}}


def test_repeats_while_the_first_is_on_its_way_are_one_patch() -> None:
    script = Script(delay=lambda request: 5.0)

    async def scene(recorder: EventRecorder) -> None:
        await repeats(3)(recorder)
        await asyncio.sleep(20)

    recorded(script, scene)
    assert [line.split()[0] for line in script.lines] == ["POST", "PATCH"]
    assert script.bodies("PATCH")[0]["series"]["count"] == 3
    assert script.most == 1


@pytest.mark.parametrize("failure", [REFUSED, LOST])
def test_a_server_that_cannot_be_reached_is_tried_twelve_times(failure: NoAnswerError) -> None:
    script = Script(lambda request: failure)

    async def scene(recorder: EventRecorder) -> None:
        recorder.record(event())
        await asyncio.sleep(HOUR)

    counts = recorded(script, scene)
    times = [time for time, _ in script.sent]
    assert len(times) == 12
    assert all(round(b - a) == 10 for a, b in itertools.pairwise(times))
    assert counts.dropped_events == {"failed": 1}


def test_an_event_whose_answer_was_lost_is_there_already() -> None:
    script = answers(LOST, status(409, 'events "a.1" already exists', "AlreadyExists"))
    counts = recorded(script, repeats(1, pause=20))
    assert counts.dropped_events == {}
    assert len(script.sent) == 2


@pytest.mark.parametrize("code", [403, 409, 422, 500])
def test_an_answer_is_the_end_of_it(code: int) -> None:
    script = answers(status(code, "no"))
    counts = recorded(script, repeats(1, pause=HOUR / 2))
    assert len(script.sent) == 1
    assert counts.dropped_events == {"failed": 1}


def test_what_is_too_much_is_dropped_and_counted() -> None:
    script = Script(delay=lambda request: 1.0)

    async def scene(recorder: EventRecorder) -> None:
        taken = [recorder.record(event(f"p{number}")) for number in range(30)]
        assert taken.count(True) == 10
        await asyncio.sleep(10)
        assert recorder.is_idle

    counts = recorded(script, scene, capacity=10)
    assert counts.dropped_events == {"dropped": 20}
    assert len(script.sent) == 10
    assert counts.longest == {"event": 10}


def test_few_events_are_under_way_at_once_and_all_arrive() -> None:
    script = Script(delay=lambda request: 0.05)

    async def scene(recorder: EventRecorder) -> None:
        for number in range(500):
            recorder.record(event(f"p{number}"))
        await asyncio.sleep(10)

    recorded(script, scene)
    assert script.most == SHARES[Lane.EVENT]
    names = [body["metadata"]["name"] for body in script.bodies("POST")]
    assert len(set(names)) == 500


def test_without_the_events_group_they_are_core_events() -> None:
    script = Script()
    recorded(script, repeats(2), EventsApi.CORE)
    assert script.lines[0] == "POST /api/v1/namespaces/default/events"
    (body,) = script.bodies("POST")
    assert body["involvedObject"]["resourceVersion"] == "1"
    assert body["message"] == "n"
    assert (body["source"], body["count"]) == ({"component": "default-scheduler"}, 1)
    assert (body["firstTimestamp"], body["eventTime"]) == ("2025-11-23T03:28:03Z", None)
    assert script.bodies("PATCH") == [{"count": 2, "lastTimestamp": "2025-11-23T03:28:04Z"}]


@pytest.mark.parametrize(
    ("answer", "api"),
    [(OK, EventsApi.EVENTS), (status(404, "no such group"), EventsApi.CORE), (LOST, EventsApi.EVENTS)],
)
def test_which_api_events_go_to_is_asked(answer: HttpAnswer | NoAnswerError, api: EventsApi) -> None:
    script = answers(answer)
    assert run(events_api(script)) is api
    assert script.lines == ["GET /apis/events.k8s.io/v1"]


def test_a_note_is_cut_between_characters() -> None:
    for text in ("x" * 2000, "é" * 2000, "日本" * 700, "🙂" * 500, "a" + "🙂" * 500):
        short = cut(text, 1024)
        assert 1016 < len(short.encode()) <= 1024
        assert short.endswith(" ...")
        assert text.startswith(short[:-4])
    assert cut("é" * 512, 1024) == "é" * 512
    assert cut("half \ud800", 1024) == "half \\ud800"


def test_a_per_cent_sign_stays_what_it_is() -> None:
    script = Script()
    recorded(script, repeats(1, note="100% of %s nodes %!d(MISSING)"))
    assert script.bodies()[0]["note"] == "100% of %s nodes %!d(MISSING)"


def test_a_name_that_is_none_becomes_a_uuid() -> None:
    assert event_name("pod-a.b", 255) == "pod-a.b.ff"
    for name in ("Pod", "x" * 251, "a_b", "ä", ""):
        made = event_name(name, 255)
        assert len(made) == 36
        assert made == event_name(name, 255) != event_name(name, 256)


def test_a_long_host_is_cut() -> None:
    found = Event.of(
        Reference("Pod", "n", "p", "u"), EventType.NORMAL, "R", "A", "n", controller="c", host="h" * 300
    )
    assert len(found.instance) == 128


def test_series_are_patched_in_order_while_the_queue_is_long() -> None:
    script = Script(delay=lambda request: 0.5 if request.method == "POST" else 0.001)

    async def scene(recorder: EventRecorder) -> None:
        for _ in range(3):
            for number in range(40):
                recorder.record(event(f"p{number}"))
        await asyncio.sleep(30)

    recorded(script, scene)
    by_name: dict[str, list[str]] = {}
    for _, request in script.sent:
        by_name.setdefault(_name(request), []).append(request.method)
    assert len(by_name) == 40
    assert all(methods in (["POST", "PATCH"], ["POST"]) for methods in by_name.values())
    assert sum(methods == ["POST", "PATCH"] for methods in by_name.values()) == 40


def _name(request: HttpRequest) -> str:
    if request.method == "PATCH":
        return request.path.rpartition("/")[2]
    name: str = json.loads(request.body)["metadata"]["name"]
    return name
