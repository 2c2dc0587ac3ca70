"""The signals that end a scheduler."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest
from kdsl.live import running


class Ending:
    """Takes the place of a scheduler: it gets two signals, and ends when it is told to stop."""

    def __init__(self, *_: object) -> None:
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1

    async def run(self) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0)

    def report(self) -> str:
        return f"stopped {self.stops} times"


@pytest.mark.parametrize(("between", "exits"), [(0.01, []), (1.0, [1])])
def test_a_second_signal_ends_it_at_once_unless_both_come_together(
    between: float, exits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    times = iter([0.0, between])
    monkeypatch.setattr(running, "SchedulerProcess", Ending)
    monkeypatch.setattr(os, "_exit", ended.append)
    before = signal.getsignal(signal.SIGTERM)
    nothing: Any = None
    monkeypatch.setattr(running, "time", type("Time", (), {"monotonic": lambda: next(times)}))
    assert running.run(nothing) == "stopped 1 times"
    assert ended == exits
    assert signal.getsignal(signal.SIGTERM) is before
