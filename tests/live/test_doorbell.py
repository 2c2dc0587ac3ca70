"""Rings from any thread are answered once on the loop's; a crew keeps to its limit and tells of errors."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest
from kdsl.live.writing.doorbell import Crew, Doorbell

from tests.live.timeless import run


def test_many_rings_are_answered_once_and_none_after_the_end() -> None:
    async def go() -> list[int]:
        answers: list[int] = []
        bell = Doorbell(lambda: answers.append(1))
        bell.ring()
        await asyncio.sleep(0)
        assert answers == []
        bell.connect()
        for _ in range(3):
            bell.ring()
            bell.ring()
            await asyncio.sleep(0.1)
        bell.disconnect()
        bell.ring()
        await asyncio.sleep(0.1)
        return answers

    assert run(go()) == [1, 1, 1]


def test_ringing_after_the_loop_has_ended_is_no_error() -> None:
    bell = Doorbell(lambda: None)

    async def go() -> None:
        bell.connect()

    run(go())
    bell.ring()


def test_an_error_in_a_task_is_told_and_the_crew_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("a bug")

    async def go() -> list[bool]:
        found: list[bool] = []
        crew = Crew("the crew", 1, lambda: found.append(crew.has_room))
        crew.start(fail())
        found.append(crew.has_room)
        await asyncio.sleep(0.1)
        return [*found, crew.is_idle]

    with caplog.at_level(logging.ERROR):
        assert run(go()) == [False, True, True]
    assert "the crew ended with an error" in caplog.text
    assert "a bug" in caplog.text


def test_a_ring_of_another_thread_wakes_a_loop_that_sleeps() -> None:
    async def go() -> int:
        answered = asyncio.Event()
        answers: list[int] = []

        def answer() -> None:
            answers.append(threading.get_ident())
            answered.set()

        bell = Doorbell(answer)
        bell.connect()
        thread = threading.Timer(0.01, bell.ring)
        thread.start()
        await asyncio.wait_for(answered.wait(), 10)
        thread.join()
        return answers[0]

    assert asyncio.run(go()) == threading.get_ident()
