"""The client over real loopback sockets, and its pace in virtual time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from kdsl.live.access.credentials import FixedCredentials
from kdsl.live.http.client import Client, Sent
from kdsl.live.http.http1 import MAX_HEAD, LineStream, encode
from kdsl.live.http.messages import MERGE_PATCH, HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.http.pacing import Pace
from kdsl.live.http.pool import Pool, ServerAddress

from tests.live.scripted_server import (
    CERTIFICATES,
    STREAM,
    Asked,
    Handler,
    Scripted,
    always,
    answer,
    chunk,
    in_turn,
    server_context,
    serving,
)
from tests.live.virtual import now, run

GET = HttpRequest("GET", "/api/v1/nodes")
POST = HttpRequest("POST", "/api/v1/namespaces/a/pods/b/binding", b'{"x":1}')
OK = answer(200, b'{"kind":"Status"}')


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(CERTIFICATES / "ca.crt"))


@asynccontextmanager
async def client_of(
    server: Scripted,
    *,
    tls: bool = False,
    most: int = 8,
    observer: list[Sent] | None = None,
    timeout: float = 5,
) -> AsyncIterator[Client]:
    context = trusting() if tls else None
    pool = Pool(ServerAddress("127.0.0.1", server.port), lambda: context, most)
    seen = observer.append if observer is not None else None
    yield Client(
        pool,
        FixedCredentials("Bearer t"),
        host="h:1",
        agent="kdsl/0 (test)",
        prefix="/prefix",
        timeout=timeout,
        observer=seen,
    )
    pool.close()


async def asked_of(handler: Handler, request: HttpRequest, **options: object) -> tuple[HttpAnswer, Scripted]:
    async with serving(handler) as server, client_of(server, **options) as client:  # type: ignore[arg-type]
        return await client.send(request), server


def test_a_request_is_what_it_should_be() -> None:
    async def scenario() -> None:
        request = HttpRequest("PATCH", "/api/v1/x%2Fy", b"{}", MERGE_PATCH, (("fieldManager", "k d/&"),))
        got, server = await asked_of(always(answer(201, b"body", "Retry-After: 1", "X-Y: z")), request)
        assert got.status == 201 and got.body == b"body" and got.headers["x-y"] == "z" and got.is_success
        [asked] = server.asked
        assert (asked.method, asked.target) == ("PATCH", "/prefix/api/v1/x%2Fy?fieldManager=k+d%2F%26")
        assert asked.body == b"{}"
        assert asked.headers == {
            "host": "h:1",
            "user-agent": "kdsl/0 (test)",
            "accept": "application/json",
            "authorization": "Bearer t",
            "content-type": MERGE_PATCH,
            "content-length": "2",
        }

    asyncio.run(scenario())


@pytest.mark.parametrize("path", ["no-slash", "/a b", "/a\r\nX: y", "/ä", ""])
def test_a_path_that_is_not_quoted_is_not_sent(path: str) -> None:
    with pytest.raises(ValueError, match="not a quoted path"):
        encode(HttpRequest("GET", path), b"")


def test_connections_are_used_again_and_bounded() -> None:
    async def scenario() -> None:
        async def slowly(asked: Asked, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.005)
            writer.write(OK)

        sent: list[Sent] = []
        async with serving(slowly, server_context()) as server:
            async with client_of(server, tls=True, most=4, observer=sent) as client:
                await asyncio.gather(*(client.send(POST) for _ in range(40)))
            assert server.connections == 4 and len(server.asked) == 40
            assert {(each.verb, each.code, each.host, each.sent) for each in sent} == {
                ("POST", 201 - 1, "h:1", 7)
            }

    asyncio.run(scenario())


def test_a_certificate_that_is_not_trusted_is_named() -> None:
    async def scenario() -> None:
        async with serving(always(OK), server_context()) as server:
            context = ssl.create_default_context()
            pool = Pool(ServerAddress("127.0.0.1", server.port), lambda: context)
            client = Client(pool, FixedCredentials(), host="h", agent="a")
            with pytest.raises(NoAnswerError, match="its certificate is not trusted") as caught:
                await client.try_once(POST)
            assert not caught.value.may_be_done

    asyncio.run(scenario())


def test_nobody_listens() -> None:
    async def scenario() -> None:
        async with serving(always(OK)) as server:
            port = server.port
        client = Client(
            Pool(ServerAddress("127.0.0.1", port), lambda: None), FixedCredentials(), host="h", agent="a"
        )
        with pytest.raises(NoAnswerError, match=f"no connection to 127.0.0.1:{port}") as caught:
            await client.send(POST)
        assert not caught.value.may_be_done

    asyncio.run(scenario())


def test_a_write_whose_answer_is_lost_may_be_done_and_is_not_repeated() -> None:
    async def scenario() -> None:
        async with serving(in_turn(None, OK)) as server, client_of(server) as client:
            with pytest.raises(NoAnswerError) as caught:
                await client.send(POST)
            assert caught.value.may_be_done and len(server.asked) == 1

    asyncio.run(scenario())


def test_a_connection_that_the_server_closed_while_idle_is_not_used() -> None:
    async def scenario() -> None:
        async def once(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(OK)
            await writer.drain()
            writer.close()

        async with serving(once) as server, client_of(server) as client:
            for _ in range(3):
                assert (await client.send(POST)).status == 200
                await asyncio.sleep(0.02)
            assert server.connections == 3

    asyncio.run(scenario())


def test_a_server_that_does_not_answer_in_time() -> None:
    async def scenario() -> None:
        async def never(asked: Asked, writer: asyncio.StreamWriter) -> None:
            return None

        async with serving(never) as server, client_of(server) as client:
            with pytest.raises(NoAnswerError, match="in time") as caught:
                await client.send(POST, timeout=0.05)
            assert caught.value.may_be_done

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"SSH-2.0-x\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * (MAX_HEAD + 10), "head of the answer is larger"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 30_000 + b"\r\n", "head of the answer is larger"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "not HTTP|in time"),
    ],
)
def test_what_is_no_answer(data: bytes, text: str) -> None:
    async def scenario() -> None:
        async with serving(always(data)) as server, client_of(server) as client:
            with pytest.raises(NoAnswerError, match=text):
                await client.try_once(POST, timeout=0.3)

    asyncio.run(scenario())


def test_interim_answers_and_answers_that_end_with_their_connection() -> None:
    async def scenario() -> None:
        async def close(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 103 Early\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nZ: a\r\n\r\nto the end")
            await writer.drain()
            writer.close()

        got, _ = await asked_of(close, POST)
        assert got == HttpAnswer(200, b"to the end", {"z": "a"})

    asyncio.run(scenario())


def test_an_answer_in_pieces() -> None:
    async def scenario() -> None:
        async def pieces(asked: Asked, writer: asyncio.StreamWriter) -> None:
            for byte in STREAM + chunk(b"ab") + chunk(b"c") + b"0\r\n\r\n":
                writer.write(bytes([byte]))
                await writer.drain()

        got, _ = await asked_of(pieces, POST)
        assert got.body == b"abc"

    asyncio.run(scenario())


def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    async def scenario() -> None:
        for behind in (OK, OK[:30], b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nx"):
            async with serving(always(OK + behind)) as server, client_of(server) as client:
                assert (await client.send(POST)).body == (await client.send(POST)).body
                assert len(server.asked) == server.connections == 2

    asyncio.run(scenario())


def test_lines_of_a_stream() -> None:
    async def scenario() -> None:
        async def lines(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(STREAM + chunk(b'{"a"') + chunk(b":1}\n\n{}\n{") + chunk(b"}\nrest"))
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.write(chunk(b"!\n") + b"0\r\n\r\n")

        async with serving(lines) as server, client_of(server) as client:
            stream = await client.open_lines(GET, timeout=2)
            assert isinstance(stream, LineStream)
            got = []
            while batch := await stream.lines(2):
                got += batch
            assert got == [b'{"a":1}', b"{}", b"{}", b"rest!"]
            assert await stream.lines(2) == []

    asyncio.run(scenario())


def test_a_stream_that_is_refused_falls_silent_or_is_cut() -> None:
    async def scenario() -> None:
        async def cut(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(STREAM + chunk(b"{}\n"))
            await writer.drain()
            if asked.target.endswith("/cut"):
                writer.close()

        async with serving(always(answer(410, b"gone"))) as server, client_of(server) as client:
            assert await client.open_lines(GET, timeout=2) == HttpAnswer(
                410, b"gone", {"content-length": "4"}
            )
        for path, text in (("/cut", "closed"), ("/silent", "silent for 0 s")):
            async with serving(cut) as server, client_of(server) as client:
                stream = await client.open_lines(HttpRequest("GET", path), timeout=2)
                assert isinstance(stream, LineStream)
                assert await stream.lines(2) == [b"{}"]
                with pytest.raises(NoAnswerError, match=text):
                    await stream.lines(0.05)

    asyncio.run(scenario())


def test_who_reads_slowly_makes_the_server_wait() -> None:
    async def scenario() -> None:
        written = 0

        async def flood(asked: Asked, writer: asyncio.StreamWriter) -> None:
            nonlocal written
            writer.write(STREAM)
            for _ in range(400):
                writer.write(chunk(b"x" * 99_999 + b"\n"))
                await writer.drain()
                written += 100_000
            writer.write(b"0\r\n\r\n")

        async with serving(flood) as server, client_of(server) as client:
            stream = await client.open_lines(GET, timeout=2)
            assert isinstance(stream, LineStream)
            await asyncio.sleep(0.2)
            assert written < 20_000_000
            read = 0
            while batch := await stream.lines(2):
                read += len(batch)
            assert read == 400

    asyncio.run(scenario())


class Server:
    """Answers in virtual time in place of a pool."""

    def __init__(self, *outcomes: HttpAnswer | NoAnswerError) -> None:
        self.outcomes = list(outcomes)
        self.asked: list[float] = []

    async def ask(self, data: bytes, deadline: float) -> HttpAnswer:
        self.asked.append(now())
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, NoAnswerError):
            raise outcome
        return outcome


def over(server: Server, **more: object) -> Client:
    return Client(server, FixedCredentials(), host="h", agent="a", **more)  # type: ignore[arg-type]


BUSY = HttpAnswer(429, b"", {"retry-after": "3"})
LOST = NoAnswerError("reset", may_be_done=True)


def test_retry_after_is_waited_for_by_all_verbs() -> None:
    async def scenario() -> None:
        server, sent = Server(BUSY, HttpAnswer(503, b"", {"retry-after": "2"}), HttpAnswer(201)), []
        got = await over(server, observer=sent.append).send(POST)
        assert got.status == 201 and [when - server.asked[0] for when in server.asked] == [0, 3, 5]
        assert [(each.code, each.repeats) for each in sent] == [(429, 0), (503, 1), (201, 2)]

    run(scenario())


def test_what_is_not_wanted_any_more_is_not_sent_again() -> None:
    async def scenario() -> None:
        server = Server(BUSY)
        end = now() + 4
        request = HttpRequest("POST", "/api/v1/namespaces/a/pods/b/binding", is_wanted=lambda: now() < end)
        with pytest.raises(NoAnswerError, match="not wanted") as raised:
            await over(server).send(request)
        assert not raised.value.may_be_done
        assert [when - server.asked[0] for when in server.asked] == [0, 3]

    run(scenario())


def test_ten_repeats_are_enough() -> None:
    async def scenario() -> None:
        server = Server(BUSY)
        assert (await over(server).send(POST)).status == 429
        assert len(server.asked) == 11

    run(scenario())


@pytest.mark.parametrize(
    "got",
    [
        HttpAnswer(429),
        HttpAnswer(500),
        HttpAnswer(409, b"", {"retry-after": "1"}),
        HttpAnswer(429, b"", {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}),
        HttpAnswer(429, b"", {"retry-after": "99999"}),
        HttpAnswer(504, b'{"reason":"ResourceVersionTooLarge"}', {"retry-after": "1"}),
    ],
)
def test_other_answers_are_returned_as_they_are(got: HttpAnswer) -> None:
    async def scenario() -> None:
        server = Server(got)
        assert await over(server).send(POST) is got and len(server.asked) == 1

    run(scenario())


def test_reads_are_repeated_when_they_are_not_answered() -> None:
    async def scenario() -> None:
        server = Server(LOST, LOST, HttpAnswer(200))
        assert (await over(server).send(GET)).status == 200
        assert [when - server.asked[0] for when in server.asked] == [0, 1, 2]
        server = Server(LOST)
        with pytest.raises(NoAnswerError):
            await over(server).send(GET)
        assert len(server.asked) == 11
        server = Server(LOST)
        with pytest.raises(NoAnswerError):
            await over(server).try_once(GET)
        assert len(server.asked) == 1

    run(scenario())


def test_a_timeout_holds_for_all_repeats() -> None:
    async def scenario() -> None:
        server = Server(BUSY)
        assert (await over(server).send(POST, timeout=7)).status == 429
        assert len(server.asked) == 3

    run(scenario())


def test_pace() -> None:
    async def scenario() -> None:
        server = Server(HttpAnswer(200))
        client = over(server, pace=Pace(qps=10, burst=5))
        started = now()
        await asyncio.gather(*(client.send(POST) for _ in range(25)))
        assert [round(when - started, 1) for when in server.asked] == [0] * 5 + [n / 10 for n in range(1, 21)]

    run(scenario())


def test_pace_slows_down_after_429_and_recovers() -> None:
    async def scenario() -> None:
        pace = Pace(qps=100, burst=100)
        client = over(Server(HttpAnswer(429)), pace=pace)
        for _ in range(50):
            await client.send(POST)
        assert pace.speed == 50, "many answers of one second count once"
        await asyncio.sleep(2)
        await client.send(POST)
        assert pace.speed < 50
        await asyncio.sleep(40)
        await pace.take()
        assert pace.speed == 100

    run(scenario())


class Rotated:
    """Credentials of which the first are not accepted any more."""

    def __init__(self, *headers: str) -> None:
        self.headers = list(headers)
        self.refused: list[str] = []

    async def header(self) -> str:
        return self.headers[0]

    def refuse(self, header: str) -> bool:
        self.refused.append(header)
        if len(self.headers) > 1:
            self.headers.pop(0)
        return True


def test_401_is_one_more_try_with_other_credentials() -> None:
    async def scenario() -> None:
        async def check(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(OK if asked.headers["authorization"] == "new" else answer(401))

        async with serving(check) as server:
            pool = Pool(ServerAddress("127.0.0.1", server.port), lambda: None)
            credentials = Rotated("old", "new")
            client = Client(pool, credentials, host="h", agent="a")
            assert (await client.send(POST)).status == 200 and len(server.asked) == 2
            client = Client(pool, Rotated("old"), host="h", agent="a")
            assert (await client.send(POST)).status == 401
            pool.close()

    asyncio.run(scenario())
