"""The paths over HTTP with a behaviour that does as it is told: limits, the queue, and calls that go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kdsl.extender.gate import SMALL, FullError, Gate, Limits
from kdsl.extender.ports import NotReadyError, RefusedError
from kdsl.extender.protocol import (
    AdmissionReview,
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)
from kdsl.extender.server import ExtenderServer
from kdsl.live.serving.listening import Bounds, Listener
from starlette.responses import PlainTextResponse
from starlette.types import Message

from tests.extender.site import post, read_reply

POD = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"containers": []}}
CALL = {"Pod": POD, "NodeNames": ["n1"]}
REVIEW = {
    "kind": "AdmissionReview",
    "apiVersion": "admission.k8s.io/v1",
    "request": {"uid": "u", "object": POD},
}
BODIES: dict[str, Any] = {
    "filter": CALL,
    "prioritize": CALL,
    "preempt": {"Pod": POD, "NodeNameToMetaVictims": {}},
    "bind": {"PodName": "a", "PodNamespace": "default", "PodUID": "u", "Node": "n1"},
    "webhook": REVIEW,
}


class Told:
    """A behaviour that raises `error`, if there is one, and waits for `go`."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.go = asyncio.Event()
        self.go.set()
        self.under_way = self.most = self.begun = 0
        self.calls: list[tuple[str, int]] = []

    def called(self, verb: str, status: int, seconds: float) -> None:
        self.calls.append((verb, status))

    async def _do(self) -> None:
        self.under_way += 1
        self.begun += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.go.wait()
            if self.error is not None:
                raise self.error
        finally:
            self.under_way -= 1

    async def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        await self._do()
        return ExtenderFilterResult(node_names=args.names)

    async def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]:
        await self._do()
        return [HostPriority(name, 1) for name in args.names]

    async def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        await self._do()
        return ExtenderPreemptionResult(args.meta_victims or {})

    async def bind(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        await self._do()
        return ExtenderBindingResult()

    async def admit(self, review: AdmissionReview) -> AdmissionReview:
        await self._do()
        return review.allowed()


@asynccontextmanager
async def serving(limits: Limits | None = None, prefix: str = "") -> AsyncIterator[tuple[Told, Gate, int]]:
    """Serve a behaviour; yield it, the gate and the port."""
    told, gate = Told(), Gate(limits or Limits())
    server = ExtenderServer(told, gate, told, prefix)
    listener = Listener(server.beside(PlainTextResponse("beside")), None, Bounds(1000))
    await listener.start("127.0.0.1", 0)
    try:
        yield told, gate, listener.port
    finally:
        told.go.set()
        await listener.stop()


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


async def until(check: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not check():
            await asyncio.sleep(0.005)


def test_each_verb_is_answered_below_the_prefix() -> None:
    async def scenario() -> None:
        async with serving(prefix="/x/") as (told, _, port):
            answers = {verb: await post(port, f"/x/{verb}", body) for verb, body in BODIES.items()}
            assert answers["filter"].body == b'{"NodeNames":["n1"]}'
            assert answers["prioritize"].body == b'[{"Host":"n1","Score":1}]'
            assert answers["preempt"].body == b'{"NodeNameToMetaVictims":{}}'
            assert answers["bind"].body == b"{}"
            assert answers["webhook"].json["response"]["allowed"] is True
            assert {each.headers["content-type"] for each in answers.values()} == {"application/json"}
            assert told.calls == [(verb, 200) for verb in BODIES]
            assert (await post(port, "/filter", CALL)).body == b"beside"

    run(scenario)


def test_only_post_is_answered() -> None:
    async def scenario() -> None:
        async with serving() as (_, _, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /filter HTTP/1.1\r\nHost: localhost\r\n\r\n")
            reply = await read_reply(reader)
            writer.close()
            assert (reply.status, reply.headers["allow"]) == (405, "POST")
            assert reply.json == {"Error": "GET is not answered here: only POST is"}

    run(scenario)


@pytest.mark.parametrize("verb", BODIES)
def test_what_cannot_be_read_is_an_error_in_json(verb: str) -> None:
    async def scenario() -> None:
        async with serving() as (told, _, port):
            for body in (b"", b"{", b"[" * 100_000, b"\xff\xfe", b"{}"):
                reply = await post(port, f"/{verb}", body)
                assert reply.status == 400 and reply.json["Error"], (body[:10], reply)
            assert not told.begun
            assert (await post(port, f"/{verb}", BODIES[verb])).status == 200

    run(scenario)


@pytest.mark.parametrize(
    ("verb", "status"), [("filter", 200), ("bind", 200), ("prioritize", 500), ("preempt", 500)]
)
@pytest.mark.parametrize("error", [RefusedError("not today"), ZeroDivisionError("not today")])
def test_what_goes_wrong_is_told_where_kube_scheduler_shows_it(
    verb: str, status: int, error: Exception
) -> None:
    async def scenario() -> None:
        async with serving() as (told, gate, port):
            told.error = error
            reply = await post(port, f"/{verb}", BODIES[verb])
            assert reply.status == status and "not today" in reply.json["Error"]
            assert gate.calls == gate.bytes == 0

    run(scenario)


def test_who_is_not_ready_asks_to_come_again() -> None:
    async def scenario() -> None:
        async with serving() as (told, _, port):
            told.error = NotReadyError("the cluster is not known yet")
            reply = await post(port, "/filter", CALL)
            assert (reply.status, reply.headers["retry-after"]) == (503, "1")
            assert reply.json == {"Error": "the cluster is not known yet"}

    run(scenario)


def test_calls_beyond_the_limit_are_turned_away_at_once() -> None:
    async def scenario() -> None:
        async with serving(Limits(calls=5, at_once=2)) as (told, gate, port):
            told.go.clear()
            waiting = [asyncio.create_task(post(port, "/filter", CALL)) for _ in range(5)]
            await until(lambda: gate.calls == 5 and told.under_way == 2)
            reply = await post(port, "/filter", CALL)
            assert (reply.status, reply.headers["retry-after"]) == (503, "1")
            assert reply.json == {"Error": "5 calls are under way"}
            told.go.set()
            assert [(await each).status for each in waiting] == [200] * 5
            assert (told.most, gate.calls, gate.bytes) == (2, 0, 0)

    run(scenario)


def test_bindings_do_not_keep_others_from_being_worked_on() -> None:
    async def scenario() -> None:
        async with serving(Limits(at_once=1)) as (told, _, port):
            told.go.clear()
            bindings = [asyncio.create_task(post(port, "/bind", BODIES["bind"])) for _ in range(4)]
            await until(lambda: told.under_way == 4)
            filtered = asyncio.create_task(post(port, "/filter", CALL))
            await until(lambda: told.under_way == 5)
            told.go.set()
            assert [(await each).status for each in (*bindings, filtered)] == [200] * 5

    run(scenario)


def test_a_body_that_is_too_large_is_not_read() -> None:
    async def scenario() -> None:
        async with serving(Limits(body=1000)) as (told, gate, port):
            reply = await post(port, "/filter", b" " * 1001)
            assert (reply.status, reply.json) == (413, {"Error": "the body has more than 1000 bytes"})
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /filter HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(b"258\r\n" + b" " * 600 + b"\r\n258\r\n" + b" " * 600 + b"\r\n")
            assert (await read_reply(reader)).status == 413
            writer.close()
            assert not told.begun and not gate.bytes

    run(scenario)


def test_all_bodies_together_are_bounded() -> None:
    async def scenario() -> None:
        async with serving(Limits(body=3 * SMALL, bodies=3 * SMALL)) as (told, gate, port):
            told.go.clear()
            body = {**CALL, "Filler": " " * 2 * SMALL}
            first = asyncio.create_task(post(port, "/filter", body))
            await until(lambda: told.under_way == 1)
            assert 2 * SMALL < gate.bytes <= 3 * SMALL
            reply = await post(port, "/filter", body)
            assert reply.status == 503 and "bytes" in reply.json["Error"]
            told.go.set()
            assert (await first).status == 200 and not gate.bytes

    run(scenario)


def test_bodies_that_do_not_come_keep_no_other_call_away() -> None:
    async def scenario() -> None:
        async with serving(Limits(calls=2)) as (_, gate, port):
            slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            for _, writer in slow:
                writer.write(b"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
            await until(lambda: gate.bytes == len(slow))
            assert (await post(port, "/filter", CALL)).status == 200
            for _, writer in slow:
                writer.close()

    run(scenario)


def test_large_bodies_that_do_not_come_keep_no_usual_call_away() -> None:
    async def scenario() -> None:
        async with serving(Limits(bodies=2 * SMALL)) as (_, gate, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
            writer.write(b" " * 2 * SMALL)
            await until(lambda: gate.bytes == gate.limits.bodies)
            assert (await post(port, "/filter", CALL)).status == 200
            assert (await post(port, "/filter", {**CALL, "Filler": " " * SMALL})).status == 503
            writer.close()
            await until(lambda: gate.bytes == 0)

    run(scenario)


def test_large_bodies_that_stall_give_up_their_room_to_another() -> None:
    async def scenario() -> None:
        limits = Limits(body=2 * SMALL, bodies=4 * SMALL, body_within=1000, patience=0.01)
        async with serving(limits) as (_, gate, port):
            stalled = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for _, writer in stalled:
                writer.write(b"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (2 * SMALL))
                writer.write(b" " * (2 * SMALL - 1))
            await until(lambda: gate.bytes == 4 * SMALL - 2)
            async with asyncio.timeout(20):
                while (reply := await post(port, "/filter", {**CALL, "Filler": " " * SMALL})).status == 503:
                    await asyncio.sleep(0.005)
            assert reply.status == 200
            first = await read_reply(stalled[0][0])
            assert (first.status, first.json) == (
                408,
                {"Error": "the body came slowly, and another needed its room"},
            )
            # The other one had room beside it, and goes on.
            stalled[1][1].write(b" ")
            assert (await read_reply(stalled[1][0])).status == 400
            for _, writer in stalled:
                writer.close()
            assert gate.calls == gate.bytes == 0

    run(scenario)


def test_a_body_whose_end_comes_as_it_gives_up_its_room_is_not_kept() -> None:
    body = json.dumps({**CALL, "Filler": " " * SMALL}).encode()
    sent: list[Message] = []

    async def scenario() -> None:
        told = Told()
        gate = Gate(Limits(body=2 * SMALL, bodies=2 * SMALL, body_within=1000, patience=0))
        server = ExtenderServer(told, gate, told).beside(PlainTextResponse("beside"))
        parts = iter((body[:-1], body[-1:]))

        async def receive() -> Message:
            part = next(parts)
            if len(part) == 1:
                await asyncio.sleep(0.001)
                with gate.holding() as other:
                    other.add(2 * SMALL)
            return {"type": "http.request", "body": part, "more_body": len(part) > 1}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/filter", "headers": []}
        await server(scope, receive, send)
        assert told.calls == [("filter", 408)] and not told.begun and not gate.bytes

    run(scenario)
    assert sent[0]["status"] == 408


def test_a_large_body_gives_up_its_room_only_while_it_is_late() -> None:
    time = 0.0
    stopped: list[str] = []
    # One `SMALL` a second is in time.
    gate = Gate(Limits(body=10 * SMALL, bodies=6 * SMALL, body_within=10, patience=1), lambda: time)
    with gate.holding() as steady, gate.holding() as slow, gate.holding() as new:
        steady.arriving(lambda: stopped.append("steady"))
        slow.arriving(lambda: stopped.append("slow"))
        slow.add(3 * SMALL)
        for _ in range(4):
            time += 0.5
            steady.add(SMALL // 2)
            # A byte now and then gives no more time.
            slow.add(1)
        new.add(2 * SMALL)
        assert stopped == ["slow"] and slow.is_given_up
        assert gate.bytes == 4 * SMALL
        time += 0.9
        with pytest.raises(FullError, match=f"have {4 * SMALL} bytes"):
            new.add(3 * SMALL)
        time += 0.2
        new.add(3 * SMALL)
        assert stopped == ["slow", "steady"]
        # It does not make room for itself.
        time += 10
        with pytest.raises(FullError):
            new.add(2 * SMALL)
        assert gate.bytes == new.bytes == 5 * SMALL
    assert not gate.bytes


def test_a_body_that_does_not_come_is_given_up() -> None:
    async def scenario() -> None:
        async with serving(Limits(body_within=0.1)) as (_, gate, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b'POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"Pod":')
            reply = await read_reply(reader)
            writer.close()
            assert (reply.status, reply.json) == (408, {"Error": "the body did not come within 0.1 s"})
            assert gate.calls == gate.bytes == 0

    run(scenario)


def test_who_hangs_up_is_not_worked_for() -> None:
    async def scenario() -> None:
        async with serving(Limits(at_once=1)) as (told, gate, port):
            told.go.clear()
            first = asyncio.create_task(post(port, "/filter", CALL))
            await until(lambda: told.under_way == 1)
            second = asyncio.create_task(post(port, "/filter", CALL))
            await until(lambda: gate.calls == 2)
            second.cancel()
            # The server must hear of it before the first call ends.
            await asyncio.sleep(0.1)
            told.go.set()
            assert (await first).status == 200
            await until(lambda: gate.calls == 0)
            assert told.begun == 1 and ("filter", 499) in told.calls

    run(scenario)


def test_two_hundred_calls_at_once_are_answered_a_few_at_a_time() -> None:
    async def scenario() -> None:
        async with serving() as (told, gate, port):
            calls = [post(port, "/filter", {"Pod": POD, "NodeNames": [f"n{at}"]}) for at in range(200)]
            answers = await asyncio.gather(*calls)
            assert [each.json for each in answers] == [{"NodeNames": [f"n{at}"]} for at in range(200)]
            assert told.most <= gate.limits.at_once and gate.calls == gate.bytes == 0

    run(scenario)


def test_texts_of_callers_change_no_terminal() -> None:
    async def scenario() -> None:
        async with serving() as (told, _, port):
            told.error = RefusedError("node \x1b[2J\u202e")
            assert (await post(port, "/bind", BODIES["bind"])).json == {"Error": r"node \x1b[2J\u202e"}

    run(scenario)
