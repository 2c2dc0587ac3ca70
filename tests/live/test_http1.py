"""Bytes of a connection in any pieces: answers and lines come out the same."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.live.http import http1
from kdsl.live.http.http1 import Connection, LineStream
from kdsl.live.http.messages import HttpAnswer, NoAnswerError

from tests.live.scripted_server import STREAM, answer, chunk
from tests.live.virtual import now, run


class Wire(asyncio.Transport):
    """The other end of a connection, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places)]


def connected() -> tuple[Connection, Wire]:
    connection, wire = Connection(asyncio.get_running_loop()), Wire()
    connection.connection_made(wire)
    return connection, wire


CUTS = st.lists(st.integers(0, 5000), max_size=30)
BODIES = st.lists(st.binary(max_size=60), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None)
@given(BODIES, CUTS)
def test_answers_of_one_connection(bodies: list[bytes], cuts: list[int]) -> None:
    async def scenario() -> None:
        connection, wire = connected()
        for body in bodies:
            asked = asyncio.ensure_future(connection.ask(b"request", now() + 10))
            await asyncio.sleep(0)
            for piece in pieces(answer(200, body), cuts):
                connection.data_received(piece)
            assert (await asked).body == body
        assert connection.is_usable and wire.written == b"request" * len(bodies)

    run(scenario())


LINES = st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=20)


@settings(max_examples=100, deadline=None)
@given(LINES, CUTS, CUTS)
def test_lines_of_a_stream(lines: list[bytes], chunks: list[int], cuts: list[int]) -> None:
    async def scenario() -> None:
        connection, _ = connected()
        opened = asyncio.ensure_future(connection.open_lines(b"request", now() + 10))
        await asyncio.sleep(0)
        text = b"".join(line + b"\n" for line in lines)
        data = STREAM + b"".join(map(chunk, pieces(text, chunks))) + b"0\r\n\r\n"
        for piece in pieces(data, cuts):
            connection.data_received(piece)
        stream = await opened
        assert isinstance(stream, LineStream)
        got = []
        while batch := await stream.lines(10):
            got += batch
        assert got == [line for line in lines if line]

    run(scenario())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(st.binary(max_size=50), st.sampled_from([answer(200, b"x"), STREAM, chunk(b"{}\n")])),
        max_size=6,
    )
)
def test_any_bytes_are_an_answer_or_none(data: list[bytes]) -> None:
    async def scenario() -> None:
        connection, _ = connected()
        asked = asyncio.ensure_future(connection.open_lines(b"request", now() + 10))
        await asyncio.sleep(0)
        for piece in data:
            connection.data_received(piece)
        connection.connection_lost(None)
        try:
            outcome = await asked
        except NoAnswerError as error:
            assert error.may_be_done
        else:
            assert isinstance(outcome, HttpAnswer | LineStream)

    run(scenario())


def test_a_line_without_an_end_is_bounded_and_does_not_block() -> None:
    async def scenario() -> None:
        connection, wire = connected()
        opened = asyncio.ensure_future(connection.open_lines(b"request", now() + 10))
        await asyncio.sleep(0)
        connection.data_received(STREAM)
        stream = await opened
        assert isinstance(stream, LineStream)
        piece = chunk(b"x" * http1.READ_AHEAD)
        for _ in range(http1.MAX_LINE // http1.READ_AHEAD):
            connection.data_received(piece)
            assert not wire.is_paused, "a line that is not complete is waited for"
        connection.data_received(piece)
        assert wire.is_closed
        with pytest.raises(NoAnswerError, match="a line of the answer is larger"):
            await stream.lines(10)

    run(scenario())


def test_a_caller_that_is_cancelled_leaves_no_connection_behind() -> None:
    async def scenario() -> None:
        connection, wire = connected()
        asked = asyncio.ensure_future(connection.ask(b"request", now() + 10))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait((asked,))
        assert wire.is_closed

    run(scenario())
