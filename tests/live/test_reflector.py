"""Reflectors against a server that drops, forgets, repeats and falls silent, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.live.http.messages import HttpAnswer, HttpRequest
from kdsl.live.watching.watch_source import WatchTimes

from tests.live.fake_api import EXPIRED, FakeApi, FakeStream, answer, status
from tests.live.following import Following, following
from tests.live.virtual import now, run


def server(*names: str) -> FakeApi:
    api = FakeApi()
    for name in names:
        api.put(name)
    return api


def test_begins_with_a_watch_that_lists() -> None:
    async def scenario() -> None:
        api = server("a", "b")
        async with following(api) as it:
            await asyncio.sleep(1)
            assert it.heard.texts() == ["put a", "put b"]
            assert api.kinds == ["watchlist"]
            assert it.health.is_ready and it.health.objects == 2
            api.put("c")
            api.put("a")
            api.delete("b")
            await asyncio.sleep(1)
            assert it.heard.texts() == ["put c", "put a", "drop b"]
            assert it.is_equal and api.kinds == ["watchlist"]

    run(scenario())


def test_events_behind_the_last_object_of_a_list_are_not_lost() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            # The stream is open, and nothing of it was read yet.
            api.on_open = [lambda: api.delete("a"), lambda: api.put("b")]
            await asyncio.sleep(1)
            assert it.is_equal
            assert it.heard.texts() == ["put a", "put b", "drop a"]

    run(scenario())


def test_a_refused_watch_list_is_a_list_and_a_watch() -> None:
    async def scenario() -> None:
        api = server("a", "b")
        api.has_watch_list = False
        async with following(api) as it:
            started = now()
            await asyncio.sleep(1)
            assert api.kinds == ["watchlist", "list 0 limit 500", "watch 102"]
            assert api.requests[-1][0] == started, "without delay"
            assert it.is_equal

    run(scenario())


def test_an_error_frame_refuses_a_watch_list_too() -> None:
    async def scenario() -> None:
        api = server("a")
        message = "a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled"
        api.first_frames = [("ERROR", status(500, message))]
        async with following(api) as it:
            await asyncio.sleep(1)
            assert api.kinds == ["watchlist", "list 0 limit 500", "watch 101"]
            assert it.is_equal

    run(scenario())


def test_a_server_that_never_says_that_all_has_come_is_listed() -> None:
    async def scenario() -> None:
        api = server("a", "b")
        api.ends_initial_events = False
        async with following(api) as it:
            await asyncio.sleep(300)
            assert api.kinds == ["watchlist", "watchlist", "list 0 limit 500", "watch 102"]
            assert it.is_equal and it.heard.texts() == ["put a", "put b"]

    run(scenario())


def test_a_list_without_a_version_is_no_list() -> None:
    async def scenario() -> None:
        api = server("a")
        api.answers = [answer(422, {}), answer(200, {"items": []})]
        async with following(api) as it:
            await asyncio.sleep(0.5)
            assert it.health.error == "malformed: the list cannot be read: it has no resourceVersion"
            await asyncio.sleep(5)
            assert it.is_equal and it.health.is_ready

    run(scenario())


def test_a_list_whose_next_page_is_itself_is_no_list() -> None:
    async def scenario() -> None:
        api = server("a")
        page = answer(200, {"metadata": {"resourceVersion": "5", "continue": "t"}, "items": None})
        api.answers = [answer(422, {}), page, page]
        async with following(api) as it:
            await asyncio.sleep(0.5)
            assert it.health.error == "malformed: the list has the same page again"
            await asyncio.sleep(5)
            assert it.is_equal and it.health.is_ready

    run(scenario())


def test_pages_are_put_together_and_a_page_that_is_too_old_begins_anew() -> None:
    async def scenario() -> None:
        api = server(*(f"n{number}" for number in range(1200)))
        api.has_watch_list = False
        async with following(api) as it:
            await asyncio.sleep(1)
            api.error(status(410, "x", reason="Gone"))
            api.answers = []
            await asyncio.sleep(0.01)
            api.requests.clear()
            api.forget()
            api.version += 50  # what was seen last is older than the pages
            # The version is unusable: the list is paged; the second page comes too late.
            it_answers = [answer(422, status(422, "no")), answer(410, EXPIRED)]
            api.answers = it_answers
            await asyncio.sleep(3)
            assert api.kinds[:3] == ["watchlist 1300", "list 1300", "list limit 500"]
            assert "list limit 500 page" in api.kinds
            assert it.is_equal

    run(scenario())


def test_a_watch_that_ends_at_its_time_goes_on_from_the_last_version() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api, times=WatchTimes(60, 60)) as it:
            await asyncio.sleep(10)
            api.put("b")
            await asyncio.sleep(30)
            api.version += 7  # things of other resources happened
            api.bookmark()
            await asyncio.sleep(21)
            assert api.kinds == ["watchlist", "watch 109"]
            assert it.heard.texts() == ["put a", "put b"]
            assert it.health.failures == 0

    run(scenario())


def test_a_cut_watch_goes_on_at_once_and_nothing_comes_twice() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(10)
            api.cut()
            api.put("b")
            await asyncio.sleep(0.001)
            assert api.kinds == ["watchlist", "watch 101"]
            assert it.heard.texts() == ["put a", "put b"] and it.is_equal

    run(scenario())


@pytest.mark.parametrize(
    "expired", [EXPIRED, status(410, "x", reason="Gone"), status(0, "x", reason="Expired")]
)
def test_a_version_that_is_too_old_is_one_wait_and_a_list(expired: dict[str, object]) -> None:
    async def scenario() -> None:
        api = server("a", "b")
        async with following(api) as it:
            await asyncio.sleep(10)
            it.heard.texts()
            api.freeze()
            api.delete("a")
            api.put("c")
            for stream in api.streams:
                stream.is_frozen = False
            api.error(expired)
            started = now()
            await asyncio.sleep(2)
            assert api.kinds == ["watchlist", "watchlist 102"]
            assert 0.8 <= api.requests[-1][0] - started <= 1.6
            assert it.heard.texts() == ["drop a stale", "put c"], "b did not change"
            assert it.is_equal

    run(scenario())


def test_410_as_an_answer_to_a_watch() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(10)
            api.answers = [answer(410, EXPIRED)]
            api.cut()
            await asyncio.sleep(2)
            assert api.kinds == ["watchlist", "watch 101", "watchlist 101"]
            assert it.heard.texts() == ["put a"]

    run(scenario())


def test_a_version_from_the_future_is_forgotten_at_once() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(10)
            api.version, api.oldest = 50, 50  # the server's storage was restored from a backup
            api.error(EXPIRED)
            await asyncio.sleep(2)
            assert api.kinds == ["watchlist", "watchlist 101", "watchlist"]
            assert it.is_equal

    run(scenario())


def test_a_version_that_a_plain_list_finds_too_large() -> None:
    async def scenario() -> None:
        api = server("a")
        api.has_watch_list = False
        async with following(api) as it:
            await asyncio.sleep(10)
            api.version, api.oldest = 50, 50
            api.error(EXPIRED)
            await asyncio.sleep(2)
            assert api.kinds[-3:] == ["list 101", "list limit 500", "watch 50"]
            assert it.is_equal

    run(scenario())


def test_429_keeps_the_version_and_waits_as_long_as_it_is_told() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(10)
            api.answers = [answer(429, status(429, "slow"), retry_after="7")]
            api.cut()
            await asyncio.sleep(6.9)
            assert api.kinds == ["watchlist", "watch 101"]
            await asyncio.sleep(0.2)
            assert api.kinds == ["watchlist", "watch 101", "watch 101"]
            api.error(status(429, "slow", details={"retryAfterSeconds": 3}))
            await asyncio.sleep(3.1)
            assert api.kinds[-1] == "watch 101" and len(api.kinds) == 4
            api.error(status(429, "slow", details={"retryAfterSeconds": -3}))
            await asyncio.sleep(0.7)
            assert len(api.kinds) == 4, "without a time it waits as after any failure"
            await asyncio.sleep(1)
            assert it.health.error == ""

    run(scenario())


def test_an_event_500_is_a_list() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(10)
            api.error(status(500, "etcd"))
            await asyncio.sleep(2)
            assert api.kinds == ["watchlist", "watchlist 101"]
            assert it.heard.texts() == ["put a"]

    run(scenario())


def test_a_watch_that_ends_at_once_waits() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(10)
            for _ in range(4):
                api.cut()
                await asyncio.sleep(0)
                for stream in api.streams:
                    stream.end()
                await asyncio.sleep(5)
            assert len(api.requests) < 20
            assert it.is_equal

    run(scenario())


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("frame", ["BOOKMARK", "NONSENSE"])
def test_a_watch_that_ends_again_and_again_without_a_change_waits(frame: str, is_lost: bool) -> None:
    class Ending(FakeApi):
        async def open_lines(self, request: HttpRequest, *, timeout: float) -> HttpAnswer | FakeStream:
            stream = await super().open_lines(request, timeout=timeout)
            assert isinstance(stream, FakeStream) and len(self.requests) < 50, "it is asked without a pause"
            if "sendInitialEvents" not in dict(request.query):
                stream.say(frame, {"metadata": {"resourceVersion": str(self.version)}})
            stream.end(is_lost=is_lost)
            return stream

    async def scenario() -> None:
        api = Ending()
        api.put("a")
        async with following(api) as it:
            await asyncio.sleep(60)
            assert len(api.requests) < 50 and it.is_equal

    run(scenario())


def test_silence_is_noticed_by_the_missing_bookmarks() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(60)
            api.bookmark()
            await asyncio.sleep(1)
            api.freeze()
            api.put("b")
            await asyncio.sleep(95)
            assert it.is_equal

    run(scenario())


def test_silence_without_bookmarks_ends_after_the_time_of_the_watch() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api, times=WatchTimes(300, 300)) as it:
            await asyncio.sleep(1)
            api.freeze()
            api.put("b")
            await asyncio.sleep(328)
            assert not it.is_equal
            await asyncio.sleep(2)
            assert it.is_equal

    run(scenario())


def test_an_object_made_anew_unseen_is_a_drop_and_a_put() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(1)
            it.heard.texts()
            api.freeze()
            api.delete("a")
            api.put("a")
            api.cut()
            api.forget()
            await asyncio.sleep(5)
            assert it.heard.texts() == ["drop a stale", "put a"]
            assert it.is_equal

    run(scenario())


def test_an_event_that_comes_twice_is_heard_once() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(1)
            api.put("a")
            api.repeat()
            api.delete("a")
            api.repeat()
            await asyncio.sleep(1)
            assert it.heard.texts() == ["put a", "put a", "drop a"]

    run(scenario())


def test_a_server_that_is_away_is_found_again_soon_after_it_is_back() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(10)
            api.is_down = True
            api.cut()
            await asyncio.sleep(300)
            assert it.health.error == "no answer: connection refused"
            assert len(api.requests) < 20
            api.is_down = False
            api.put("b")
            await asyncio.sleep(1.5)
            assert it.is_equal and it.health.error == ""
            assert api.kinds[-1] == "watch 101", "what was seen is not listed again"

    run(scenario())


def test_what_is_forbidden_is_named_and_tried_again() -> None:
    async def scenario() -> None:
        api = server("a")
        text = 'namespaces is forbidden: User "x" cannot list resource "namespaces"'
        api.answers = [answer(403, status(403, text))] * 5
        async with following(api) as it:
            await asyncio.sleep(0.5)
            assert it.health.error == f"forbidden: {text}" and not it.health.is_ready
            await asyncio.sleep(60)
            assert it.health.is_ready and it.health.error == "" and it.health.failures == 5

    run(scenario())


def test_a_resource_that_the_server_does_not_have_is_absent() -> None:
    async def scenario() -> None:
        api = server()
        api.answers = [answer(404, status(404, "the server could not find the requested resource"))] * 50
        async with following(api) as it:
            await asyncio.sleep(600)
            assert it.health.is_absent and it.health.is_ready and not it.health.is_synced
            assert len(api.requests) < 30
            api.answers.clear()
            await asyncio.sleep(60)
            assert it.health.is_synced and not it.health.is_absent

    run(scenario())


def test_malformed_objects_and_lines_are_counted_and_do_not_stop_the_stream() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(1)
            for stream in api.streams:
                stream.say("ADDED", {"metadata": {"name": "bad", "resourceVersion": "102", "labels": 3}})
                stream.say("ADDED", {"metadata": 7})
                stream.say("NONSENSE", {})
                stream.queue.append(b"not json")
                stream.queue.append(b'"' + b"[" * 100_000)
            api.put("b")
            await asyncio.sleep(1)
            assert it.heard.texts() == ["put a", "put b"]
            assert it.health.malformed == 5

    run(scenario())


def test_an_object_that_becomes_malformed_stays_as_it_was() -> None:
    async def scenario() -> None:
        api = server("a")
        async with following(api) as it:
            await asyncio.sleep(1)
            bad = {"metadata": {"name": "a", "uid": "uid-1", "resourceVersion": "105", "labels": 3}}
            for stream in api.streams:
                stream.say("MODIFIED", bad)
            await asyncio.sleep(1)
            assert it.heard.state == {"a": ("uid-1", "101")}
            api.objects["a"] = bad
            api.error(EXPIRED)
            await asyncio.sleep(3)
            assert it.heard.state == {"a": ("uid-1", "101")}
            api.delete("a")
            await asyncio.sleep(1)
            assert it.heard.texts() == ["put a", "drop a"]

    run(scenario())


ACTIONS = (
    *("put", "put", "put", "delete", "anew", "cut", "freeze", "forget", "repeat", "bookmark", "down", "up"),
    *("410", "429", "500", "503", "refuse", "permit", "wait"),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.sampled_from("abcd"), st.floats(0, 40)), min_size=1, max_size=40
)


async def play(api: FakeApi, steps: list[tuple[str, str, float]]) -> None:
    for action, name, seconds in steps:
        match action:
            case "put":
                api.put(name)
            case "delete":
                api.delete(name)
            case "anew":
                api.delete(name)
                api.put(name)
            case "down":
                api.is_down = True
                api.cut()
            case "up":
                api.is_down = False
            case "410" | "429" | "500":
                api.error(status(int(action), "x", reason="Expired" if action == "410" else ""))
            case "503":
                api.answers.append(answer(503, status(503, "x")))
            case "refuse" | "permit":
                api.has_watch_list = action == "permit"
            case "wait":
                await asyncio.sleep(seconds * 20)
            case _:
                getattr(api, action)()
        await asyncio.sleep(seconds if seconds > 20 else seconds / 100)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(0, 2**16))
def test_whatever_happens_the_end_is_what_the_server_has(
    steps: list[tuple[str, str, float]], seed: int
) -> None:
    async def scenario() -> None:
        api = server("a", "b")
        async with following(api, seed) as it:
            await play(api, steps)
            api.is_down = False
            api.answers.clear()
            await asyncio.sleep(800)
            assert it.is_equal, (it.heard.state, api.objects)
            assert settled(it)

    run(scenario())


def settled(it: Following) -> bool:
    return it.health.is_ready and it.health.malformed == 0
