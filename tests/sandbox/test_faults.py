"""Every fault that can be switched on, as a client meets it."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from kdsl.sandbox import Answer, BreakWatch, Delay, LoseAnswer, LoseRequest, Match

from tests.sandbox.talk import PODS, Talk, binding, eventually, node, pod, talking

BINDINGS = Match("POST", "*/pods/a/binding")


def test_single_requests_are_answered_by_faults() -> None:
    async def run() -> None:
        async with talking() as talk:
            await talk("POST", PODS, pod())
            faults = talk.sandbox.faults
            faults.once(BINDINGS, Answer(500))
            faults.once(BINDINGS, Answer(429, retry_after=2))
            statuses = [(await talk("POST", f"{PODS}/a/binding", binding()))[0] for _ in range(4)]
            # The third is carried out, the fourth finds the pod bound.
            assert statuses == [500, 429, 201, 409]
            requests = talk.sandbox.recorder.matching("POST", "*/binding")
            assert [item.status for item in requests] == statuses
            assert [item.fault for item in requests] == ["answered 500", "answered 429", "", ""]
            assert requests[0].document["target"] == {"kind": "Node", "name": "n1"}

    asyncio.run(run())


def test_a_lost_answer_was_carried_out_and_a_lost_request_was_not() -> None:
    async def run() -> None:
        async with talking() as talk:
            for name in ("a", "b"):
                await talk("POST", PODS, pod(name))
            faults = talk.sandbox.faults
            faults.once(BINDINGS, LoseAnswer())
            faults.once(Match("POST", "*/pods/b/binding"), LoseRequest())
            for name in ("a", "b"):
                with pytest.raises((OSError, asyncio.IncompleteReadError)):
                    await talk("POST", f"{PODS}/{name}/binding", binding(name))
            bound = {name: (await talk("GET", f"{PODS}/{name}"))[1]["spec"].get("nodeName") for name in "ab"}
            assert bound == {"a": "n1", "b": None}
            faults_said = [item.fault for item in talk.sandbox.recorder.matching("POST", "*/binding")]
            assert faults_said == ["answer lost", "request lost"]

    asyncio.run(run())


def test_delays_and_latency() -> None:
    async def run() -> None:
        async with talking() as talk:
            clock = asyncio.get_running_loop().time
            talk.sandbox.faults.once(Match(path="/version"), Delay(0.1))
            begin = clock()
            await talk("GET", "/version")
            assert clock() - begin >= 0.1
            talk.sandbox.faults.latency = 0.05
            begin = clock()
            await talk("GET", "/version")
            assert clock() - begin >= 0.05

    asyncio.run(run())


def test_watches_end_go_silent_and_break() -> None:
    async def run() -> None:
        async with talking() as talk:
            faults = talk.sandbox.faults
            frames = talk.frames(PODS)
            first = asyncio.ensure_future(anext(frames, None))
            await eventually(lambda: _has_watches(talk, 1))
            faults.silence_watches("pods")
            await asyncio.sleep(0.05)
            await talk("POST", PODS, pod())
            await asyncio.sleep(0.1)
            assert not first.done()
            faults.drop_watches()
            assert await first is None
            faults.once(Match(query="*watch=true*"), BreakWatch(410))
            broken = [frame async for frame in talk.frames(PODS)]
            assert [(frame["type"], frame["object"]["code"]) for frame in broken] == [("ERROR", 410)]

    asyncio.run(run())


async def _has_watches(talk: Talk, count: int) -> bool:
    return len(talk.sandbox.faults.watches.open) == count


def test_a_refused_watch_list_is_answered_in_the_stream() -> None:
    async def run() -> None:
        async with talking() as talk:
            talk.sandbox.faults.refuse_watch_list()
            query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            frames = [frame async for frame in talk.frames(PODS, **query)]
            assert [frame["object"]["code"] for frame in frames] == [500]
            assert "RequestWatchProgress is disabled" in frames[0]["object"]["message"]

    asyncio.run(run())


def test_a_partition_refuses_connections_until_it_heals() -> None:
    async def run() -> None:
        async with talking() as talk:
            await talk("POST", "/api/v1/nodes", node())
            url = talk.sandbox.url
            talk.sandbox.faults.partition()
            await asyncio.sleep(0.05)
            for _ in range(2):
                with pytest.raises((OSError, asyncio.IncompleteReadError)):
                    await talk("GET", "/api/v1/nodes/n1")
            talk.sandbox.faults.heal()
            await asyncio.sleep(0.05)
            assert talk.sandbox.url == url
            assert (await talk("GET", "/api/v1/nodes/n1"))[0] == 200

    asyncio.run(run())


def test_a_restart_cuts_watches_and_forgets_history_but_no_objects() -> None:
    async def run() -> None:
        async with talking() as talk:
            _, before = await talk("POST", PODS, pod())
            watch = asyncio.ensure_future(_all_frames(talk))
            await eventually(lambda: _has_watches(talk, 1))
            talk.sandbox.faults.restart()
            assert await watch == ["ADDED"]
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await talk("GET", PODS)
            _, after = await talk("GET", PODS)
            assert [item["metadata"]["uid"] for item in after["items"]] == [before["metadata"]["uid"]]
            assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
            old = before["metadata"]["resourceVersion"]
            frames = [frame async for frame in talk.frames(PODS, resourceVersion=old)]
            assert [frame["object"]["reason"] for frame in frames] == ["Expired"]

    asyncio.run(run())


async def _all_frames(talk: Talk) -> list[str]:
    found = []
    try:
        async for frame in talk.frames(PODS):
            found.append(frame["type"])
    except (OSError, ValueError, asyncio.IncompleteReadError):
        # The connection was cut in the middle of the stream.
        return found
    return found


def test_rights_and_tokens_are_taken_away() -> None:
    async def run() -> None:
        async with talking() as talk:
            faults = talk.sandbox.faults
            faults.forbid("nodes", "list")
            assert (await talk("GET", "/api/v1/nodes"))[0] == 403
            assert (await talk("GET", "/api/v1/nodes/x"))[0] == 404
            faults.permit("nodes", "list")
            assert (await talk("GET", "/api/v1/nodes"))[0] == 200
            faults.rotate_token("admin")
            assert (await talk("GET", "/api/v1/nodes"))[0] == 401
            talk.token = talk.sandbox.token
            assert (await talk("GET", "/api/v1/nodes"))[0] == 200

    asyncio.run(run())


def test_faults_are_posted_by_administrators_only() -> None:
    async def run() -> None:
        async with talking() as talk:
            rule = {"action": "answer", "code": 503, "path": "/version", "times": 2}
            code, state = await talk("POST", "/kdsl-sandbox/faults", rule)
            assert (code, state["rules"]) == (200, [{"action": "Answer", "left": 2, "used": 0}])
            assert [(await talk("GET", "/version"))[0] for _ in range(3)] == [503, 503, 200]
            assert (await talk("POST", "/kdsl-sandbox/switches", {"switch": "latency", "value": "0.01"}))[
                0
            ] == 200
            assert talk.sandbox.faults.latency == 0.01
            assert (await talk("POST", "/kdsl-sandbox/switches", {"switch": "clear"}))[0] == 200
            assert talk.sandbox.faults.latency == 0
            code, said = await talk("POST", "/kdsl-sandbox/switches", {"switch": "nonsense"})
            assert code == 400 and "no such fault: nonsense" in said["error"]
            assert (await talk("POST", "/kdsl-sandbox/faults", {"action": "answer", "cod": 1}))[0] == 400
            _, seen = await talk("GET", "/kdsl-sandbox/requests")
            assert [item["status"] for item in seen["requests"]] == [503, 503, 200]
            team = Talk(talk.sandbox, "team")
            assert (await team("GET", "/kdsl-sandbox/faults"))[0] == 403
            await team.close()

    asyncio.run(run())


def test_the_recorder_is_bounded_and_can_be_off() -> None:
    async def run(records: int) -> int:
        async with talking(records=records) as talk:
            for _ in range(4):
                await talk("GET", "/version")
            return len(talk.sandbox.recorder.requests)

    assert asyncio.run(run(3)) == 3
    assert asyncio.run(run(0)) == 0


def test_bodies_are_bounded() -> None:
    async def run() -> None:
        async with talking() as talk:
            body: dict[str, Any] = {"metadata": {"name": "big"}, "data": {"a": "x" * (4 * 1024 * 1024)}}
            try:
                code, _ = await talk("POST", "/api/v1/namespaces/default/configmaps", body)
            except (OSError, asyncio.IncompleteReadError):
                code = 413
            assert code == 413
            assert json.dumps(body)

    asyncio.run(run())


def test_plain_http_is_not_served() -> None:
    async def run() -> None:
        async with talking() as talk:
            plain = talk.sandbox.url.replace("https", "http")

            def read() -> None:
                urllib.request.urlopen(plain, timeout=2)

            with pytest.raises((OSError, urllib.error.URLError)):
                await asyncio.to_thread(read)

    asyncio.run(run())
